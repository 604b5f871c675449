//! Quotas of keys: a greedy or broken peer does not exclude other peers.

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
    // The end of a session makes room.
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
    // When these requests end, their slots are free again.
    world.run(6_000);
    let from = again(&mut world, 9);
    let fresh = world.connect(from, 1);
    world.settle();
    assert!(world.hosts[from].table.is_connected(fresh));
}

/// The server confirms nothing. Three processes of one peer request a session, or three holders of a shared key.
#[test]
fn a_quota_of_unfinished_handshakes_that_is_set_holds_for_a_peer_and_for_a_shared_key() {
    let config = Config { quota_pending: Some(2), ..Config::default() };
    let mut of_hosts = world(config.clone());
    let processes = [0, 1, 2].map(|n| again(&mut of_hosts, n));
    let mut shared = World::new();
    shared.hosts[1] = host(2, ring(), config);
    shared.hosts.extend((3..5).map(|n| host(n, ring(), Config::default())));
    for (mut world, from) in [(of_hosts, processes), (shared, [0, 2, 3])] {
        world.hosts[1].accepts = false;
        for host in from {
            world.connect(host, 1);
            world.settle();
        }
        let told = from.map(|host| world.hosts[host].told());
        assert_eq!(told, [vec![], vec![], vec![Told::Quota]]);
        // A handshake that is finished no longer counts.
        let Event::Incoming { session, .. } = world.hosts[1].events[0] else { panic!("first") };
        let now = world.now;
        world.hosts[1].table.accept(now, session, b"welcome").unwrap();
        world.settle();
        assert!(world.hosts[1].table.is_connected(session));
        world.connect(from[2], 1);
        world.settle();
        assert_eq!(world.hosts[from[2]].told().len(), 1, "the refusal of before");
        assert_eq!(world.hosts[1].table.len(), 3);
    }
}

/// Every Init has another number and a cookie: a malicious member of the group sends them from one address.
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
    // Another peer, at another address, is still served.
    world.hosts[1].accepts = true;
    let other = world.connect(2, 1);
    // Two of the earlier Inits are handled before it.
    world.run(3);
    assert!(world.hosts[2].table.is_connected(other));
}

/// The peer has several addresses.
#[test]
fn handshakes_of_one_key_are_limited_whatever_its_address() {
    let mut world = world(Config { handshake_rate: 40, ..Config::default() });
    for n in 0..30 {
        let from = again(&mut world, n);
        world.connect(from, 1);
        world.settle();
    }
    // All but eight wait for their turn, 1 ms each, although the rate of all addresses is lower. Meanwhile the rate of the
    // key admits one more.
    world.run(22);
    let connected = world.hosts[1].table.len();
    assert_eq!(connected, 11);
    assert_eq!(world.hosts[1].table.counters().dropped_rate, 19);
}

/// Three processes at one address, with a port each. A quarter of the rate may arrive at once: 16 handshakes, or 17.
#[test]
fn a_handshake_of_an_unlisted_or_retired_host_counts_16_times() {
    let retired = || {
        let group = EntryKey::Shared(SharedKey::new([42; 32]));
        let own = EntryKey::Own("host-2".to_owned(), pair(2));
        let peer = EntryKey::Peer("host-1".to_owned(), pair(1).public());
        let peer = Entry { key: peer, retired: true };
        KeyRing::of([group, own].map(Entry::new).into_iter().chain([peer])).unwrap()
    };
    for (n, server, accept_unlisted) in [(1, retired(), true), (20, identified(2, &[1]), false)] {
        for (handshake_rate, answered) in [(64, 1), (68, 2)] {
            let config = Config { handshake_rate, accept_unlisted, ..Config::default() };
            let mut world = world(Config::default());
            world.hosts[1] = host(2, server.clone(), config);
            let mut told = Vec::new();
            for port in 0..3 {
                let mut process = host(n, identified(n, &[2]), Config::default());
                process.address = ([10, 0, 0, 9], 7000 + u16::from(port)).into();
                process.table =
                    Sessions::new(Config::default(), identified(n, &[2]), [100 + port; 32])
                        .unwrap();
                world.hosts.push(process);
                let from = world.hosts.len() - 1;
                world.connect(from, 1);
                world.settle();
                told.extend(world.hosts[from].told());
            }
            assert_eq!(told, vec![Told::Unlisted; answered], "host {n}, rate {handshake_rate}");
            let dropped = world.hosts[1].table.counters().dropped_rate;
            assert_eq!(dropped, 3 - answered as u64, "host {n}, rate {handshake_rate}");
        }
    }
}

