//! Permission to connect and to use regions, between hosts with keys of their own over sockets.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use apus_udp::session::{Entry, EntryKey, KeyPair, KeyRing, PeerKey, SharedKey};
use apus_udp::{
    AcceptHook, Access, Cause, Config, ConnectError, Connection, End, Grant, Host, Mode, OpError,
    Refusal, Region, Request,
};

use crate::support::pair::Pair;
use crate::support::{SHARED, config, drive, host, until};

/// Returns the key pair of host `n`.
fn pair(n: u8) -> KeyPair {
    KeyPair::new([n; 32]).expect("not zeros")
}

fn key(n: u8) -> PeerKey {
    pair(n).public()
}

/// The ring of host `n`, which lists these peers as `host-N`.
fn ring(n: u8, peers: &[u8]) -> KeyRing {
    let own = EntryKey::Own(format!("host-{n}"), pair(n));
    let shared = EntryKey::Shared(SharedKey::new([7; 32]));
    let listed = peers.iter().map(|&p| EntryKey::Peer(format!("host-{p}"), key(p)));
    KeyRing::of([shared, own].into_iter().chain(listed).map(Entry::new)).expect("sound")
}

fn settings(n: u8, peers: &[u8]) -> Config {
    let mut config = config(SHARED);
    config.keys = ring(n, peers);
    config
}

/// Server 1, and clients 2 and 3 that are connected to it, with the server's ends of their connections.
struct Three {
    server: Host,
    clients: Vec<(Host, Connection, Connection)>,
}

impl Three {
    fn start() -> Self {
        let server = host(settings(1, &[2, 3]));
        let connect = |n: u8| {
            let client = host(settings(n, &[1]));
            let ours = client.connect(server.local_addr()).expect("listed");
            let theirs = server.accept().expect("a client");
            (client, ours, theirs)
        };
        let clients = [2, 3].map(connect).into();
        Self { server, clients }
    }

    /// Returns the end of `request` from client `n` (2 or 3), which shows whether it is permitted.
    fn ends(&self, n: usize, request: Request) -> Result<(), OpError> {
        let op = self.clients[n - 2].1.submit(request).expect("room");
        op.wait().map(drop)
    }

    fn region(&self, access: Access, grant: Grant) -> Region {
        self.server.register_for(vec![0; 64], access, grant).expect("room")
    }
}

const NO_REGION: Result<(), OpError> = Err(OpError::Refused(Refusal::NoRegion));
const NOT_ALLOWED: Result<(), OpError> = Err(OpError::Refused(Refusal::NotAllowed));

#[test]
fn both_sides_see_key_and_name_of_the_other() {
    let three = Three::start();
    for (n, (_, ours, theirs)) in (2..).zip(&three.clients) {
        assert_eq!((ours.peer_key(), ours.peer_name()), (Some(key(1)), Some("host-1")));
        let name = format!("host-{n}");
        assert_eq!((theirs.peer_key(), theirs.peer_name()), (Some(key(n)), Some(&*name)));
    }
    // Under a shared key alone, no peer has an identity.
    let [a, b] = [(); 2].map(|()| host(config(SHARED)));
    let ours = a.connect(b.local_addr()).expect("connected");
    assert_eq!((ours.peer_key(), ours.peer_name()), (None, None));
}

