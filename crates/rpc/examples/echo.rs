//! A server that returns the bytes of each call, and a client.

use std::sync::Arc;
use std::time::Duration;

use apus_rpc::{Client, Methods, Server};
use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{Config, Host};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Both hosts in one process here; usually each has its own, with the same key file.
    let keys = KeyRing::new([SharedKey::new([7; 32])])?;
    let start = || Host::start(Config::new(([127, 0, 0, 1], 0).into(), keys.clone())?);

    let host = Arc::new(start()?);
    let address = host.local_addr();
    let echo = Methods::new().with("echo", |call| Ok(call.payload().clone()));
    let _server = Server::start(&host, echo)?;

    let client = Client::connect(&Arc::new(start()?), address)?;
    let echo = client.method("echo")?;
    let answer = client.call(echo, b"hello").deadline(Duration::from_secs(10)).wait()?;
    assert_eq!(&answer[..], b"hello");
    Ok(())
}
