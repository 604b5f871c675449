//! Connected sessions: packets, keys, silence and ends.

use apus_wire::{Extension, OwnFields, Signal, SwitchView};
use proptest::prelude::*;

use super::*;

#[test]
fn packets_pass_both_ways_readable_header_and_hidden_payload() {
    let (mut world, ours, theirs) = World::connected();
    let secret = b"a payload that nobody reads";
    let datagram = world.sealed(0, ours, 5, secret);
    let (header, start) = apus_wire::decode(&datagram.bytes).unwrap();
    assert_eq!(header, message(5, secret.len()), "Bolt §4.3: the header stays readable");
    assert!(!datagram.bytes.windows(6).any(|w| secret.windows(6).any(|s| s == w)));
    assert_eq!(datagram.bytes.len(), start + secret.len() + 24);
    assert_eq!(world.deliver(&datagram), None);
    let back = world.sealed(1, theirs, 0, b"");
    assert_eq!(world.deliver(&back), None);
    assert_eq!(world.hosts[1].delivered, [(5, secret.to_vec())]);
    assert_eq!(world.hosts[0].delivered, [(0, vec![])]);
}

#[test]
fn bolt_4_3_no_bit_of_a_packet_without_extension_may_change() {
    let (mut world, ours, _) = World::connected();
    let datagram = world.sealed(0, ours, 5, b"payload");
    for bit in 0..datagram.bytes.len() * 8 {
        let mut changed = datagram.clone();
        changed.bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(world.deliver(&changed).is_some(), "bit {bit}");
    }
    assert!(world.hosts[1].delivered.is_empty());
    assert_eq!(world.deliver(&datagram), None, "nothing of that has hurt the session");
}

/// `t_data_tx` of [`bolt`].
const SENT: u32 = 77;

/// Bolt's fields with [`SENT`] and these flags of switches.
fn bolt(flags: &[u8]) -> Extension<'_> {
    let authenticated = &[0, 0, 0, 0, SENT as u8];
    Extension::Own(OwnFields { id: 1, is_echo: false, writable: flags, authenticated })
}

/// A sealed packet of Bolt from host 0, with the flag INC.
fn of_bolt(world: &mut World, ours: SessionId) -> Datagram {
    let header = message(5, 7);
    let extension = bolt(&[4]);
    let mut bytes = vec![0; header.encoded_len() + extension.encoded_len() + 7 + 24];
    let (now, table) = (world.now, &mut world.hosts[0].table);
    let packet = Extended { header: &header, extension };
    let length = table.seal(now, ours, packet, b"payload", &mut bytes).unwrap();
    assert_eq!(length, bytes.len());
    Datagram { from: world.address(0), to: world.address(1), bytes }
}

#[test]
fn bolt_4_3_switches_may_write_their_byte_and_nothing_else() {
    let (mut world, ours, theirs) = World::connected();
    let datagram = of_bolt(&mut world, ours);
    assert!(!datagram.bytes.windows(7).any(|bytes| bytes == b"payload"), "encrypted");
    for bit in (0..datagram.bytes.len() * 8).filter(|bit| !(8..16).contains(bit)) {
        let mut changed = datagram.clone();
        changed.bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(world.deliver(&changed).is_some(), "bit {bit}");
    }
    assert!(world.hosts[1].delivered.is_empty());
    // The switch has no key.
    let mut bytes = datagram.bytes.clone();
    SwitchView::new(&mut bytes).unwrap().writable()[0] = 8;
    let (now, from) = (world.now, world.address(0));
    let received = world.hosts[1].table.receive(now, from, &mut bytes);
    let expected = Received::Packet {
        session: theirs,
        path: 0,
        header: message(5, 7),
        extension: bolt(&[8]),
        payload: b"payload",
    };
    assert_eq!(received, expected);
}

#[test]
fn bolt_4_3_a_switchs_signal_is_taken_from_the_peers_address_only() {
    let (mut world, ours, _) = World::connected();
    let mut datagram = of_bolt(&mut world, ours);
    let src = SwitchView::new(&mut datagram.bytes).unwrap().signal(9_000, 6, SENT).unwrap();
    let mut receive = |from: SocketAddr, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        match world.hosts[0].table.receive(world.now, from, &mut bytes) {
            Received::Signal { session, header } => Ok((session, header)),
            Received::Dropped(why) => Err(why),
            other => unreachable!("{other:?}"),
        }
    };
    let peer = datagram.to;
    let body = Body::Signal(Signal { queue: 9_000, link_rate: 6, sent: SENT });
    assert_eq!(receive(peer, &src), Ok((ours, Header { body, ..message(5, 7) })));
    let gone = receive(datagram.from, &src);
    assert_eq!(gone, Err(Dropped::UnknownSession), "no session with that address");
    for bit in 24..src.len() * 8 {
        let mut damaged = src;
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(receive(peer, &damaged), Err(Dropped::Malformed), "bit {bit}");
    }
    assert_eq!(receive(peer, &src[..26]), Err(Dropped::Malformed));
}