/// Twenty peers request a session at the same time. Eight handshakes have their turn at once, and the others follow one after
/// the other, in the order of their arrival. A repeated Init in the meantime is not another handshake.
#[test]
fn first_messages_of_a_burst_wait_for_their_turns() {
    let mut world = world(Config::default());
    let asked: Vec<_> = (0..20)
        .map(|n| {
            let from = again(&mut world, n);
            (from, world.connect(from, 1))
        })
        .collect();
    world.settle();
    let connected = |world: &World| {
        asked.iter().take_while(|&&(host, id)| world.hosts[host].table.is_connected(id)).count()
    };
    assert_eq!(connected(&world), 8);
    let inits: Vec<_> = world.seen.iter().filter(|d| d.bytes[2] == 0x42).cloned().collect();
    for init in &inits {
        world.deliver(init);
    }
    for waited in 1..=12 {
        world.run(1);
        assert_eq!(connected(&world), 8 + waited);
    }
    world.run(10);
    assert_eq!(world.hosts[1].table.turns.taken, 20);
    assert_eq!(world.hosts[1].table.counters().dropped_rate, 0);
}

/// With a higher handshake rate, a host answers handshakes faster: 40,000 per second from all addresses.
#[test]
fn turns_are_as_fast_as_the_rate_of_handshakes() {
    let mut world = world(Config { handshake_rate: 10_000, ..Config::default() });
    let asked: Vec<_> = (0..48)
        .map(|n| {
            let from = again(&mut world, n);
            (from, world.connect(from, 1))
        })
        .collect();
    world.settle();
    world.run(1);
    assert!(asked.iter().all(|&(host, id)| world.hosts[host].table.is_connected(id)));
}

/// As [`world`], with a server that accepts unlisted peers.
fn open_world(config: Config) -> World {
    world(Config { accept_unlisted: true, ..config })
}

/// Host `n`, which the server does not list.
fn unlisted(world: &mut World, n: u8) -> usize {
    world.hosts.push(host(n, identified(n, &[2]), Config::default()));
    world.hosts.len() - 1
}

/// A holder of the shared key can make any number of key pairs.
#[test]
fn unlisted_keys_together_leave_room_for_listed_ones() {
    for accepts in [true, false] {
        let mut world = open_world(Config { max_sessions: 8, max_pending: 8, ..Config::default() });
        world.hosts[1].accepts = accepts;
        for n in 0..8 {
            let from = unlisted(&mut world, 20 + n);
            world.connect(from, 1);
            world.run(1);
            let told: &[Told] = if n < 6 { &[] } else { &[Told::Quota] };
            assert_eq!(world.hosts[from].told(), told, "{n}");
        }
        assert_eq!(world.hosts[1].table.len(), 6, "three quarters of eight");
        world.hosts[1].accepts = true;
        let other = world.connect(2, 1);
        world.run(1);
        assert!(world.hosts[2].table.is_connected(other));
        // The end of a session makes room, and so does a handshake that is given up.
        world.run(6_000);
        if accepts {
            let first = world.hosts[3].session().expect("connected");
            let now = world.now;
            world.hosts[3].table.close(now, first);
            world.settle();
        }
        let from = unlisted(&mut world, 40);
        let fresh = world.connect(from, 1);
        world.settle();
        assert!(world.hosts[from].table.is_connected(fresh), "{accepts}");
    }
}

