//! Peers without a key, and replayed packets, cause no crash, use no memory and deliver nothing.

use proptest::prelude::*;

use super::*;

/// An address that belongs to neither host.
pub(super) fn elsewhere() -> SocketAddr {
    "10.6.6.6:666".parse().unwrap()
}

/// Writes the receiver's number of a session into a sealed packet: the first half of its last eight bytes.
fn put_session(datagram: &mut Datagram, id: SessionId) {
    let at = datagram.bytes.len() - 8;
    datagram.bytes[at..at + 4].copy_from_slice(&id.get().to_be_bytes());
}

#[test]
fn packets_sent_back_to_their_sender_open_nothing() {
    let mut world = World::new();
    let ours = world.connect(0, 1);
    // The adversary answers every packet of host 0 with the same packet, as if from host 1.
    for _ in 0..200 {
        world.transmit();
        let Some(datagram) = world.wire.pop_front() else { break };
        let back = Datagram { from: datagram.to, to: datagram.from, bytes: datagram.bytes };
        world.deliver(&back);
    }
    assert!(world.hosts[0].session().is_none());
    world.run_cut(6_000);
    assert_eq!(world.hosts[0].ends(), [(ours, End::NoAnswer)]);

    // A packet of a session, sent back as if from its receiver. If the sender's own number of the session is put in, which
    // nothing authenticates, the packet is opened with the keys of the other direction. Its packet number has not been
    // received there.
    let (mut world, ours, theirs) = World::connected();
    for (from, own) in [(0, ours), (1, theirs)] {
        let datagram = world.sealed(from, own, 0, b"mine");
        let mut back = Datagram { from: datagram.to, to: datagram.from, bytes: datagram.bytes };
        assert_eq!(world.deliver(&back), Some(Dropped::UnknownSession));
        put_session(&mut back, own);
        assert_eq!(world.deliver(&back), Some(Dropped::Forged), "host {from}");
    }
    assert!(world.hosts.iter().all(|host| host.delivered.is_empty()));
}

#[test]
fn a_forged_unknown_ends_nothing_while_the_peer_answers() {
    let (mut world, ours, theirs) = World::connected();
    let bytes = packet::write_unknown(true, theirs.get(), 0).to_vec();
    let forged = Datagram { from: world.address(1), to: world.address(0), bytes };
    for _ in 0..1_000 {
        world.deliver(&forged);
        world.run(1);
    }
    assert!(world.hosts[0].table.is_connected(ours));
    assert!(world.hosts[0].events.is_empty());
    let from_elsewhere = Datagram { from: elsewhere(), ..forged.clone() };
    assert_eq!(world.deliver(&from_elsewhere), Some(Dropped::UnknownSession));
    let other = packet::write_unknown(true, theirs.get() ^ 1, 0).to_vec();
    assert_eq!(world.deliver(&Datagram { bytes: other, ..forged }), Some(Dropped::UnknownSession));
}

/// Limit of the effect of a forged Unknown: the peer must answer a ping within `suspect_timeout`, 500 ms. An attacker that
/// can forge an Unknown can therefore end a session whose peer does not run for longer than that. Repetition has no further
/// effect.
#[test]
fn a_forged_unknown_ends_a_session_whose_peer_pauses_for_longer_than_the_suspect_timeout() {
    let suspect_ms = Config::default().suspect_timeout.as_ps() / Span::from_ms(1).as_ps();
    for (pause_ms, survives) in [(400, true), (suspect_ms + 10, false)] {
        let (mut world, ours, theirs) = World::connected();
        let bytes = packet::write_unknown(true, theirs.get(), 0).to_vec();
        let forged = Datagram { from: world.address(1), to: world.address(0), bytes };
        // Packets to the peer wait in its socket.
        for _ in 0..pause_ms / 10 {
            world.deliver(&forged);
            world.transmit();
            world.pass(10);
        }
        world.settle();
        world.run(1_000);
        let ends = |reason| if survives { vec![] } else { vec![reason] };
        assert_eq!(world.hosts[0].ends(), ends((ours, End::Forgotten)), "{pause_ms} ms");
        // The peer's pongs are then answered by genuine Unknowns.
        assert_eq!(world.hosts[1].ends(), ends((theirs, End::Forgotten)), "{pause_ms} ms");
    }
}

