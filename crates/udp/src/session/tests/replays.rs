//! Handshake packets that were recorded and come again.

use super::adversary::elsewhere;
use super::*;

/// Puts a fresh cookie into an Init of host 0: that of host 1's table for it now.
fn with_fresh_cookie(world: &World, init: &Datagram) -> Datagram {
    let packet = packet::Handshake::parse(&init.bytes).expect("an Init");
    let (now, from, table) = (world.now, init.from, &world.hosts[1].table);
    let cookie = table.baker.make(now, from, packet.key, packet.initiator);
    let mut fresh = init.clone();
    assert_ne!(fresh.bytes[16..32], cookie.0);
    fresh.bytes[16..32].copy_from_slice(&cookie.0);
    fresh
}

/// Proves a handshake packet of host 0 again, as a holder of the shared key can.
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
        // While the session lives it is known; from elsewhere the cookie is wrong.
        assert_eq!(world.deliver(&init), None);
        let moved = Datagram { from: elsewhere(), ..init.clone() };
        assert_eq!(world.deliver(&moved), Some(Dropped::Unproven));
        assert_eq!(world.hosts[1].table.len(), 1);
        world.settle();
        // After the cookie's life it is nothing, even with a fresh cookie put in: a stranger cannot prove that packet, and
        // if a member of the group proves it again, its Noise message is still bound to the old cookie.
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
