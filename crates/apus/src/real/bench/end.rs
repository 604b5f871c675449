//! A process of a measurement: the server or a client of one contestant. [`super::contest`] starts it.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use apus_udp::session::KeyRing;
use apus_udp::{
    Access, Bytes, Config, Connection, Host, Mode, Region, RegionKey, Request, SubmitError,
};
use clap::Args;

use super::calls::{self, Answered, Begun, Calls, Messages, Pipeline};
use super::sockets;
use super::spec::{
    BULK, ClientResult, Contestant, Load, OpName, REGION, Role, SMALL, ServerState, Serving, Spec,
    Usage, Waiting,
};
use super::writes::{Writes, Written};
use crate::agent::{MAX_KEY_LINE, read_line, say, say_json};
use crate::failure::Failure;
use crate::real::closed_loop::Wait;
use crate::real::round_trips;
use crate::real::serve::Echo;

/// Round trips before the counted ones.
const WARM_UP: u64 = 100;
/// Maximum duration of these round trips.
const WARM_UP_TIME: Duration = Duration::from_secs(1);
/// Duration of writes before the counted ones.
const WARM_UP_WRITES: Duration = Duration::from_millis(50);
/// Longest wait for the completion of a write.
const CHECK: Duration = Duration::from_millis(10);

/// One end of a measurement of `apus bench udp`.
#[derive(Args)]
pub struct End {}