/// A host whose handshake has no answer yet asks with one byte whether the port is open (`sys::reach`).
#[test]
fn a_probe_of_an_open_port_is_counted_and_is_no_fault() {
    let (mut world, ours, _) = World::connected();
    let before = *world.hosts[0].table.counters();
    let from = world.hosts[1].address;
    let mut receive = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        matches!(world.hosts[0].table.receive(world.now, from, &mut bytes), Received::Own)
    };
    assert!(receive(&REACH_PROBE));
    assert!(!receive(&[]) && !receive(&[1]) && !receive(&[0, 0]));
    let after = *world.hosts[0].table.counters();
    assert_eq!(after.reach_probes - before.reach_probes, 1);
    assert_eq!(after.dropped_malformed - before.dropped_malformed, 3);
    assert!(world.hosts[0].table.is_connected(ours));
}

#[test]
fn a_short_buffer_uses_nothing_up() {
    let (mut world, ours, _) = World::connected();
    let now = world.now;
    let header = message(0, 10);
    let needed = header.encoded_len() + 10 + 24;
    let error = world.hosts[0].table.seal(now, ours, &header, &[0; 10], &mut vec![0; needed - 1]);
    let available = needed - 1;
    let short = apus_wire::EncodeError::BufferTooSmall { needed, available };
    assert_eq!(error, Err(SealError::Encode(short)));
    let mut longer = vec![0xee; needed + 3];
    assert_eq!(world.hosts[0].table.seal(now, ours, &header, &[0; 10], &mut longer), Ok(needed));
    assert_eq!(longer[needed..], [0xee; 3]);
}

#[test]
fn keys_change_with_age_and_nothing_is_lost() {
    let (mut world, ours, theirs) = World::connected();
    for round in 0..2_000u64 {
        // Packets overtake each other within each round, also across the change of keys.
        let first = world.sealed(0, ours, 2 * round, b"a");
        world.now += Span::from_ms(600);
        let second = world.sealed(0, ours, 2 * round + 1, b"b");
        let back = world.sealed(1, theirs, round, b"c");
        for datagram in [&second, &first, &back] {
            assert_eq!(world.deliver(datagram), None, "round {round}");
        }
        world.settle();
    }
    assert_eq!(world.hosts[1].delivered.len(), 4_000);
    // 1200 s: the sender's key changes every 120 s, and the peer's follows.
    let changes = [0, 1].map(|h| world.hosts[h].table.counters().key_changes);
    assert!((9..=11).contains(&changes[0]) && (9..=11).contains(&changes[1]), "{changes:?}");
}

/// During an outage no key is replaced a second time: the peer can follow only one change.
#[test]
fn keys_change_at_most_once_while_the_peer_hears_nothing() {
    let config = || Config { key_life: Span::from_ms(500), ..Config::default() };
    let mut world = World::new();
    world.hosts = vec![host(1, ring(), config()), host(2, ring(), config())];
    let (mut world, ours, theirs) = world.join();
    for round in 0..20u64 {
        world.now += Span::from_ms(600);
        let _lost = world.sealed(0, ours, round, b"lost");
    }
    // The peer's key has the same age, and the peer sends too.
    let back = world.sealed(1, theirs, 0, b"back");
    assert_eq!(world.deliver(&back), None);
    let after = world.sealed(0, ours, 20, b"after");
    assert_eq!(world.deliver(&after), None, "the peer follows");
}

