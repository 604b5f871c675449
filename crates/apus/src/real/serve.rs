//! `apus serve`: a peer for `apus ping` and `apus perf`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use apus_udp::{
    AcceptHook, Access, Config, ConnectError, Connection, End, Host, Message, MessageReceiver,
    Request,
};
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::notify::notify;
use super::quotas::QuotaOptions;
use super::reload::{Keys, Reload};
use super::{Common, PORT, any_duration, filled};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::print;

/// Serve `apus ping` and `apus perf`: return messages, and provide a region to write and read.
///
/// On SIGHUP, the server reads its key file again. Connections continue if their keys are still listed, also under retired keys.
#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    common: Common,
    /// Address to listen on. May be given several times [default: [::]:48700, which also serves IPv4, or 0.0.0.0:48700 on a
    /// system without IPv6].
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<SocketAddr>,
    /// Accept only the peer NAME of the key file. May be given several times; without it, every listed peer may connect.
    #[arg(long, value_name = "NAME", conflicts_with = "insecure")]
    accept: Vec<String>,
    /// Maximum time to wait for outstanding ops after the first Ctrl-C or SIGTERM, before connections are closed. A second
    /// signal, a second later or more, ends the process at once.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = any_duration)]
    drain: Duration,
    /// Size of the region, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    region: usize,
    #[command(flatten)]
    quotas: QuotaOptions,
}

impl Serve {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let reload = Reload::watch()?;
        let region = filled("--region", self.region, 0)?;
        let any = [Config::any_address(PORT)];
        let listen = if self.listen.is_empty() { &any[..] } else { &self.listen };
        let (host, file) = self.common.host_and_keys(listen, |config| {
            self.quotas.apply(config);
            self.limit_peers(config)
        })?;
        let host = Arc::new(host);
        let shutdown = drain_on_signal(&host, self.drain)?;
        let _metrics = self.common.metrics(&host)?;
        let region =
            host.register(region, Access::ALL).map_err(|error| Failure::Run(error.to_string()))?;
        let addresses: Vec<_> = host.local_addrs().iter().map(SocketAddr::to_string).collect();
        let listening = format!("listening on {}", addresses.join(", "));
        print(&format!("{listening}\n"))?;
        notify(&format!("READY=1\nSTATUS={listening}"));
        let state = Arc::clone(&shutdown);
        reload.start(Keys {
            host: Arc::downgrade(&host),
            file,
            accepted: self.accept.clone(),
            status: listening,
            stopping: Box::new(move || state.asked.load(Ordering::Relaxed)),
        })?;
        let greeting = [region.key().get().to_be_bytes(), (self.region as u64).to_be_bytes()];
        let greeting = greeting.concat();
        let ended = if self.common.is_inline() {
            self.poll(&host, &greeting)
        } else {
            self.wait(&host, &greeting)
        };
        // Closes all connections before the process ends.
        host.stop();
        match ended {
            Err(Failure::Run(_)) if shutdown.drained.load(Ordering::Relaxed) => Ok(()),
            Err(Failure::Run(_)) if shutdown.asked.load(Ordering::Relaxed) => Err(Failure::Run(
                format!("connections were cut off: they had not drained within {:?}", self.drain),
            )),
            ended => ended,
        }
    }

    /// Makes the host accept the named peers only.
    fn limit_peers(&self, config: &mut Config) -> Result<(), Failure> {
        let names = self.accept.clone();
        if names.is_empty() {
            return Ok(());
        }
        if let Some(unknown) = names.iter().find(|n| !config.keys.peers().any(|(_, p)| p == *n)) {
            return Err(Failure::Input(format!(
                "--accept {unknown}: the key file lists no peer of this name"
            )));
        }
        config.accept = Some(AcceptHook::new(move |incoming| {
            let known = incoming.peer_name.is_some_and(|name| names.iter().any(|n| n == name));
            if known { Ok(()) } else { Err("this server does not accept this peer".to_owned()) }
        }));
        Ok(())
    }

    /// Waits for the end of the service; the thread that runs the engine answers every peer.
    fn wait(&self, host: &Host, greeting: &[u8]) -> Result<(), Failure> {
        loop {
            let next = host.accept().map_err(no_more)?;
            if let Some(connection) = self.greet(next, greeting) {
                connection.receive_with(Echo(connection.clone()));
            }
        }
    }

    /// Serves in inline mode: this thread does all the work.
    fn poll(&self, host: &Host, greeting: &[u8]) -> Result<(), Failure> {
        let mut connections: Vec<Connection> = Vec::new();
        loop {
            if connections.is_empty() {
                // Without a peer to answer, wait for one.
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

    /// Sends the region to a peer; returns `None` if the connection has already ended.
    fn greet(&self, connection: Connection, greeting: &[u8]) -> Option<Connection> {
        let told = connection.submit(Request::message(greeting.to_vec()));
        told.ok().map(|_| connection)
    }
}

fn no_more(error: ConnectError) -> Failure {
    Failure::Run(error.to_string())
}

/// State of the command's shutdown.
#[derive(Default)]
struct Shutdown {
    /// `true` if a signal has requested it.
    asked: AtomicBool,
    /// `true` if every connection ended in order.
    drained: AtomicBool,
}

/// Drains the host on the first Ctrl-C or request to terminate, and then stops it. The second one, a second later or more,
/// ends the process.
fn drain_on_signal(host: &Arc<Host>, timeout: Duration) -> Result<Arc<Shutdown>, Failure> {
    let (shutdown, host) = (Arc::new(Shutdown::default()), Arc::downgrade(host));
    let state = Arc::clone(&shutdown);
    let failed = |error| Failure::Run(format!("Ctrl-C cannot be watched for: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let on_signal = move || {
        if !interrupt::is_first_request() {
            return;
        }
        state.asked.store(true, Ordering::Relaxed);
        let Some(host) = host.upgrade() else { return };
        let drain = {
            let (host, state) = (Arc::clone(&host), Arc::clone(&state));
            move || {
                notify("STOPPING=1");
                state.drained.store(host.drain(timeout), Ordering::Relaxed);
                host.stop();
            }
        };
        // Another thread drains, because this thread must receive the second signal.
        if thread::Builder::new().name("apus-drain".to_owned()).spawn(drain).is_err() {
            host.stop();
        }
    };
    let handle = move || signals.forever().for_each(|_| on_signal());
    let started = thread::Builder::new().name("apus-signals".to_owned()).spawn(handle);
    started.map_err(failed)?;
    Ok(shutdown)
}

/// Returns the messages of a connection as they arrive.
pub struct Echo(pub Connection);

impl MessageReceiver for Echo {
    fn receive(&mut self, message: Message) {
        answer(&self.0, message);
    }

    fn ended(&mut self, _: End) {}
}

/// Returns a message to its sender. An answer that does not fit is dropped, because the peer has stopped reading.
pub fn answer(connection: &Connection, message: Message) {
    let _ = connection.submit_unreported(message.flow, Request::message(message.bytes));
}
