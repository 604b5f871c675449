//! Offers a megabyte of memory to one peer, and sends it the key of this region.

use apus_udp::{Access, Config, Host, Request, keyfile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = keyfile::read("shared.key".as_ref())?; // the same file on both machines
    let server = Host::start(Config::new("0.0.0.0:48700".parse()?, keys)?)?;
    let region = server.register(vec![0; 1 << 20], Access::ALL)?;
    let connection = server.accept()?; // waits for a peer
    let key = region.key().get().to_be_bytes();
    connection.submit(Request::message(key.to_vec()))?.wait()?;
    Ok(())
}