fn failed(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl End {
    /// Reads a [`Role`], then serves or measures.
    pub fn execute(&self) -> Result<(), Failure> {
        let mut input = io::stdin().lock();
        let mut lines = || {
            let line = read_line(&mut input, MAX_KEY_LINE);
            line.map_err(|error| Failure::Input(format!("standard input: {error}")))
        };
        let Some(role) = lines()? else { return Ok(()) };
        let role = serde_json::from_str(&role).map_err(|e| Failure::Input(e.to_string()))?;
        let mut next = || match lines() {
            Ok(line) => line,
            // The threads of servers do not end, so the process exits here: wrong input.
            Err(failure) => {
                failure.report();
                std::process::exit(2)
            }
        };
        let done = match role {
            Role::Server(spec) => serve(&spec, &mut next),
            Role::Client(spec, server) => measure(&spec, server, &mut next),
        };
        done.map_err(Failure::Run)?;
        // The threads of servers do not end, so the process exits here.
        std::process::exit(0)
    }
}

fn start(spec: &Spec, waiting: Waiting, sealed: bool) -> Result<Host, String> {
    let keys =
        if sealed { KeyRing::parse(&spec.key).map_err(failed)? } else { KeyRing::insecure() };
    let mut config = Config::new((spec.bind, 0).into(), keys).map_err(failed)?;
    config.max_mtu = spec.mtu;
    if sealed {
        config.session.cipher = spec.cipher.parse()?;
    }
    config.mode = match waiting {
        Waiting::Blocking => Mode::Shared,
        Waiting::Spinning => Mode::Spinning,
        Waiting::Inline => Mode::Inline,
    };
    Host::start(config).map_err(failed)
}

/// Serves until the input ends, and reports the server's state after every line.
fn serve(spec: &Spec, next: &mut dyn FnMut() -> Option<String>) -> Result<(), String> {
    let bytes = Arc::new(AtomicU64::new(0));
    let mut calls = None;
    let (address, apus) = match spec.contestant {
        Contestant::Udp(waiting) => {
            (sockets::serve_udp(spec.bind, waiting.polls(), Arc::clone(&bytes)), None)
        }
        Contestant::Tcp => {
            let echo = matches!(spec.load, Load::RoundTrips { .. });
            (sockets::serve_tcp(spec.bind, echo, Arc::clone(&bytes)), None)
        }
        Contestant::Apus { op, waiting, sealed } => {
            let host = Arc::new(start(spec, waiting, sealed)?);
            let region = host.register(vec![0x61; REGION], Access::ALL).map_err(failed)?;
            let server = Arc::clone(&host);
            if op == OpName::Call {
                calls = Some(calls::serve(&host)?);
            } else {
                thread::spawn(move || match waiting {
                    Waiting::Inline => answer_inline(&server),
                    Waiting::Blocking | Waiting::Spinning => answer_messages(&server),
                });
            }
            (Ok(host.local_addr()), Some((host, region)))
        }
    };
    let region = apus.as_ref().map_or(0, |(_, region): &(_, Region)| region.key().get());
    say_json(&Serving { address: address.map_err(failed)?, region })?;
    while next().is_some() {
        let mut state = ServerState {
            usage: Usage::now(),
            bytes: bytes.load(Ordering::Relaxed),
            connections: 0,
        };
        for stats in apus.iter().flat_map(|(host, _)| host.stats()) {
            state.bytes += stats.payload_received.load(Ordering::Relaxed);
            state.connections += stats.connections.load(Ordering::Relaxed);
        }
        // The count of calls excludes headers.
        state.bytes = calls.as_ref().map_or(state.bytes, calls::answered);
        say_json(&state)?;
    }
    Ok(())
}

/// Returns every message from the thread that runs the engine, as `apus serve` does.
fn answer_messages(host: &Host) {
    while let Ok(connection) = host.accept() {
        connection.receive_with(Echo(connection.clone()));
    }
}

/// Returns every message from one thread, which also runs the engine.
fn answer_inline(host: &Host) {
    let mut connections = Vec::new();
    loop {
        host.drive();
        connections.extend(host.try_accept());
        for connection in &connections {
            while let Ok(Some(message)) = connection.try_receive() {
                crate::real::serve::answer(connection, message);
            }
        }
    }
}

/// Connects and warms up, writes `ready`, measures after the next line, writes `done`, and then the result. The process
/// ends when its input is closed, so that its connections stay open until the server's state has been read.
fn measure(
    spec: &Spec,
    server: Serving,
    next: &mut dyn FnMut() -> Option<String>,
) -> Result<(), String> {
    let mut begin = || {
        say("ready");
        if next().is_none() {
            // The parent process has ended.
            std::process::exit(0);
        }
    };
    let idle;
    let result = match spec.load {
        Load::RoundTrips { gap, threads, .. } => {
            round_trips_of(spec, server, gap, threads, &mut begin)?
        }
        Load::Writes { bytes, outstanding } => {
            writes_of(spec, server, bytes, outstanding, &mut begin)?
        }
        Load::Answered { outstanding } => answered_of(spec, server, outstanding, &mut begin)?,
        Load::Idle { connections } => {
            idle = connect_all(spec, server, connections)?;
            sleep(spec.duration, &idle, &mut begin)?
        }
    };
    say("done");
    say_json(&result)?;
    while next().is_some() {}
    Ok(())
}

/// Waits until the measurement begins.
type Begin<'a> = &'a mut dyn FnMut();

/// A round trip of one thread.
type RoundTrip<'a> = Box<dyn FnMut() -> Result<(), String> + Send + 'a>;

/// A client of Apus.
struct Apus {
    host: Arc<Host>,
    connection: Connection,
    region: RegionKey,
    /// RPC client on the same connection, if the op is a call.
    calls: Option<Calls>,
}

impl Apus {
    fn connect(spec: &Spec, server: Serving) -> Result<Option<Self>, String> {
        let Contestant::Apus { op, waiting, sealed } = spec.contestant else { return Ok(None) };
        let host = Arc::new(start(spec, waiting, sealed)?);
        let region = RegionKey::new(server.region);
        if op == OpName::Call {
            let calls = Calls::connect(&host, server.address)?;
            let connection = calls.connection().clone();
            return Ok(Some(Self { host, connection, region, calls: Some(calls) }));
        }
        let connection = host.connect(server.address).map_err(failed)?;
        Ok(Some(Self { host, connection, region, calls: None }))
    }

    /// Payload bytes received.
    fn received(&self) -> u64 {
        if let Some(calls) = &self.calls {
            return calls.received();
        }
        self.host.stats().map(|stats| stats.payload_received.load(Ordering::Relaxed)).sum()
    }

    fn round_trip(&self, op: OpName) -> RoundTrip<'_> {
        let Self { connection, region, calls, .. } = self;
        if let Some(calls) = calls {
            return Box::new(move || check_length(calls.round_trip()?));
        }
        let payload = Bytes::from(vec![0x61; SMALL]);
        let one_sided = |request: Request| {
            let op = connection.submit(request).map_err(|error: SubmitError| error.to_string())?;
            op.wait().map_err(failed)
        };
        match op {
            OpName::Message | OpName::Call => Box::new(move || {
                let answer = round_trips::exchange(connection, payload.clone())?;
                check_length(answer.bytes.len())
            }),
            OpName::Write => {
                Box::new(move || one_sided(Request::write(*region, 0, payload.clone())).map(drop))
            }
            OpName::Read => Box::new(move || {
                let done = one_sided(Request::read(*region, 0, SMALL))?;
                check_length(done.bytes.len())
            }),
        }
    }
}

