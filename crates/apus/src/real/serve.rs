//! `apus serve`: a peer for `apus ping` and `apus perf`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use apus_udp::{Access, Config, ConnectError, Connection, Host, Message, Request};
use clap::Args;

use super::{Common, PORT};
use crate::failure::Failure;
use crate::output::print;

/// Interval of checks for dropped handshakes.
const LOG_EVERY: Duration = Duration::from_millis(200);
/// Minimum interval of log lines about a fault of the same machine. deviation: no source; a peer
/// tries a few times a second.
const LOG_AGAIN: Duration = Duration::from_secs(10);
/// Maximum number of machines and faults that are remembered for that.
const LOG_MACHINES: usize = 256;

/// Answer `apus ping` and `apus perf`: return messages, and provide a region to write and read.
#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    common: Common,
    /// Address to listen on; may be given several times [default: [::]:48700, which serves IPv4 too, or 0.0.0.0:48700 on
    /// a system without IPv6].
    #[arg(long, alias = "bind", value_name = "ADDRESS")]
    listen: Vec<SocketAddr>,
    /// Bytes of the region.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    region: usize,
}

impl Serve {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let any = [Config::any_address(PORT)];
        let listen = if self.listen.is_empty() { &any[..] } else { &self.listen };
        let host = Arc::new(self.common.host(listen)?);
        let stopped = stop_on_interrupt(&host)?;
        let _metrics = self.common.metrics(&host)?;
        let region = host
            .register(vec![0; self.region], Access::ReadWrite)
            .map_err(|error| Failure::Run(error.to_string()))?;
        let addresses: Vec<_> = host.local_addrs().iter().map(SocketAddr::to_string).collect();
        print(&format!("listening on {}\n", addresses.join(", ")))?;
        let greeting = [region.key().get().to_be_bytes(), (self.region as u64).to_be_bytes()];
        let greeting = greeting.concat();
        log_dropped(Arc::downgrade(&host))?;
        let ended = if self.common.is_inline() {
            self.poll(&host, &greeting)
        } else {
            self.wait(&host, &greeting)
        };
        // Connections are closed before the process ends.
        host.stop();
        match ended {
            Err(Failure::Run(_)) if stopped.load(Ordering::Relaxed) => Ok(()),
            ended => ended,
        }
    }

    /// With engine threads: one thread per peer, which sleeps while the peer is silent.
    fn wait(&self, host: &Host, greeting: &[u8]) -> Result<(), Failure> {
        loop {
            let next = host.accept().map_err(no_more)?;
            let Some(connection) = self.greet(next, greeting) else { continue };
            let answer = move || {
                while let Ok(message) = connection.receive() {
                    answer(&connection, message);
                }
            };
            let thread = thread::Builder::new().name("apus-peer".to_owned()).spawn(answer);
            thread.map_err(|error| Failure::Run(format!("a thread for a peer: {error}")))?;
        }
    }

    /// With the engine inline: this thread does all work.
    fn poll(&self, host: &Host, greeting: &[u8]) -> Result<(), Failure> {
        let mut connections: Vec<Connection> = Vec::new();
        loop {
            if connections.is_empty() {
                // No peer to answer: wait for one without using the core.
                let first = host.accept().map_err(no_more)?;
                connections.extend(self.greet(first, greeting));
            }
            let mut idle = !host.drive();
            if let Some(next) = host.try_accept() {
                connections.extend(self.greet(next, greeting));
            }
            connections.retain(|connection| {
                loop {
                    match connection.try_receive() {
                        Ok(Some(message)) => {
                            idle = false;
                            answer(connection, message);
                        }
                        Ok(None) => return true,
                        Err(_) => return false,
                    }
                }
            });
            if idle {
                thread::yield_now();
            }
        }
    }

    /// Sends the region to a peer; drops a connection that has already ended.
    fn greet(&self, connection: Connection, greeting: &[u8]) -> Option<Connection> {
        let told = connection.submit(Request::message(greeting.to_vec()));
        told.ok().map(|_| connection)
    }
}

fn no_more(error: ConnectError) -> Failure {
    Failure::Run(error.to_string())
}

/// Stops the host on Ctrl-C or a request to terminate. Returns whether that happened.
fn stop_on_interrupt(host: &Arc<Host>) -> Result<Arc<AtomicBool>, Failure> {
    let (stopped, host) = (Arc::new(AtomicBool::new(false)), Arc::downgrade(host));
    let flag = Arc::clone(&stopped);
    ctrlc::set_handler(move || {
        flag.store(true, Ordering::Relaxed);
        if let Some(host) = host.upgrade() {
            host.stop();
        }
    })
    .map_err(|error| Failure::Run(format!("Ctrl-C cannot be watched for: {error}")))?;
    Ok(stopped)
}

/// Logs dropped handshakes to standard error while the host exists; their senders get no reason.
fn log_dropped(host: Weak<Host>) -> Result<(), Failure> {
    let log = move || {
        let mut logged: BTreeMap<(IpAddr, String), Instant> = BTreeMap::new();
        while let Some(host) = host.upgrade() {
            while let Some(dropped) = host.dropped_handshake() {
                logged.retain(|_, at| at.elapsed() < LOG_AGAIN);
                let fault = (dropped.from.ip(), dropped.fault.to_string());
                if logged.len() < LOG_MACHINES && !logged.contains_key(&fault) {
                    eprintln!("{dropped}");
                    logged.insert(fault, Instant::now());
                }
            }
            drop(host);
            thread::sleep(LOG_EVERY);
        }
    };
    let thread = thread::Builder::new().name("apus-log".to_owned()).spawn(log);
    thread.map(drop).map_err(|error| Failure::Run(format!("a thread for the log: {error}")))
}

/// Returns a message. An answer without room is dropped: the peer has stopped reading.
pub fn answer(connection: &Connection, message: Message) {
    let _ = connection.submit_to(message.flow, Request::message(message.bytes));
}
