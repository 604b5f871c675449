//! Server and client as tasks of tokio.

use std::sync::Arc;
use std::time::Duration;

use apus_rpc::{Client, ClientOptions, Methods, Server};
use apus_udp::session::{KeyRing, SharedKey};
use apus_udp::{Config, Host};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs the example.
#[tokio::main]
pub async fn main() -> Result<()> {
    let keys = KeyRing::new([SharedKey::new([7; 32])])?;
    let start = || Host::start(Config::new(([127, 0, 0, 1], 0).into(), keys.clone())?);

    // The handler runs as a task of tokio, and may use its timers, files and sockets.
    let runtime = tokio::runtime::Handle::current();
    let methods = Methods::new().with_answer("late echo", move |call| {
        runtime.spawn(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let answer = call.payload().clone();
            call.answer(Ok(answer));
        });
    });
    let host = Arc::new(start()?);
    let _server = Server::start(&host, methods)?;

    let options = ClientOptions::default();
    let client = Client::connect_async(&Arc::new(start()?), host.local_addr(), &options).await?;
    let echo = client.method("late echo")?;
    let tasks: Vec<_> = (0..10u8)
        .map(|n| {
            let client = client.clone();
            tokio::spawn(
                async move { client.call(echo, &[n]).deadline(Duration::from_secs(10)).await },
            )
        })
        .collect();
    for (n, task) in (0..).zip(tasks) {
        assert_eq!(task.await??[..], [n]);
    }

    // Dropping the future cancels the call, also at the server.
    drop(client.call(echo, b"never awaited").start()?);
    Ok(())
}
