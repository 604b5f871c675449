//! `apus bench udp`: the transport over UDP compared with bare UDP, on the same path and in one
//! run.

mod client;
mod server;

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{Host, Mode};
use clap::Args;

use super::{Basics, address, any, duration, failure};
use crate::failure::Failure;
use crate::output::{print, to_json};
use client::{Client, Results};

/// Compare the transport over UDP with bare UDP sockets: round trips of 64 B, small writes, bulk
/// writes.
///
/// Both ends spin in the inline mode. Without `--listen` and `--peer` the other end is a thread of
/// this process, over the loopback interface.
#[derive(Args)]
pub struct BenchUdp {
    /// Run the other end, for one `--peer`, at this address.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["peer", "round_trips", "duration", "json"])]
    listen: Option<SocketAddr>,
    /// HOST:PORT of a process with `--listen`.
    #[arg(long)]
    peer: Option<String>,
    // Without keys and a remote peer, a key is generated.
    #[command(flatten)]
    basics: Basics,
    /// Number of round trips of each kind, in turns of 1000.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1000..))]
    round_trips: u32,
    /// Duration of small writes, and of bulk writes.
    #[arg(long, default_value = "2s", value_parser = duration)]
    duration: Duration,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

impl BenchUdp {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let keys = self.keys()?;
        if let Some(bind) = self.listen {
            let host = self.host(bind, keys)?;
            print(&format!("listening on {}\n", host.local_addr()))?;
            return server::serve(&host);
        }
        let results = match &self.peer {
            Some(peer) => {
                let peer = address(peer)?;
                self.run(peer, keys)?
            }
            None => {
                let server = self.host((Ipv4Addr::LOCALHOST, 0).into(), keys.clone())?;
                let peer = server.local_addr();
                let other_end = thread::spawn(move || server::serve(&server));
                let results = self.run(peer, keys)?;
                let ended = other_end.join();
                ended.map_err(|_| Failure::Run("the other end has panicked".to_owned()))??;
                results
            }
        };
        print(&if self.json { to_json(&results)? + "\n" } else { results.text() })
    }

    fn run(&self, peer: SocketAddr, keys: KeyRing) -> Result<Results, Failure> {
        let host = self.host(any(&[peer]), keys)?;
        let client = Client::connect(&host, peer)?;
        let results = client.measure(self.round_trips, self.duration)?;
        client.close();
        Ok(results)
    }

    fn host(&self, bind: SocketAddr, keys: KeyRing) -> Result<Host, Failure> {
        let mut config = self.basics.config(bind, keys)?;
        config.mode = Mode::Inline;
        Host::start(config).map_err(failure)
    }

    fn keys(&self) -> Result<KeyRing, Failure> {
        if let Some(keys) = self.basics.keys()? {
            return Ok(keys);
        }
        if self.listen.is_some() || self.peer.is_some() {
            let what = "give --key-file, the same file at both ends, or --insecure";
            return Err(Failure::Input(what.to_owned()));
        }
        let key = SharedKey::generate().map_err(|e| Failure::Run(format!("a random key: {e}")))?;
        KeyRing::new([key]).map_err(|e| Failure::Run(e.to_string()))
    }
}