#[test]
fn the_accept_hook_sees_who_asks_and_its_reason_is_told() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let mut server = settings(1, &[2, 3]);
    let seen = Arc::clone(&asked);
    server.accept = Some(AcceptHook::new(move |incoming| {
        let name = incoming.peer_name.map(str::to_owned);
        seen.lock().unwrap().push((name, incoming.peer_key, incoming.flows));
        match incoming.peer_name {
            Some("host-2") => Ok(()),
            Some("host-3") => Err("host-3 is not on duty".to_owned()),
            _ => panic!("a hook that fails"),
        }
    }));
    server.session.accept_unlisted = true;
    let server = host(server);
    let address = server.local_addr();
    let two = host(settings(2, &[1]));
    assert!(two.connect_to(address, "host-1", &[0, 0]).is_ok());
    let refused = |n| host(settings(n, &[1])).connect(address).map(drop).expect_err("refused");
    let because = |why: &str| ConnectError::RefusedBecause(why.to_owned());
    assert_eq!(refused(3), because("host-3 is not on duty"));
    assert_eq!(refused(4), because("its accept hook panicked"));
    let known = |n: u8| (Some(format!("host-{n}")), Some(key(n)));
    let [(name2, key2), (name3, key3)] = [known(2), known(3)];
    let expected = [(name2, key2, 2), (name3, key3, 1), (None, Some(key(4)), 1)];
    // If a peer repeats its request because the answer is late, the application is asked about it again.
    let mut asked = asked.lock().unwrap();
    asked.dedup();
    assert_eq!(*asked, expected);
    drop(asked);
    // The engine continues to run.
    assert!(server.accept().is_ok());
}

#[test]
fn who_is_not_listed_or_asks_for_another_is_told_what_is_wrong() {
    let server = host(settings(1, &[2]));
    let address = server.local_addr();
    let connect = |n, peers: &[u8], name: Option<&str>| {
        let mut config = settings(n, peers);
        if name == Some("host-5") {
            // No host answers this attempt.
            config.session.handshake_timeout = apus_units::Span::from_ms(300);
            config.session.retry = apus_units::Span::from_ms(100);
        }
        let client = host(config);
        match name {
            None => client.connect(address),
            Some(name) => client.connect_to(address, name, &[0]),
        }
        .map(drop)
    };
    assert_eq!(connect(3, &[1], None), Err(ConnectError::Unlisted));
    let which = connect(2, &[1, 5], None).expect_err("several").to_string();
    assert!(which.contains("name the one to connect to"), "{which}");
    let unknown = connect(2, &[1], Some("host-9")).expect_err("unknown").to_string();
    assert!(unknown.contains("`host-9`"), "{unknown}");
    // Host 1 is not host 5, and cannot answer in its place.
    assert_eq!(connect(2, &[1, 5], Some("host-5")), Err(ConnectError::NoAnswer));
    assert_eq!(connect(2, &[1, 5], Some("host-1")), Ok(()));
}

#[test]
fn quotas_of_keys_are_refused_without_keys_of_hosts() {
    let quota_ops = |config: &mut Config| config.quota_ops = Some(1 << 20);
    let quota_queued_bytes = |config: &mut Config| config.quota_queued_bytes = Some(1 << 30);
    let sets: [&dyn Fn(&mut Config); 2] = [&quota_ops, &quota_queued_bytes];
    for (name, set) in ["quota_ops", "quota_queued_bytes"].into_iter().zip(sets) {
        let mut shared = config(SHARED);
        set(&mut shared);
        let error = Host::start(shared).err().expect("a setting without effect").to_string();
        assert!(error.contains(&format!("{name} has no effect")), "{error}");
        let mut own = settings(1, &[2]);
        set(&mut own);
        host(own);
    }
}

#[test]
fn the_connections_of_a_peer_have_a_limit_of_ops_together_and_it_is_told() {
    let mut server = settings(1, &[2, 3]);
    // The quota allows three flows.
    server.quota_ops = Some(3 * u64::from(server.max_ops));
    let server = host(server);
    let address = server.local_addr();
    let connect = |host: &Host, flows: usize| host.connect_to(address, "host-1", &vec![0; flows]);
    // Three processes of host 2.
    let two: Vec<Host> = (0..3).map(|_| host(settings(2, &[1]))).collect();
    let first = connect(&two[0], 2).expect("within the quota");
    assert_eq!(connect(&two[1], 2).map(drop), Err(ConnectError::Quota));
    let _second = connect(&two[1], 1).expect("within the quota");
    let _other = connect(&host(settings(3, &[1])), 3).expect("another peer");
    assert_eq!(connect(&two[2], 1).map(drop), Err(ConnectError::Quota));
    // The quota is free again once the server has noticed the end.
    first.close();
    until("the ops of a closed connection to be free", || connect(&two[2], 2).is_ok());
}

