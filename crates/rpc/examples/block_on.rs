//! Futures without an async runtime: the client's host runs them, and drives its engine meanwhile.

use std::sync::Arc;

use apus_rpc::{Client, ClientOptions, Methods, Server};
use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{Config, Host};

/// Runs server and client.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = KeyRing::new([SharedKey::new([7; 32])])?;
    let start = || Host::start(Config::new(([127, 0, 0, 1], 0).into(), keys.clone())?);

    // The handler is a future too. The workers of the server run it.
    let methods = Methods::new().with_async("echo", async |call| Ok(call.payload().clone()));
    let server_host = Arc::new(start()?);
    let _server = Server::start(&server_host, methods)?;

    let host = Arc::new(start()?);
    let calls = async {
        let options = ClientOptions::default();
        let client = Client::connect_async(&host, server_host.local_addr(), &options).await?;
        let echo = client.method("echo")?;
        let (first, second) = (client.call(echo, b"1").start()?, client.call(echo, b"2").start()?);
        let answers = [second.await?.into_bytes(), first.await?.into_bytes()];
        Ok::<_, Box<dyn std::error::Error>>(answers)
    };
    let answers = host.block_on(calls, None).ok_or("the host has stopped")??;
    assert_eq!(answers, ["2", "1"]);
    Ok(())
}