#[test]
fn a_forged_unknown_ends_nothing_though_this_side_was_held_off_its_core() {
    let (mut world, ours, theirs) = World::connected();
    let bytes = packet::write_unknown(true, theirs.get(), 0).to_vec();
    let forged = Datagram { from: world.address(1), to: world.address(0), bytes };
    world.deliver(&forged);
    world.transmit();
    // Longer than `suspect_timeout`: the answer waits in the socket while timers are handled first.
    world.now += Span::from_secs(2);
    world.hosts[0].table.handle_timeout(world.now);
    world.run(1_000);
    assert!(world.hosts[0].table.is_connected(ours));
    // A peer that is gone is still detected, by three pings.
    world.deliver(&forged);
    world.wire.clear();
    for _ in 0..3 {
        world.transmit();
        world.wire.clear();
        world.now += Span::from_secs(2);
        world.hosts[0].table.handle_timeout(world.now);
    }
    let now = world.now;
    world.hosts[0].take_events(now);
    assert_eq!(world.hosts[0].ends(), [(ours, End::Forgotten)]);
}

/// Forged and repeated packets are no sign of life.
#[test]
fn a_silent_peer_is_ended_though_its_packets_are_repeated_and_forged() {
    let (mut world, ours, theirs) = World::connected();
    let real = world.sealed(1, theirs, 0, b"once");
    assert_eq!(world.deliver(&real), None);
    let mut forged = real.clone();
    let tag = forged.bytes.len() - 9; // in front of session and number
    forged.bytes[tag] ^= 1;
    let end = world.now + Config::default().idle_timeout + Span::from_secs(1);
    while world.now < end {
        assert!(world.deliver(&real).is_some() && world.deliver(&forged).is_some());
        world.run_cut(100);
    }
    assert_eq!(world.hosts[0].ends(), [(ours, End::Idle)]);
}

#[test]
fn packets_from_another_address_or_session_are_not_opened() {
    let (mut world, ours, _) = World::connected();
    let datagram = world.sealed(0, ours, 0, b"from here");
    let moved = Datagram { from: elsewhere(), ..datagram.clone() };
    assert_eq!(world.deliver(&moved), Some(Dropped::Address));
    let end = datagram.bytes.len() - 8;
    let mut other = datagram.clone();
    other.bytes[end] ^= 0x80;
    assert_eq!(world.deliver(&other), Some(Dropped::UnknownSession));
    let mut later = datagram.clone();
    later.bytes[end + 7] ^= 64;
    assert_eq!(world.deliver(&later), Some(Dropped::Forged));
    assert_eq!(world.deliver(&datagram), None);
    assert_eq!(world.deliver(&datagram), Some(Dropped::Replay));

    // A packet of an earlier session of the same hosts, with the number of the present session put in, is opened with other
    // keys. Both sessions have had one packet before, so that its packet number is new.
    let (mut world, first, _) = World::connected();
    let mut earlier = world.sealed(0, first, 0, b"from before");
    let now = world.now;
    world.hosts[0].table.close(now, first);
    world.settle();
    let (mut world, second, theirs) = world.join();
    put_session(&mut earlier, theirs);
    assert_eq!(world.deliver(&earlier), Some(Dropped::Forged));
    let mut present = world.sealed(0, second, 0, b"from now");
    let numbers = |datagram: &Datagram| datagram.bytes.last_chunk::<8>().copied();
    assert_eq!(numbers(&earlier), numbers(&present), "they differ in nothing but their keys");
    put_session(&mut present, theirs);
    assert_eq!(world.deliver(&present), None);
    assert_eq!(world.hosts[1].delivered, [(0, b"from now".to_vec())]);
}

