//! Quotas of keys: one greedy or broken peer keeps no other out.

use super::*;

/// A server, host 2, that lists hosts 1 and 3; host 1 has another address for each session.
fn world(config: Config) -> World {
    let mut world = World::with(identified(1, &[2]), identified(2, &[1, 3]));
    world.hosts[1] = host(2, identified(2, &[1, 3]), config);
    world.hosts.push(host(3, identified(3, &[2]), Config::default()));
    world
}

/// Another process of host 1, at an address of its own.
fn again(world: &mut World, n: u8) -> usize {
    let mut fresh = host(1, identified(1, &[2]), Config::default());
    fresh.address = SocketAddr::from(([10, 1, 0, n], 7000));
    fresh.table = Sessions::new(Config::default(), identified(1, &[2]), [100 + n; 32]).unwrap();
    world.hosts.push(fresh);
    world.hosts.len() - 1
}

#[test]
fn a_peer_has_a_quarter_of_the_sessions_and_is_told_so() {
    let mut world = world(Config { max_sessions: 8, max_pending: 8, ..Config::default() });
    for n in 0..4 {
        let from = again(&mut world, n);
        world.connect(from, 1);
        world.settle();
        let told: &[Told] = if n < 2 { &[] } else { &[Told::Quota] };
        assert_eq!(world.hosts[from].told(), told, "{n}");
    }
    let other = world.connect(2, 1);
    world.settle();
    assert!(world.hosts[2].table.is_connected(other), "another peer is not affected");
    // A session that ends makes room.
    let first = world.hosts[3].session().expect("connected");
    let now = world.now;
    world.hosts[3].table.close(now, first);
    world.settle();
    let from = again(&mut world, 9);
    let fresh = world.connect(from, 1);
    world.settle();
    assert!(world.hosts[from].table.is_connected(fresh));
}

#[test]
fn a_peer_that_restarts_at_its_address_is_within_its_quota() {
    let config = Config { quota_sessions: Some(1), ..Config::default() };
    let (mut world, ..) = world(config).join();
    for seed in 50..53 {
        world.hosts[0].table =
            Sessions::new(Config::default(), identified(1, &[2]), [seed; 32]).unwrap();
        let again = world.connect(0, 1);
        world.settle();
        assert!(world.hosts[0].table.is_connected(again), "{seed}");
    }
    assert_eq!(world.hosts[1].table.len(), 1);
}

#[test]
fn unfinished_handshakes_of_a_peer_leave_room_for_others() {
    let mut world = world(Config { max_pending: 8, ..Config::default() });
    world.hosts[1].accepts = false;
    for n in 0..6 {
        let from = again(&mut world, n);
        world.connect(from, 1);
        world.settle();
    }
    assert_eq!(world.hosts[1].table.len(), 2, "a quarter of eight");
    world.hosts[1].accepts = true;
    let other = world.connect(2, 1);
    world.settle();
    assert!(world.hosts[2].table.is_connected(other));
    // They end, and with them their places.
    world.run(6_000);
    let from = again(&mut world, 9);
    let fresh = world.connect(from, 1);
    world.settle();
    assert!(world.hosts[from].table.is_connected(fresh));
}

/// Every Init has another number and a cookie: a member of the group that means it, from one address.
#[test]
fn handshakes_from_one_address_are_limited_before_they_cost_a_diffie_hellman() {
    let mut world = world(Config { handshake_rate: 40, ..Config::default() });
    world.hosts[1].accepts = false;
    let mut computed = 0;
    // Seeds that no other host has.
    for n in 100..200 {
        world.hosts[0].table =
            Sessions::new(Config::default(), identified(1, &[2]), [n; 32]).unwrap();
        world.connect(0, 1);
        world.settle();
        let counters = *world.hosts[1].table.counters();
        computed = 100 - counters.dropped_rate;
    }
    assert_eq!(computed, 10, "a quarter second of 40 per second");
    // Another peer, at another address, is served meanwhile.
    world.hosts[1].accepts = true;
    let other = world.connect(2, 1);
    world.settle();
    assert!(world.hosts[2].table.is_connected(other));
}

/// A peer has several addresses.
#[test]
fn handshakes_of_one_key_are_limited_whatever_its_address() {
    let mut world = world(Config { handshake_rate: 40, ..Config::default() });
    for n in 0..30 {
        let from = again(&mut world, n);
        world.connect(from, 1);
        world.settle();
    }
    let connected = world.hosts[1].table.len();
    assert_eq!(connected, 10);
    assert_eq!(world.hosts[1].table.counters().dropped_rate, 20);
}

#[test]
fn the_holders_of_a_shared_key_have_one_quota_if_it_is_set() {
    let mut world = World::new();
    let config = Config { quota_sessions: Some(2), ..Config::default() };
    world.hosts[1] = host(2, ring(), config);
    world.hosts.extend((3..6).map(|n| host(n, ring(), Config::default())));
    let mut told = Vec::new();
    for from in [0, 2, 3] {
        world.connect(from, 1);
        world.settle();
        told.extend(world.hosts[from].told());
    }
    assert_eq!(told, [Told::Quota]);
}