#[test]
fn a_region_belongs_to_all_to_named_keys_or_to_a_connection() {
    let three = Three::start();
    let of_two = Grant::connection(&three.clients[0].2);
    for (grant, allowed) in [
        (Grant::all(), [true, true]),
        (Grant::nobody(), [false, false]),
        (of_two, [true, false]),
        (Grant::keys([key(3)]), [false, true]),
        (Grant::keys([key(9), key(3), key(2)]), [true, true]),
    ] {
        let region = three.region(Access::ALL, grant);
        let region = region.key();
        for (client, allowed) in (2..).zip(allowed) {
            let expected = if allowed { Ok(()) } else { NO_REGION };
            assert_eq!(three.ends(client, Request::write(region, 8, vec![1; 8])), expected);
            assert_eq!(three.ends(client, Request::read(region, 0, 64)), expected);
            assert_eq!(three.ends(client, Request::fetch_add(region, 0, 1)), expected);
            assert_eq!(three.ends(client, Request::compare_and_swap(region, 0, 1, 0)), expected);
        }
    }
    // A new connection of the same peer is not the connection that the region was registered for.
    let of_two = three.region(Access::ALL, Grant::connection(&three.clients[0].2));
    let again = host(settings(2, &[1]));
    let other = again.connect(three.server.local_addr()).expect("a second connection");
    let op = other.submit(Request::read(of_two.key(), 0, 8)).expect("room");
    assert_eq!(op.wait().map(drop), NO_REGION);
}

#[test]
fn reads_writes_and_atomic_ops_are_rights_of_their_own() {
    let three = Three::start();
    for access in (1..=7).filter_map(Access::from_bits) {
        let region = three.region(access, Grant::keys([key(2)]));
        let region = region.key();
        for (kind, request) in [
            (Access::READ, Request::read(region, 0, 8)),
            (Access::WRITE, Request::write(region, 0, vec![1; 8])),
            (Access::ATOMIC, Request::fetch_add(region, 0, 1)),
            (Access::ATOMIC, Request::compare_and_swap(region, 0, 0, 0)),
        ] {
            let expected = if access.allows(kind) { Ok(()) } else { NOT_ALLOWED };
            assert_eq!(three.ends(2, request), expected, "{access:?}: {kind:?}");
        }
    }
}

#[test]
fn a_right_that_is_taken_away_ends_at_once() {
    let inline = |mut config: Config| {
        config.mode = Mode::Inline;
        host(config)
    };
    let (server, client) = (inline(settings(1, &[2])), inline(settings(2, &[1])));
    let pair = Pair { client, server };
    let connecting = pair.client.connect_async(pair.server.local_addr(), &[0, 0], None);
    let ours = pair.until(1, connecting).expect("listed");
    let mut theirs = None;
    drive(&[&pair.client, &pair.server], "it is accepted", || {
        theirs = theirs.take().or_else(|| pair.server.try_accept());
        theirs.is_some()
    });
    let size = 4 << 20;
    let grant = || Grant::keys([key(2)]);
    let region = pair.server.register_for(vec![0; size], Access::ALL, grant()).expect("memory");
    let write = || Request::write(region.key(), 0, vec![1; size]);
    let read = || Request::read(region.key(), 0, size);
    // Long ops are outstanding: one is received, the other answered.
    let writing = ours.submit_to(0, write()).expect("room");
    let reading = ours.submit_to(1, read()).expect("room");
    let [client, server] = [&pair.client, &pair.server];
    let received = || client.stats().next().unwrap().payload_received.load(Ordering::Relaxed);
    drive(&[client, server], "bytes arrive", || {
        region.read(|bytes| bytes[0] == 1) && received() > 0
    });
    assert!(region.read(|bytes| bytes[size - 1] == 0) && received() < size as u64, "whole");
    assert!(region.set_grant(Grant::nobody()));
    let after = region.read(<[u8]>::to_vec);
    let withdrawn = OpError::Unknown(Cause::Withdrawn);
    let written = pair.until(1, writing).map(drop);
    assert_eq!(written, Err(withdrawn), "a part of it was applied");
    assert_eq!(pair.until(1, reading).map(drop), Err(withdrawn));
    assert!(region.read(|bytes| bytes == after), "bytes changed after the right had ended");
    // Later ops find no region.
    let refused = pair.until(1, ours.submit(Request::read(region.key(), 0, 8)).expect("room"));
    assert_eq!(refused.map(drop), NO_REGION);
    assert!(region.set_grant(Grant::connection(theirs.as_ref().expect("accepted"))));
    let given = pair.until(1, ours.submit(Request::read(region.key(), 0, 8)).expect("room"));
    assert_eq!(given.map(drop), Ok(()), "it is given back");
    let open = pair.server.register(vec![0; 8], Access::ALL).expect("room");
    assert!(!open.set_grant(Grant::nobody()), "registered for all");
}

