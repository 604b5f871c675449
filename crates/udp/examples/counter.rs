//! Tickets and records that peers change with atomic ops: `cargo run -p apus-udp --example counter`.

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

/// Length in bytes of a record: a version, which is a word, and a value. The version is odd while a peer changes the record.
pub const RECORD: usize = 64;

/// Changes the value of the record at `address`. Returns `false` if another peer is changing the record or was faster; try
/// again then.
pub fn update(
    peer: &Connection,
    key: RegionKey,
    address: u64,
    change: impl FnOnce(&mut [u8]),
) -> Result<bool, OpError> {
    let op = peer.submit(Request::read(key, address, RECORD)).expect("room for an op");
    let mut record = op.wait()?.bytes;
    let (word, value) = record.split_first_chunk_mut().expect("a record");
    let version = u64::from_le_bytes(*word);
    if version % 2 == 1 {
        return Ok(false);
    }
    *word = (version + 2).to_le_bytes();
    change(value);
    if !replace(peer, key, address, version, version + 1)? {
        return Ok(false);
    }
    // Version and value are one atomic write, which also unlocks the record.
    peer.submit(Request::write(key, address, record)).expect("room for an op").wait()?;
    Ok(true)
}

/// Tests all three functions between two hosts.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = || Host::start(Config::new(([127, 0, 0, 1], 0).into(), KeyRing::insecure())?);
    let (server, client) = (host()?, host()?);
    let region = server.register(vec![0; 2 * RECORD], Access::ALL)?;
    let peer = client.connect(server.local_addr())?;
    assert_eq!(take_ticket(&peer, region.key(), 8)?, 0);
    assert_eq!(region.fetch_add(8, 1)?, 1, "the owner's ticket");
    assert_eq!(take_ticket(&peer, region.key(), 8)?, 2);
    assert!(replace(&peer, region.key(), 8, 3, 0)?, "back to ticket 0");

    let record = RECORD as u64;
    assert!(update(&peer, region.key(), record, |value| value[0] = 7)?);
    assert_eq!(region.load(record)?, 2, "the version");
    assert_eq!(region.read(|bytes| bytes[RECORD + 8]), 7, "the value");
    region.store(record, 3)?;
    assert!(!update(&peer, region.key(), record, |value| value[0] = 8)?, "the record is locked");
    Ok(())
}
