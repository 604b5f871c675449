//! Recorded handshake packets that are sent again.

use super::adversary::elsewhere;
use super::*;

/// Puts a fresh cookie into an Init of host 0: the one that host 1's table would issue now.
fn with_fresh_cookie(world: &World, init: &Datagram) -> Datagram {
    let packet = packet::Handshake::parse(&init.bytes).expect("an Init");
    let (now, from, table) = (world.now, init.from, &world.hosts[1].table);
    let cookie = table.baker.make(now, from, packet.key, packet.initiator);
    let mut fresh = init.clone();
    assert_ne!(fresh.bytes[16..32], cookie.0);
    fresh.bytes[16..32].copy_from_slice(&cookie.0);
    fresh
}

/// Makes the proof of a handshake packet of host 0 again, as a holder of the shared key can.
fn proven_again(world: &World, mut datagram: Datagram) -> Datagram {
    let keys = &world.hosts[0].table.keys;
    let credential = keys.get(keys.towards(None).unwrap()).unwrap();
    let end = datagram.bytes.len() - 16;
    let proof = credential.mac(&datagram.bytes[..end]);
    datagram.bytes[end..].copy_from_slice(&proof);
    datagram
}

/// The first Init that was sent.
fn init(world: &World) -> Datagram {
    world.seen.iter().find(|d| d.bytes[2] == 0x42).expect("an Init").clone()
}

/// Worlds under a shared key alone, and with keys of hosts.
fn worlds() -> [World; 2] {
    [World::new(), World::with(identified(1, &[2]), identified(2, &[1]))]
}

#[test]
fn a_replayed_init_opens_nothing() {
    for world in worlds() {
        let (mut world, ..) = world.join();
        let init = init(&world);
        // While the session lives, the Init is known. From another address, its cookie is wrong.
        assert_eq!(world.deliver(&init), None);
        let moved = Datagram { from: elsewhere(), ..init.clone() };
        assert_eq!(world.deliver(&moved), Some(Dropped::Unproven));
        assert_eq!(world.hosts[1].table.len(), 1);
        world.settle();
        // After the cookie's lifetime the Init is useless, even with a fresh cookie put in. A sender without the key cannot
        // prove that packet. If a member of the group proves it again, its Noise message is still bound to the old cookie.
        world.run(10_000);
        assert_eq!(world.deliver(&init), Some(Dropped::Unproven));
        let fresh = with_fresh_cookie(&world, &init);
        assert_eq!(world.deliver(&fresh), Some(Dropped::Unproven));
        let proven = proven_again(&world, fresh);
        assert_eq!(world.deliver(&proven), Some(Dropped::Unproven));
        assert!(world.hosts[1].events.is_empty());
    }
}

#[test]
fn an_init_survives_no_restart() {
    for world in worlds() {
        let (mut world, ..) = world.join();
        let init = init(&world);
        let keys = world.hosts[1].table.keys.clone();
        world.hosts[1].table = Sessions::new(Config::default(), keys, [78; 32]).unwrap();
        assert_eq!(world.deliver(&init), Some(Dropped::Unproven), "the cookie of another secret");
        let proven = proven_again(&world, with_fresh_cookie(&world, &init));
        assert_eq!(world.deliver(&proven), Some(Dropped::Unproven), "bound to the old cookie");
        assert!(world.hosts[1].table.is_empty() && world.hosts[1].events.is_empty());
    }
}

#[test]
fn an_init_replayed_after_the_end_ends_unconfirmed() {
    let (mut world, ours, _) = World::connected();
    let init = init(&world);
    world.hosts[0].table.close(world.now, ours);
    world.settle();
    world.hosts[1].events.clear();
    for _ in 0..100 {
        world.deliver(&init);
    }
    assert_eq!(world.hosts[1].table.len(), 1, "one at most");
    assert!(world.hosts[1].session().is_none(), "never connected");
    world.run(6_000);
    assert!(world.hosts[1].table.is_empty());
}