#[test]
fn silence_is_broken_by_pings_and_a_dead_peer_is_given_up() {
    let (mut world, ours, theirs) = World::connected();
    world.run(3_540_000); // between changes of keys
    assert!(world.hosts[0].table.is_connected(ours) && world.hosts[1].table.is_connected(theirs));
    // Pings are sealed too. Each change of a key in this hour was an event.
    for host in &mut world.hosts {
        let changes =
            host.events.drain(..).filter(|e| matches!(e, Event::KeyChanged { .. })).count();
        assert_eq!(changes as u64, host.table.counters().key_changes);
        assert!(changes > 0);
    }
    let since = world.now;
    world.run_cut(9_000);
    assert!(world.hosts[0].events.is_empty(), "only given up after 15 s");
    world.run_cut(21_000 - 9_000);
    assert_eq!(world.hosts[0].ends(), [(ours, End::Idle)]);
    assert_eq!(world.hosts[1].ends(), [(theirs, End::Idle)]);
    assert!(world.hosts[0].table.is_empty());
    assert!(world.now.since(since) <= Span::from_secs(21));
}

/// An idle host is woken only occasionally, for all its sessions together, whenever they were opened.
#[test]
fn idle_sessions_are_pinged_together() {
    let mut world = World::with(ring(), ring());
    world.hosts.extend((3..=30).map(|n| host(n, ring(), Config::default())));
    for n in 1..world.hosts.len() {
        world.connect(n, 0);
        world.run(137);
    }
    world.run(20_000);
    world.seen.clear();
    let mut times = std::collections::BTreeSet::new();
    for ms in 0..10_000 {
        world.run(1);
        if !world.seen.is_empty() {
            times.insert(ms);
            world.seen.clear();
        }
    }
    // Twice in ten seconds, by the host that accepted the sessions.
    assert!((1..=2).contains(&times.len()), "at {times:?} ms");
}

/// An Unknown ends with the number of a packet and zeros, which may be mistaken for the guard of a sealed packet.
#[test]
fn only_guarded_packets_have_a_nonce() {
    let (mut world, ours, _) = World::connected();
    let sealed = world.sealed(0, ours, 0, b"payload").bytes;
    let table = &world.hosts[0].table;
    assert!(table.nonce_of(&sealed).is_some());
    let remote = table.get(ours).expect("connected").remote;
    let unknown = packet::write_unknown(true, 7, remote);
    assert_eq!(table.nonce_of(&unknown), None);
    // A packet may reach the network after its session has ended, when another session has the same number of the peer.
    let nonce = table.nonce_of(&sealed);
    world.hosts[0].table.remove(ours);
    assert_eq!(world.hosts[0].table.nonce_of(&sealed), nonce);
}

#[test]
fn a_peer_that_forgot_the_session_is_found_out_at_once() {
    let (mut world, ours, _) = World::connected();
    world.hosts[1].table = Sessions::new(Config::default(), ring(), [79; 32]).unwrap();
    let datagram = world.sealed(0, ours, 0, b"anybody?");
    assert_eq!(world.deliver(&datagram), Some(Dropped::UnknownSession));
    world.run(499);
    assert!(world.hosts[0].table.is_connected(ours));
    world.run(1);
    assert_eq!(world.hosts[0].ends(), [(ours, End::Forgotten)]);
}

#[test]
fn a_close_is_told_and_if_lost_found_out() {
    let (mut world, ours, theirs) = World::connected();
    world.hosts[0].table.close(world.now, ours);
    let mut buffer = [0; 100];
    let sealed = world.hosts[0].table.seal(world.now, ours, &message(0, 0), &[], &mut buffer);
    assert_eq!(sealed, Err(SealError::NotConnected));
    let again = world.connect(0, 1); // at once
    world.settle();
    assert_eq!(world.hosts[1].ends()[0], (theirs, End::Closed));
    assert!(world.hosts[0].table.is_connected(again));

    let (mut world, ours, theirs) = World::connected();
    world.hosts[0].table.close(world.now, ours);
    world.transmit();
    world.wire.clear();
    world.run(21_000);
    assert_eq!(world.hosts[1].ends(), [(theirs, End::Forgotten)]);
    assert!(world.hosts.iter().all(|h| h.table.is_empty() && h.table.next_timeout().is_none()));
}

