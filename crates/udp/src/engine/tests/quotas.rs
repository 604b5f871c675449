//! Quotas of peers with keys of their own.

use super::*;
use crate::session::{Entry, EntryKey, KeyPair, SharedKey};

/// Settings of host `own`, which lists host `peer`.
fn identified(own: u8, peer: u8) -> Config {
    let pair = |n| KeyPair::new([n; 32]).expect("not zeros");
    let mut config = config();
    let keys = [
        EntryKey::Shared(SharedKey::new([42; 32])),
        EntryKey::Own(format!("host-{own}"), pair(own)),
        EntryKey::Peer(format!("host-{peer}"), pair(peer).public()),
    ];
    config.keys = KeyRing::of(keys.map(Entry::new)).expect("sound");
    config
}

/// A peer says how many ops it accepts itself. The server takes `max_ops` per flow from it, and memory for them, all the same.
#[test]
fn a_peer_is_charged_for_the_ops_that_it_may_have_whatever_it_accepts_itself() {
    let (mut server, mut client) = (identified(1, 2), identified(2, 1));
    server.quota_ops = Some(3 * u64::from(server.max_ops)); // three flows
    client.max_ops = 1;
    // Two processes of host 2.
    let mut hosts = [
        VirtualHost::new([10, 0, 0, 1], &server),
        VirtualHost::new([10, 0, 0, 2], &client),
        VirtualHost::new([10, 0, 0, 3], &client),
    ];
    let mut connect = |from: usize, flows: usize| {
        let answer = hosts[from].connect_by(flows, &hosts[0]);
        run(&mut hosts, Span::from_ms(1));
        answer.try_recv().expect("answered")
    };
    let _first = connect(1, 2).expect("within the quota");
    assert_eq!(connect(2, 2).map(drop), Err(ConnectError::Quota));
    connect(2, 1).map(drop).expect("within the quota");
}