#[test]
fn keys_are_replaced_without_the_loss_of_a_connection() {
    let three = Three::start();
    let (client, ours, theirs) = &three.clients[0];
    let entry = |retired, key| Entry { key, retired };
    let server_ring = |old: Option<bool>| {
        let own = |n, name: &str| EntryKey::Own(name.to_owned(), pair(n));
        let old = old.map(|retired| entry(retired, own(1, "host-1")));
        let peers = [2, 3].map(|n| Entry::new(EntryKey::Peer(format!("host-{n}"), key(n))));
        let fixed = [EntryKey::Shared(SharedKey::new([7; 32])), own(11, "host-11")].map(Entry::new);
        KeyRing::of(fixed.into_iter().chain(old).chain(peers)).expect("sound")
    };
    three.server.set_keys(&server_ring(Some(false))).expect("one mode");
    let both = [
        EntryKey::Shared(SharedKey::new([7; 32])),
        EntryKey::Own("host-2".to_owned(), pair(2)),
        EntryKey::Peer("host-11".to_owned(), key(11)),
    ];
    let old = entry(true, EntryKey::Peer("host-1".to_owned(), key(1)));
    let client_ring = KeyRing::of(both.map(Entry::new).into_iter().chain([old])).expect("sound");
    client.set_keys(&client_ring).expect("one mode");
    three.server.set_keys(&server_ring(Some(true))).expect("one mode");
    // The connection under the old key carries messages in both directions.
    for (from, to) in [(ours, theirs), (theirs, ours)] {
        from.submit(Request::message(&b"still here"[..])).expect("room").wait().expect("arrives");
        assert_eq!(&to.receive().expect("a message").bytes[..], b"still here");
    }
    // New connections prove the new key.
    let mut config = settings(2, &[]);
    config.keys = client_ring;
    let fresh = host(config);
    let connection = fresh.connect(three.server.local_addr()).expect("the new key");
    assert_eq!(connection.peer_key(), Some(key(11)));
    assert_eq!((ours.ended(), theirs.ended()), (None, None));
    three.server.set_keys(&server_ring(None)).expect("one mode");
    until("the connection of the removed key ends", || theirs.ended() == Some(End::KeyWithdrawn));
    assert_eq!(connection.ended(), None);
}

/// The attacker is a connected peer of the group that has read the region's key on the wire.
#[test]
fn a_region_key_on_the_wire_is_of_no_use_to_others() {
    let three = Three::start();
    let region = three.region(Access::ALL, Grant::keys([key(2)]));
    let write = || Request::write(region.key(), 0, vec![9; 64]);
    assert_eq!(three.ends(3, write()), NO_REGION);
    assert_eq!(region.read(|bytes| bytes[0]), 0);
    assert_eq!(three.ends(2, write()), Ok(()));
    assert_eq!(region.read(|bytes| bytes[0]), 9);
}
