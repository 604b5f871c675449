//! Tickets from a word that peers change with atomic ops: `cargo run -p apus-udp --example counter`.

use apus_udp::session::KeyRing;
use apus_udp::{Access, Config, Host};
use apus_udp::{Connection, OpError, RegionKey, Request};

/// Takes the next ticket: the word at `address` counts them, and every caller gets another one.
pub fn take_ticket(peer: &Connection, key: RegionKey, address: u64) -> Result<u64, OpError> {
    let op = peer.submit(Request::fetch_add(key, address, 1)).expect("room for an op");
    Ok(op.wait()?.old.expect("the word before the op"))
}

/// Replaces the word at `address` if it is `expected`. Returns whether it was.
pub fn replace(
    peer: &Connection,
    key: RegionKey,
    address: u64,
    expected: u64,
    new: u64,
) -> Result<bool, OpError> {
    let request = Request::compare_and_swap(key, address, expected, new);
    let op = peer.submit(request).expect("room for an op");
    Ok(op.wait()?.old == Some(expected))
}

/// Checks both between two hosts.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = || Host::start(Config::new(([127, 0, 0, 1], 0).into(), KeyRing::insecure())?);
    let (server, client) = (host()?, host()?);
    let region = server.register(vec![0; 64], Access::ReadWrite)?;
    let peer = client.connect(server.local_addr())?;
    assert_eq!(take_ticket(&peer, region.key(), 8)?, 0);
    assert_eq!(region.fetch_add(8, 1)?, 1, "the owner's ticket");
    assert_eq!(take_ticket(&peer, region.key(), 8)?, 2);
    assert!(replace(&peer, region.key(), 8, 3, 0)?, "back to ticket 0");
    Ok(())
}
