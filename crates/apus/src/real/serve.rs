//! `apus serve`: a peer for `apus ping` and `apus perf`.

use std::net::SocketAddr;
use std::thread;

use apus_udp::{Access, Connection, Host, Message, Request};
use clap::Args;

use super::{Common, PORT};
use crate::failure::Failure;
use crate::output::print;

/// Answers `apus ping` and `apus perf`: returns messages, and has a region to write and read.
#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    common: Common,
    /// Where to listen.
    #[arg(long, default_value_t = SocketAddr::from(([0, 0, 0, 0], PORT)))]
    bind: SocketAddr,
    /// Bytes of the region.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    region: usize,
}

impl Serve {
    /// Does it.
    pub fn execute(&self) -> Result<(), Failure> {
        let host = self.common.host(self.bind)?;
        let _metrics = self.common.metrics(&host)?;
        let region = host
            .register(vec![0; self.region], Access::ReadWrite)
            .map_err(|error| Failure::Run(error.to_string()))?;
        print(&format!("listening on {}\n", host.local_addr()))?;
        let greeting = [region.key().get().to_be_bytes(), (self.region as u64).to_be_bytes()];
        let greeting = greeting.concat();
        if self.common.is_inline() {
            self.poll(&host, &greeting)
        } else {
            self.wait(&host, &greeting)
        }
    }

    /// With engines of their own: a thread for each peer, which sleeps while the peer is silent.
    fn wait(&self, host: &Host, greeting: &[u8]) -> Result<(), Failure> {
        loop {
            let next = host.accept().map_err(|error| Failure::Run(error.to_string()))?;
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

    /// With the engine inline: this thread does everything.
    fn poll(&self, host: &Host, greeting: &[u8]) -> Result<(), Failure> {
        let mut connections: Vec<Connection> = Vec::new();
        loop {
            if connections.is_empty() {
                // Nothing to answer: wait for a peer without using the core.
                let first = host.accept().map_err(|error| Failure::Run(error.to_string()))?;
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

    /// Tells a peer of the region; drops a connection that has ended already.
    fn greet(&self, connection: Connection, greeting: &[u8]) -> Option<Connection> {
        let told = connection.submit(Request::message(greeting.to_vec()));
        told.ok().map(|_| connection)
    }
}

/// Returns a message. An answer that finds no room is not given: the peer has stopped listening.
fn answer(connection: &Connection, message: Message) {
    let _ = connection.submit_to(message.flow, Request::message(message.bytes));
}