#[test]
fn a_replayed_init_does_not_end_the_session_in_use() {
    let (mut world, ours, theirs) = World::connected();
    let inits: Vec<Datagram> = world.seen.iter().filter(|d| d.bytes[2] < 0x44).cloned().collect();
    for datagram in inits.iter().cycle().take(1_000) {
        world.deliver(datagram);
    }
    world.settle();
    let datagram = world.sealed(0, ours, 0, b"still there");
    assert_eq!(world.deliver(&datagram), None);
    assert!(world.hosts[1].table.is_connected(theirs));
    assert!(world.hosts[0].ends().is_empty() && world.hosts[1].ends().is_empty());
}

/// A cookie is valid for 10 s at most, here for the whole 10 s, and a request that no peer confirms is given up after 5 s.
#[test]
fn an_init_replayed_after_the_end_asks_the_application_once_per_handshake_timeout() {
    for world in worlds() {
        let (mut world, ours, _) = world.join();
        let init = init(&world);
        world.hosts[0].table.close(world.now, ours);
        world.settle();
        world.hosts[1].events.clear();
        let start = world.now;
        let mut asked = Vec::new();
        while world.now < start + Span::from_secs(12) {
            world.deliver(&init);
            for event in world.hosts[1].events.drain(..) {
                match event {
                    Event::Incoming { .. } => asked.push(world.now.since(start)),
                    Event::Ended { reason: End::NoAnswer, .. } => {}
                    other => panic!("{other:?}"),
                }
            }
            let table = &world.hosts[1].table;
            assert!(table.len() <= 1 && table.pending.len() <= 1, "one place at most");
            world.run(10);
        }
        assert_eq!(asked, [0, 5].map(Span::from_secs));
        assert!(world.hosts[1].table.is_empty(), "nothing is left after the cookie's life");
        // While a request is pending, its Init costs no Diffie-Hellman.
        assert_eq!(world.hosts[1].table.counters().dropped_rate, 0);
    }
}

/// A refused session is forgotten, so each replay of its Init is a new request, within the rate of handshakes of its address:
/// 256 per second, and a quarter of that at once.
#[test]
fn an_init_that_is_refused_asks_again_as_often_as_the_rate_of_handshakes_allows() {
    let mut world = World::new();
    world.hosts[1].accepts = false;
    world.connect(0, 1);
    world.deliver_next(2);
    world.transmit();
    let init = init(&world);
    let mut asked = 0;
    for _ in 0..10_000 {
        world.deliver(&init);
        for event in std::mem::take(&mut world.hosts[1].events) {
            let Event::Incoming { session, .. } = event else { panic!("{event:?}") };
            asked += 1;
            world.hosts[1].table.refuse(session);
        }
        world.now += Span::from_ms(1);
    }
    assert!((2_560..=2_560 + 64).contains(&asked), "{asked} in 10 s");
    assert!(world.hosts[1].table.is_empty());
    assert_eq!(world.deliver(&init), Some(Dropped::Unproven), "the cookie's life is over");
}

/// Host `b` connects to host `a`, with which it had a session before. The Init of that session is replayed at each step. Both
/// orders of the process numbers are tested.
#[test]
fn a_replayed_init_does_not_end_an_attempt_of_this_host() {
    for (a, b) in [(0, 1), (1, 0)] {
        for steps in 0..6 {
            let mut world = World::new();
            let before = world.connect(a, b);
            world.settle();
            let init = init(&world);
            world.hosts[a].table.close(world.now, before);
            world.settle();
            world.hosts.iter_mut().for_each(|host| host.events.clear());
            let ours = world.connect(b, a);
            world.deliver_next(steps);
            world.deliver(&init);
            world.run(6_000);
            assert!(world.hosts[b].table.is_connected(ours), "{b}, {steps} steps");
            let ends = world.hosts[b].ends();
            assert!(ends.iter().all(|(_, end)| *end == End::NoAnswer), "{b}, {steps}: {ends:?}");
            assert_eq!(world.hosts[a].ends(), []);
            assert_eq!((world.hosts[0].table.len(), world.hosts[1].table.len()), (1, 1));
        }
    }
}