fn check_length(length: usize) -> Result<(), String> {
    if length == SMALL { Ok(()) } else { Err(format!("an answer has {length} B, not {SMALL}")) }
}

fn round_trips_of(
    spec: &Spec,
    server: Serving,
    gap: Duration,
    threads: u32,
    begin: Begin<'_>,
) -> Result<ClientResult, String> {
    let apus = Apus::connect(spec, server)?;
    let round_trip = |_| -> Result<RoundTrip<'_>, String> {
        let client = match (spec.contestant, &apus) {
            (Contestant::Apus { op, .. }, Some(apus)) => return Ok(apus.round_trip(op)),
            (Contestant::Udp(waiting), _) => {
                sockets::Client::udp(spec.bind, server.address, waiting.polls())
            }
            _ => sockets::Client::tcp(server.address),
        };
        let mut client = client.map_err(failed)?;
        Ok(Box::new(move || client.round_trip().map_err(failed)))
    };
    let round_trips = (0..threads).map(round_trip).collect::<Result<Vec<_>, _>>()?;
    // All threads pass this barrier when they are warm, at the start, at the end, and after the usage has been read:
    // the kernel drops the numbers of a thread when it ends.
    let gate = Barrier::new(threads as usize + 1);
    let mut result = ClientResult::default();
    let run = |mut round_trip: RoundTrip<'_>| {
        let warm_up = warm_up(&mut round_trip);
        gate.wait();
        gate.wait();
        let from = Instant::now();
        let series = round_trips::repeat(
            |_| Ok(warm_up.is_ok() && from.elapsed() < spec.duration),
            &mut round_trip,
            |_| {
                if !gap.is_zero() {
                    thread::sleep(gap);
                }
            },
        );
        let seconds = from.elapsed().as_secs_f64();
        gate.wait();
        gate.wait();
        warm_up.map(|warm_up| (warm_up, series, seconds))
    };
    let series: Vec<_> = thread::scope(|scope| {
        let threads = round_trips.into_iter().map(|own| scope.spawn(|| run(own)));
        let threads: Vec<_> = threads.collect();
        gate.wait();
        begin();
        let before = Usage::now();
        gate.wait();
        gate.wait();
        result.usage = Usage::now().since(before);
        gate.wait();
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    for series in series {
        let (warm_up, series, seconds) = series.map_err(|_| "a thread has panicked")??;
        if let Some(failure) = series.failure {
            return Err(failure.to_string());
        }
        result.seconds = result.seconds.max(seconds);
        result.all_ops += warm_up + series.times_us.len() as u64;
        result.times_us.extend(series.times_us);
    }
    result.ops = result.times_us.len() as u64;
    result.bytes = apus.as_ref().map_or(0, Apus::received);
    Ok(result)
}

/// Runs round trips that are not counted, and returns their number.
fn warm_up(round_trip: &mut RoundTrip<'_>) -> Result<u64, String> {
    let from = Instant::now();
    for done in 1..=WARM_UP {
        round_trip()?;
        if from.elapsed() > WARM_UP_TIME {
            return Ok(done);
        }
    }
    Ok(WARM_UP)
}

fn writes_of(
    spec: &Spec,
    server: Serving,
    bytes: usize,
    outstanding: usize,
    begin: Begin<'_>,
) -> Result<ClientResult, String> {
    let Some(Apus { host, connection, region, .. }) = Apus::connect(spec, server)? else {
        begin();
        let before = Usage::now();
        let (written, seconds) =
            sockets::write_stream(server.address, spec.duration).map_err(failed)?;
        let usage = Usage::now().since(before);
        let ops = written / BULK as u64;
        return Ok(ClientResult { ops, all_ops: ops, seconds, usage, ..ClientResult::default() });
    };
    let inline = matches!(spec.contestant, Contestant::Apus { waiting: Waiting::Inline, .. });
    let wait = if inline { Wait::Drive } else { Wait::Block(CHECK) };
    let mut writes = Writes::new(&host, &connection, region, bytes, outstanding, wait);
    let warm_up = writes.run(WARM_UP_WRITES.min(spec.duration)).map_err(failed)?;
    begin();
    let before = Usage::now();
    let done = writes.run(spec.duration).map_err(failed)?;
    let usage = Usage::now().since(before);
    let all_ops = warm_up.all_ops + done.all_ops;
    let Written { ops, seconds, .. } = done;
    Ok(ClientResult { ops, all_ops, seconds, usage, ..ClientResult::default() })
}

fn answered_of(
    spec: &Spec,
    server: Serving,
    outstanding: usize,
    begin: Begin<'_>,
) -> Result<ClientResult, String> {
    let apus = Apus::connect(spec, server)?.ok_or("sockets have no such load")?;
    let (mut begun, mut messages);
    let pipeline: &mut dyn Pipeline = match &apus.calls {
        Some(calls) => {
            begun = Begun(calls, VecDeque::new());
            &mut begun
        }
        None => {
            messages = Messages(&apus.connection, Bytes::from(vec![0x61; SMALL]));
            &mut messages
        }
    };
    let warm_up = calls::run(pipeline, outstanding, WARM_UP_WRITES.min(spec.duration))?;
    begin();
    let before = Usage::now();
    let Answered { ops, all_ops, seconds } = calls::run(pipeline, outstanding, spec.duration)?;
    let usage = Usage::now().since(before);
    let (all_ops, bytes) = (warm_up.all_ops + all_ops, apus.received());
    Ok(ClientResult { ops, all_ops, seconds, bytes, usage, ..ClientResult::default() })
}

/// Connects one host per connection, because two sockets share at most one connection.
fn connect_all(spec: &Spec, server: Serving, connections: u32) -> Result<Vec<Apus>, String> {
    let connect = |_| Apus::connect(spec, server)?.ok_or_else(|| "sockets cannot idle".to_owned());
    (0..connections).map(connect).collect()
}

fn sleep(duration: Duration, idle: &[Apus], begin: Begin<'_>) -> Result<ClientResult, String> {
    begin();
    let (before, from) = (Usage::now(), Instant::now());
    thread::sleep(duration);
    let usage = Usage::now().since(before);
    if let Some(end) = idle.iter().find_map(|client| client.connection.ended()) {
        return Err(format!("an idle connection has ended: {end}"));
    }
    Ok(ClientResult { seconds: from.elapsed().as_secs_f64(), usage, ..ClientResult::default() })
}