#[test]
fn a_session_number_that_is_used_again_is_another() {
    let (mut world, ours, theirs) = World::connected();
    let old = world.sealed(0, ours, 0, b"old");
    world.hosts[0].table.close(world.now, ours);
    world.settle();
    let again = world.connect(0, 1);
    world.settle();
    let new = world.hosts[1].session().unwrap();
    assert_eq!((again.index(), new.index()), (ours.index(), theirs.index()), "the same places");
    assert!(again != ours && new != theirs);
    assert_eq!(world.deliver(&old), Some(Dropped::UnknownSession));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, cases: 64, ..ProptestConfig::default()
    })]

    /// The link loses, repeats, reorders and damages packets. Each packet arrives whole, once or not at all.
    #[test]
    fn whatever_the_link_does_each_packet_arrives_at_most_once_and_whole(
        sealed in any::<bool>(),
        fates in prop::collection::vec((0u8..10, 0usize..40, any::<u16>()), 1..400),
    ) {
        let ring = || if sealed { ring() } else { KeyRing::insecure() };
        let (mut world, ours, _) = World::with(ring(), ring()).join();
        let payload = |n: u64| n.to_be_bytes().repeat(1 + n as usize % 9);
        let mut waiting: Vec<Datagram> = Vec::new();
        let mut damaged = 0;
        for (n, &(fate, place, bit)) in fates.iter().enumerate() {
            let datagram = world.sealed(0, ours, n as u64, &payload(n as u64));
            match fate {
                0 => continue,
                1 => waiting.push(datagram.clone()),
                2 => {
                    let mut datagram = datagram.clone();
                    let bit = 8 + bit as usize % (datagram.bytes.len() * 8 - 8);
                    datagram.bytes[bit / 8] ^= 1 << (bit % 8);
                    damaged += 1;
                    waiting.push(datagram);
                    continue;
                }
                3 => {
                    let mut datagram = datagram.clone();
                    datagram.bytes.truncate(bit as usize % datagram.bytes.len());
                    damaged += 1;
                    waiting.push(datagram);
                    continue;
                }
                _ => {}
            }
            waiting.insert(waiting.len().saturating_sub(place), datagram);
            if waiting.len() > 50 {
                let next = waiting.remove(0);
                world.deliver(&next);
            }
        }
        for datagram in waiting {
            world.deliver(&datagram);
        }
        let lost = fates.iter().filter(|f| f.0 == 0).count();
        let mut delivered = world.hosts[1].delivered.clone();
        prop_assert_eq!(delivered.len(), fates.len() - lost - damaged);
        delivered.sort();
        delivered.dedup();
        prop_assert_eq!(delivered.len(), fates.len() - lost - damaged);
        for (n, bytes) in delivered {
            prop_assert_eq!(bytes, payload(n));
        }
    }
}

#[test]
fn probes_are_answered_with_their_length_and_prove_the_session() {
    let (mut world, here, there) = World::connected();
    let now = world.now;
    let addresses = [world.hosts[0].address, world.hosts[1].address];
    for length in [64, 1232, 8972] {
        let mut probe = vec![0xee; length];
        assert!(world.hosts[0].table.seal_probe(now, here, &mut probe));
        let mut changed = probe.clone();
        changed[length / 2] ^= 1;
        let forged = world.hosts[1].table.receive(now, addresses[0], &mut changed);
        assert_eq!(forged, Received::Dropped(Dropped::Forged));
        let got = world.hosts[1].table.receive(now, addresses[0], &mut probe);
        assert_eq!(got, Received::Probe { session: there, from: addresses[0].into(), length });
        let mut answer = [0; 64];
        let table = &mut world.hosts[1].table;
        let used = table.seal_probe_answer(now, there, length, &mut answer).expect("room");
        let got = world.hosts[0].table.receive(now, addresses[1], &mut answer[..used]);
        assert_eq!(got, Received::ProbeAnswer { session: here, length });
    }
    assert!(!world.hosts[0].table.seal_probe(now, here, &mut [0; 8]), "no room for the guard");
}

/// A peer may send each packet as the first one of the next key, and the answers follow. No change is refused, since the peer
/// decides on the lifetime of its keys.
#[test]
fn a_new_key_costs_its_peer_as_much_as_two_packets_in_each_direction() {
    let (mut world, ours, theirs) = World::connected();
    // An engine that is late counts the cost of each peer.
    let now = world.now;
    world.hosts[1].table.on_poll(now, (0, Span::from_ms(1)), false);
    let mut exchange = |seq| {
        for (host, session) in [(0, ours), (1, theirs)] {
            let packet = world.sealed(host, session, seq, b"");
            assert_eq!(world.deliver(&packet), None);
        }
        world.hosts[0].table.skip_key(ours);
        world.hosts[1].table.shares.packets_spent()
    };
    assert_eq!(exchange(0), 2, "a packet and its answer");
    assert_eq!(exchange(1), 8, "and each of them under a new key");
    assert_eq!(world.hosts[1].table.epochs(theirs), Some([1, 1]));
}
