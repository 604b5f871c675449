//! Round trips of 64 B between two processes whose ends block in the kernel: quinn on its runtime, Apus in its default
//! mode on a message, UDP on its socket.

use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{Bytes, Config, Connection, Host, Request};

use crate::{median, quic};

const SIZE: usize = 64;
const MTU: u16 = 1500;
/// Round trips before the counted ones.
const WARM_UP: u32 = 100;
const CONTESTANTS: [&str; 3] = ["UDP", "quinn", "Apus"];
const GAPS: [Duration; 3] = [Duration::ZERO, Duration::from_micros(100), Duration::from_millis(10)];

/// Runs the server of a contestant. It writes its address and, for quinn, its certificate to standard output, and ends
/// when its standard input is closed.
pub fn serve(contestant: &str) -> Result<(), Box<dyn Error>> {
    std::thread::spawn(|| {
        // The measuring process closes the input.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0)
    });
    match contestant {
        "quinn" => {
            quic::serve(MTU, |address, certificate| {
                let hex: String = certificate.iter().map(|byte| format!("{byte:02x}")).collect();
                println!("{address} {hex}");
            });
            Ok(())
        }
        "Apus" => {
            let host = start()?;
            println!("{}", host.local_addr());
            let connection = host.accept()?;
            while let Ok(message) = connection.receive() {
                connection.submit(Request::message(message.bytes))?;
            }
            Ok(())
        }
        "UDP" => {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            println!("{}", socket.local_addr()?);
            let mut buffer = [0; 2048];
            loop {
                let (length, from) = socket.recv_from(&mut buffer)?;
                socket.send_to(&buffer[..length], from)?;
            }
        }
        _ => Err(format!("unknown contestant {contestant}").into()),
    }
}

fn start() -> Result<Host, Box<dyn Error>> {
    let keys = KeyRing::new([SharedKey::new([7; 32])])?;
    let mut config = Config::new((Ipv4Addr::LOCALHOST, 0).into(), keys)?;
    config.max_mtu = MTU.into();
    Ok(Host::start(config)?)
}

/// Process that runs a server.
struct Server(Child);

impl Server {
    /// Starts the process, and returns the line that it writes.
    fn start(contestant: &str) -> Result<(Self, String), Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", contestant]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = Self(command.spawn()?);
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
        Ok((server, line.trim().to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Returns the median and the 99th percentile of the round trips of one turn, in microseconds.
fn measure(contestant: &str, gap: Duration, time: Duration) -> Result<[f64; 2], Box<dyn Error>> {
    let (_server, line) = Server::start(contestant)?;
    let (address, certificate) = line.split_once(' ').unwrap_or((&line, ""));
    let address: SocketAddr = address.parse()?;
    let mut bytes = [0x61; SIZE];
    match contestant {
        "quinn" => {
            let certificate: Result<Vec<u8>, _> = (0..certificate.len() / 2)
                .map(|at| u8::from_str_radix(&certificate[2 * at..2 * at + 2], 16))
                .collect();
            let pair = quic::Pair::connect_to(MTU, address, certificate?)?;
            let mut echo = pair.echo()?;
            repeat(gap, time, || echo.round_trip(&mut bytes))
        }
        "Apus" => {
            let host = start()?;
            let connection: Connection = host.connect(address)?;
            let bytes = Bytes::from(bytes.to_vec());
            repeat(gap, time, || {
                connection.submit(Request::message(bytes.clone()))?;
                connection.receive()?;
                Ok(())
            })
        }
        _ => {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect(address)?;
            repeat(gap, time, || {
                socket.send(&bytes)?;
                socket.recv(&mut bytes)?;
                Ok(())
            })
        }
    }
}

fn repeat(
    gap: Duration,
    time: Duration,
    mut round_trip: impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<[f64; 2], Box<dyn Error>> {
    for _ in 0..WARM_UP {
        round_trip()?;
    }
    let (begin, mut times) = (Instant::now(), Vec::new());
    while begin.elapsed() < time {
        let from = Instant::now();
        round_trip()?;
        times.push(from.elapsed().as_secs_f64() * 1e6);
        if !gap.is_zero() {
            std::thread::sleep(gap);
        }
    }
    times.sort_by(f64::total_cmp);
    // Nearest rank.
    let rank = |share: f64| times[((times.len() as f64 * share).ceil() as usize).max(1) - 1];
    Ok([rank(0.5), rank(0.99)])
}

/// Prints the table: medians over the turns, and ratios within one turn.
pub fn table(time: Duration, turns: usize) -> Result<(), Box<dyn Error>> {
    println!("| gap | what | p50, us | p99, us | p50 / UDP's | p99 / UDP's |");
    println!("|---|---|---|---|---|---|");
    for gap in GAPS {
        let mut all: [Vec<[f64; 2]>; 3] = Default::default();
        for turn in 0..turns {
            // A different contestant begins each turn.
            for place in (0..CONTESTANTS.len()).map(|place| (place + turn) % CONTESTANTS.len()) {
                // Long gaps need more time for enough round trips.
                let time = if gap > Duration::from_millis(1) { time * 2 } else { time };
                all[place].push(measure(CONTESTANTS[place], gap, time)?);
            }
        }
        for (name, own) in CONTESTANTS.iter().zip(&all) {
            let of = |at: usize| median(own.iter().map(|turn| turn[at]).collect());
            let ratio = |at: usize| {
                median(own.iter().zip(&all[0]).map(|(own, udp)| own[at] / udp[at]).collect())
            };
            println!(
                "| {gap:?} | {name} | {:.1} | {:.1} | {:.2} | {:.2} |",
                of(0),
                of(1),
                ratio(0),
                ratio(1)
            );
        }
    }
    Ok(())
}