#[test]
fn an_unlisted_key_has_its_quota_too() {
    let mut world = open_world(Config { quota_sessions: Some(1), ..Config::default() });
    let from = unlisted(&mut world, 20);
    let again = unlisted(&mut world, 20);
    world.hosts[again].table =
        Sessions::new(Config::default(), identified(20, &[2]), [99; 32]).unwrap();
    world.hosts[again].address = SocketAddr::from(([10, 1, 0, 20], 7000));
    for from in [from, again] {
        world.connect(from, 1);
        world.settle();
    }
    assert_eq!((world.hosts[from].told(), world.hosts[again].told()), (vec![], vec![Told::Quota]));
}

/// Once the unlisted peers have used up their room, another key does not give another Diffie-Hellman: each further handshake
/// counts as a refused one.
#[test]
fn unlisted_keys_beyond_their_room_are_soon_dropped_before_a_diffie_hellman() {
    let config =
        Config { max_sessions: 8, max_pending: 8, handshake_rate: 80, ..Config::default() };
    let mut world = open_world(config);
    for n in 0..20 {
        let from = unlisted(&mut world, 20 + n);
        world.hosts[from].address = SocketAddr::from(([10, 0, 0, 9], 7000 + u16::from(n)));
        world.connect(from, 1);
        world.settle();
    }
    // Twenty may come at once: six that are accepted, and one that counts 16 times.
    assert_eq!(world.hosts[1].table.counters().dropped_rate, 13);
}

/// The peers are at one address, with different ports and different keys.
#[test]
fn unlisted_keys_at_one_address_have_one_share() {
    let mut world = open_world(Config::default());
    world.connect(0, 1);
    world.settle();
    for n in [20, 21] {
        let from = unlisted(&mut world, n);
        world.hosts[from].address = SocketAddr::from(([10, 0, 0, 1], 7000 + u16::from(n)));
        world.connect(from, 1);
        world.settle();
    }
    let accounts: Vec<_> = world.hosts[1].table.all().map(|session| session.account).collect();
    assert_eq!(accounts, [Some(0), Some(1), Some(1)], "a listed peer has a share of its own");
}

/// Two holders are at one address, with different ports, and the third is at another address.
#[test]
fn holders_of_a_shared_key_have_one_share_per_address() {
    let mut world = World::new();
    world.hosts.extend([3, 4].map(|n| host(n, ring(), Config::default())));
    world.hosts[2].address = SocketAddr::from(([10, 0, 0, 1], 7001));
    for from in [0, 2, 3] {
        world.connect(from, 1);
        world.settle();
    }
    let accounts: Vec<_> = world.hosts[1].table.all().map(|session| session.account).collect();
    assert_eq!(accounts, [Some(0), Some(0), Some(1)]);
}

/// The server lists a peer that was unlisted, and removes a listed peer from its ring.
#[test]
fn sessions_count_for_whom_the_ring_lists_now() {
    let mut world = open_world(Config { max_sessions: 4, max_pending: 4, ..Config::default() });
    let connect = |world: &mut World, from: usize| {
        world.connect(from, 1);
        world.settle();
        world.hosts[from].told().is_empty()
    };
    let [first, second, third, fourth] = [20, 21, 22, 23].map(|n| unlisted(&mut world, n));
    assert!([first, second, third].iter().all(|&from| connect(&mut world, from)));
    assert!(!connect(&mut world, fourth), "three quarters of four");
    let now = world.now;
    let listed = identified(2, &[1, 3, 20]);
    world.hosts[1].table.set_keys(now, listed).unwrap();
    let fifth = unlisted(&mut world, 24);
    assert!(connect(&mut world, fifth), "one of three is listed");
    // The second peer's session ends, and the first peer is unlisted again: there is no room for a fourth session.
    let ours = world.hosts[second].session().expect("connected");
    world.hosts[second].table.close(now, ours);
    world.settle();
    world.hosts[1].table.set_keys(now, identified(2, &[1, 3])).unwrap();
    let sixth = unlisted(&mut world, 25);
    assert!(!connect(&mut world, sixth), "three are unlisted again");
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