#[test]
fn who_holds_one_key_cannot_use_the_session_of_another() {
    let server = KeyRing::new([SharedKey::new([1; 32]), SharedKey::new([2; 32])]).unwrap();
    let one = KeyRing::new([SharedKey::new([1; 32])]).unwrap();
    let two = KeyRing::new([SharedKey::new([2; 32])]).unwrap();
    let mut world = World::with(one, server);
    world.hosts.push(host(3, two, Config::default()));
    let sessions = [world.connect(0, 1), world.connect(2, 1)];
    world.settle();
    let mut datagram = world.sealed(2, sessions[1], 0, b"mine");
    let theirs = world.sealed(0, sessions[0], 0, b"theirs");
    // The packet of one session, with session and even address of the other.
    let end = datagram.bytes.len() - 8;
    let theirs_end = theirs.bytes.len() - 8;
    datagram.bytes[end..end + 4].copy_from_slice(&theirs.bytes[theirs_end..theirs_end + 4]);
    assert_eq!(world.deliver(&datagram), Some(Dropped::Address));
    datagram.from = theirs.from;
    assert_eq!(world.deliver(&datagram), Some(Dropped::Forged));
}

/// Amount of memory that a table retains, as far as floods could make it grow.
fn held(host: &Host) -> [usize; 3] {
    [host.table.len(), host.table.pending.len(), host.table.events.len()]
}

#[test]
fn floods_cost_no_memory() {
    let (mut world, ours, theirs) = World::connected();
    let good = world.sealed(0, ours, 0, b"something to take apart");
    let mut samples: Vec<Datagram> = world.seen.clone();
    samples.push(good);
    let before = held(&world.hosts[1]);
    let mut random = Randomness::from([3; 32]);
    let mut replies = 0;
    for n in 0..100_000usize {
        let noise = random.bytes().expect("a seed");
        let mut datagram = samples[noise[0] as usize % samples.len()].clone();
        match noise[1] % 4 {
            0 => datagram.bytes = noise.repeat(1 + noise[2] as usize % 40),
            1 => datagram.bytes.truncate(noise[2] as usize % datagram.bytes.len()),
            2 => {
                let at = noise[2] as usize % datagram.bytes.len();
                datagram.bytes[at] ^= noise[3] | 1;
            }
            _ => {} // as it was: a replay
        }
        datagram.to = world.address(1);
        datagram.from = match noise[4] % 3 {
            0 => world.address(0),
            1 => SocketAddr::from(([noise[5], noise[6], noise[7], noise[8]], n as u16)),
            _ => elsewhere(),
        };
        world.now += Span::from_us(10);
        world.deliver(&datagram);
        if n % 1_000 == 0 {
            let mut out = [0; MAX_HANDSHAKE_BYTES];
            while world.hosts[1].table.poll_transmit(world.now, &mut out).is_some() {
                replies += 1;
            }
        }
    }
    assert!(world.hosts[1].delivered.len() <= 1, "the good packet, once at most");
    assert_eq!(held(&world.hosts[1]), before);
    assert!(world.hosts[1].table.is_connected(theirs));
    assert!(replies <= 100 * 300, "answers are bounded: {replies}");
    let counters = *world.hosts[1].table.counters();
    assert!(counters.dropped_malformed > 0 && counters.dropped_unproven > 0);
    assert!(counters.dropped_unknown > 0 && counters.dropped_replay > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic_and_are_never_delivered(
        sealed in any::<bool>(),
        start in prop::sample::select(vec![vec![], vec![0, 1, 2], vec![0, 1, 0x42, 1], vec![0, 1, 0x46, 1]]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let ring = if sealed { ring() } else { KeyRing::insecure() };
        let mut host = host(1, ring, Config::default());
        let mut bytes = [start, rest].concat();
        let received = host.table.receive(at(5), elsewhere(), &mut bytes);
        prop_assert!(matches!(received, Received::Dropped(_)));
        prop_assert!(host.table.is_empty());
    }
}
