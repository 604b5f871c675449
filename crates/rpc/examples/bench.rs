//! Measures calls between two processes on this machine, next to messages of the transport.
//!
//! `cargo run --release -p apus-rpc --example bench [ROUND_TRIPS]` prints medians of five turns. Both processes have one thread
//! that works, in the default mode; payloads have 64 B and are encrypted.

use std::collections::VecDeque;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use apus_rpc::{Client, Methods, Server, ServerOptions};
use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{Config, Connection, Host, Request};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SIZE: usize = 64;
const TURNS: usize = 5;
const OUTSTANDING: usize = 64;

fn host() -> Result<Arc<Host>> {
    let keys = KeyRing::new([SharedKey::new([7; 32])])?;
    Ok(Arc::new(Host::start(Config::new(([127, 0, 0, 1], 0).into(), keys)?)?))
}

/// The server process: a host for messages and one for calls. It ends when its standard input closes.
fn serve(workers: usize) -> Result<()> {
    let (messages, calls) = (host()?, host()?);
    let options = ServerOptions { workers, ..Default::default() };
    let echo = Methods::new().with("echo", |call| Ok(call.payload().clone()));
    let _server = Server::start_with(&calls, echo, options)?;
    let mut out = std::io::stdout();
    writeln!(out, "{} {}", messages.local_addr(), calls.local_addr())?;
    out.flush()?;
    let echo = Arc::clone(&messages);
    std::thread::spawn(move || {
        while let Ok(connection) = echo.accept() {
            while let Ok(message) = connection.receive() {
                drop(connection.submit(Request::message(message.bytes)));
            }
        }
    });
    std::io::stdin().lines().for_each(drop);
    messages.stop();
    calls.stop();
    Ok(())
}

/// Returns the median and the 99th percentile of the times of `count` round trips, in microseconds.
fn round_trips(count: usize, mut round_trip: impl FnMut() -> Result<()>) -> Result<[f64; 2]> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let from = Instant::now();
        round_trip()?;
        times.push(from.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Ok([times[count / 2], times[count * 99 / 100]])
}

fn by_message(connection: &Connection) -> Result<()> {
    connection.submit(Request::message(vec![7; SIZE]))?;
    connection.receive()?;
    Ok(())
}

/// Returns the number of calls per second with as many outstanding.
fn calls_per_second(client: &Client, outstanding: usize, time: Duration) -> Result<f64> {
    let echo = client.method("echo")?;
    let payload = [7; SIZE];
    let (mut calls, mut count, from) = (VecDeque::new(), 0u64, Instant::now());
    while from.elapsed() < time {
        while calls.len() < outstanding {
            calls.push_back(client.call(echo, &payload).start()?);
        }
        // Half of the calls, so that requests leave together as answers arrive together.
        for call in calls.drain(..outstanding.div_ceil(2)) {
            call.wait()?;
            count += 1;
        }
    }
    Ok(count as f64 / from.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("serve") {
        return serve(arguments.next().map_or(Ok(1), |workers| workers.parse())?);
    }
    let count: usize = first.map_or(Ok(20_000), |count| count.parse())?;
    let mut out = std::io::stdout();
    for workers in [1, 4] {
        let mut server = Command::new(std::env::current_exe()?);
        server.args(["serve", &workers.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = server.spawn()?;
        let mut line = String::new();
        BufReader::new(server.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let addresses: Vec<SocketAddr> =
            line.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
        let (message_host, call_host) = (host()?, host()?);
        let connection = message_host.connect(addresses[0])?;
        let client = Client::connect(&call_host, addresses[1])?;
        let echo = client.method("echo")?;
        let payload = [7; SIZE];
        let by_call = || client.call(echo, &payload).wait().map(drop).map_err(Into::into);
        let mut rows: [Vec<f64>; 6] = Default::default();
        for _ in 0..TURNS {
            let [p50, p99] = round_trips(count, || by_message(&connection))?;
            let [call_p50, call_p99] = round_trips(count, by_call)?;
            let rate = calls_per_second(&client, OUTSTANDING, Duration::from_secs(1))?;
            for (row, value) in
                rows.iter_mut().zip([p50, p99, call_p50, call_p99, call_p50 / p50, rate])
            {
                row.push(value);
            }
        }
        let [p50, p99, call_p50, call_p99, ratio, rate] = rows.map(median);
        writeln!(
            out,
            "{workers} workers\n  message round trip: p50 {p50:.1} us, p99 {p99:.1} us\n  \
             echo by call: p50 {call_p50:.1} us, p99 {call_p99:.1} us, p50 over messages {ratio:.2}\n  \
             {OUTSTANDING} outstanding: {rate:.0} calls/s"
        )?;
        drop(server.stdin.take());
        server.wait()?;
    }
    Ok(())
}
