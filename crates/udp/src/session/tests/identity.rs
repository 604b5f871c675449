//! Keys of both sides: identification of peers, and limits of what members of the group can do.

use super::cipher::Mode;
use super::*;

/// Hosts 1 and 2, which know each other.
fn world() -> World {
    World::with(identified(1, &[2]), identified(2, &[1]))
}

#[test]
fn both_sides_know_the_key_that_the_other_proved() {
    let mut world = world();
    let ours = world.connect(0, 1);
    world.settle();
    let Event::Incoming { identity, key, .. } = &world.hosts[1].events[0] else { panic!("first") };
    assert_eq!(*identity, Some(pair(1).public()));
    assert_eq!(*key, SharedKey::new([42; 32]).id_with(Some(&pair(2).public())));
    let theirs = world.hosts[1].session().expect("connected");
    assert_eq!(world.hosts[0].table.identity(ours), Some(pair(2).public()));
    assert_eq!(world.hosts[1].table.identity(theirs), Some(pair(1).public()));
    let kinds: Vec<u8> = world.seen.iter().map(|d| d.bytes[2]).collect();
    assert_eq!(kinds, [0x40, 0x41, 0x42, 0x43, 0x46, 0x46], "as many messages as without keys");
    assert!(world.seen[..4].iter().all(|d| d.bytes[3] == 0x11));
    let datagram = world.sealed(0, ours, 0, b"works");
    assert!(!datagram.bytes.windows(5).any(|w| w == b"works"), "readable");
    assert_eq!(world.deliver(&datagram), None);
}

#[test]
fn no_public_key_is_readable_on_the_wire() {
    let mut world = world();
    world.connect(0, 1);
    world.settle();
    for n in [1, 2] {
        let public = pair(n).public();
        let shows = |d: &Datagram| d.bytes.windows(32).any(|w| w == public.bytes());
        assert!(!world.seen.iter().any(shows), "host {n}");
    }
}

/// Covers a session from the first Hello to the close, with a payload in each direction.
#[test]
fn no_hello_name_payload_or_secret_is_readable_on_the_wire() {
    let keys = |n: u8| [&pair(n).secret()[..], pair(n).public().bytes()].map(<[u8]>::to_vec);
    let group = SharedKey::new([42; 32]);
    let texts = ["hello", "welcome", "host-1", "host-2", "payload"].map(|text| text.into());
    let hidden: Vec<Vec<u8>> =
        keys(1).into_iter().chain(keys(2)).chain([group.bytes().to_vec()]).chain(texts).collect();
    // For a secret of 32 bytes, a readable half is enough to detect it.
    let is_readable = |bytes: &[u8], secret: &[u8]| {
        let parts = secret.chunks(if secret.len() == 32 { 16 } else { secret.len() });
        parts.into_iter().any(|part| bytes.windows(part.len()).any(|window| window == part))
    };
    for world in [world(), World::with(ring(), ring())] {
        let (mut world, ours, theirs) = world.join();
        for (from, id) in [(0, ours), (1, theirs)] {
            let datagram = world.sealed(from, id, 0, b"a payload");
            assert_eq!(world.deliver(&datagram), None);
            world.seen.push(datagram);
        }
        let now = world.now;
        world.hosts[0].table.close(now, ours);
        world.settle();
        assert_eq!(world.hosts[1].ends(), [(theirs, End::Closed)]);
        for (datagram, secret) in world.seen.iter().flat_map(|d| hidden.iter().map(move |s| (d, s)))
        {
            let kind = datagram.bytes[2];
            assert!(!is_readable(&datagram.bytes, secret), "kind {kind}: {secret:?}");
        }
    }
    // The search finds texts that the insecure mode shows.
    let (mut world, ours, _) = World::with(KeyRing::insecure(), KeyRing::insecure()).join();
    assert!(is_readable(&world.sealed(0, ours, 0, b"a payload").bytes, b"payload"));
}

/// Host 3 is a member of the group, and answers at the address of host 2.
#[test]
fn a_member_of_the_group_cannot_act_as_the_server() {
    let mut world = World::with(identified(1, &[2]), identified(3, &[1]));
    let ours = world.connect(0, 1);
    world.run(5_000);
    assert_eq!(world.hosts[0].ends(), [(ours, End::NoAnswer)]);
    assert!(world.hosts[1].table.counters().dropped_unknown_key > 0);

    // Host 3 knows the public key of host 2, and so the name of the key and its proof. It can make cookies and refusals, but
    // can neither read the Init nor answer it.
    let as_server = KeyRing::of([
        Entry::new(EntryKey::Shared(SharedKey::new([42; 32]))),
        Entry::new(EntryKey::Own("me".to_owned(), pair(3))),
        Entry::new(EntryKey::Peer("host-2".to_owned(), pair(2).public())),
    ]);
    let mut world = World::with(identified(1, &[2]), as_server.unwrap());
    let ours = world.connect(0, 1);
    world.run(5_000);
    assert_eq!(world.hosts[0].ends(), [(ours, End::NoAnswer)]);
    let counters = world.hosts[1].table.counters();
    assert!(counters.dropped_stray > 0 && counters.connected == 0, "{counters:?}");
    assert!(world.hosts[1].events.is_empty(), "and learns nothing of the hello");
}

#[test]
fn a_member_of_the_group_cannot_act_as_a_listed_client() {
    let mut world = World::with(identified(3, &[2]), identified(2, &[1]));
    let ours = world.connect(0, 1);
    world.settle();
    assert_eq!(world.hosts[0].told(), [Told::Unlisted], "it is told, for it proved the shared key");
    assert!(world.hosts[0].table.get(ours).is_none() && world.hosts[0].ends().is_empty());
    assert!(world.hosts[1].table.is_empty() && world.hosts[1].events.is_empty());
    assert_eq!(world.hosts[1].table.len(), 0);

    let mut world = World::with(identified(3, &[2]), identified(2, &[1]));
    world.hosts[1].table.config.accept_unlisted = true;
    let (world, _, theirs) = world.join();
    assert_eq!(world.hosts[1].table.identity(theirs), Some(pair(3).public()), "its own, no other");
}

#[test]
fn a_stranger_without_the_shared_key_costs_no_diffie_hellman() {
    let stranger = KeyRing::of([
        Entry::new(EntryKey::Shared(SharedKey::new([13; 32]))),
        Entry::new(EntryKey::Own("host-1".to_owned(), pair(1))),
        Entry::new(EntryKey::Peer("host-2".to_owned(), pair(2).public())),
    ]);
    let mut world = World::with(stranger.unwrap(), identified(2, &[1]));
    let ours = world.connect(0, 1);
    world.run(5_000);
    assert_eq!(world.hosts[0].ends(), [(ours, End::NoAnswer)], "though its own key is listed");
    let counters = world.hosts[1].table.counters();
    assert_eq!(counters.dropped_unknown_key, world.seen.len() as u64, "dropped by name");
}

/// If a side has keys of its own, it never opens a session without them, whatever a member of the group writes.
#[test]
fn nobody_can_have_a_session_do_without_keys_of_its_own() {
    for (a, b) in [(identified(1, &[2]), ring()), (ring(), identified(2, &[1]))] {
        let mut world = World::with(a, b);
        let ours = world.connect(0, 1);
        world.run(5_000);
        assert_eq!(world.hosts[0].ends(), [(ours, End::NoAnswer)]);
        assert!(world.hosts.iter().all(|host| host.session().is_none()));
        assert!(world.hosts[1].events.is_empty(), "no request reached the application");
        assert!(world.seen.iter().all(|datagram| datagram.from == world.address(0)), "no answer");
    }
    // A member of the group changes the mode of one packet of the handshake, or of all packets from there onwards, in both
    // directions, and makes their proofs again.
    let cases = (0..4).flat_map(|at| [1, 8].map(|most| (at, most)));
    for (at, most) in cases {
        for mode in [0, 1, 2, 0x12] {
            let mut world = world();
            let ours = world.connect(0, 1);
            let key = world.hosts[0].table.keys.towards(None).unwrap();
            let (mut seen, mut changed) = (0, 0);
            let end = world.now + Span::from_secs(10);
            while changed < most && world.now < end {
                world.transmit();
                let Some(mut datagram) = world.wire.pop_front() else {
                    world.pass(100);
                    continue;
                };
                if seen >= at {
                    datagram.bytes[3] = mode;
                    let end = datagram.bytes.len() - 16;
                    let credential = world.hosts[0].table.keys.get(key).unwrap();
                    let proof = credential.mac(&datagram.bytes[..end]);
                    datagram.bytes[end..].copy_from_slice(&proof);
                    changed += 1;
                }
                seen += 1;
                world.deliver(&datagram);
            }
            assert!(changed > 0, "{at} {mode}");
            assert!(!world.hosts[0].table.is_connected(ours), "{at} {mode}");
            assert!(world.hosts.iter().all(|host| host.session().is_none()), "{at} {mode}");
            if most == 1 {
                // The initiator repeats its packets, so the session that it proposed is opened.
                world.run(3_000);
                assert!(world.hosts[0].table.is_connected(ours), "{at} {mode}");
                let theirs = world.hosts[1].session().expect("connected");
                for (host, id) in [(0, ours), (1, theirs)] {
                    let opened = world.hosts[host].table.get(id).map(|session| session.mode);
                    assert_eq!(opened, Some(Mode::Identified(Cipher::Aes256Gcm)), "{at} {mode}");
                }
            }
        }
    }
}

#[test]
fn a_reason_of_the_application_is_told_and_no_member_of_the_group_can_tell_another() {
    let mut world = world();
    world.hosts[1].accepts = false;
    world.connect(0, 1);
    world.settle();
    let Event::Incoming { session, .. } = world.hosts[1].events[0] else { panic!("it came in") };
    world.hosts[1].table.refuse_because(session, "only on weekdays");
    world.transmit();
    let refusal = world.wire.pop_front().expect("it is told");
    assert!(!refusal.bytes.windows(8).any(|w| w == b"weekdays"), "readable");
    for at in [17, 20, 60, refusal.bytes.len() - 17] {
        let mut forged = refusal.clone();
        forged.bytes[at] ^= 1;
        let key = world.hosts[0].table.keys.towards(None).unwrap();
        let end = forged.bytes.len() - 16;
        let proof = world.hosts[0].table.keys.get(key).unwrap().mac(&forged.bytes[..end]);
        forged.bytes[end..].copy_from_slice(&proof);
        assert_eq!(world.deliver(&forged), Some(Dropped::Unproven), "byte {at}");
    }
    assert_eq!(world.deliver(&refusal), None);
    assert_eq!(world.hosts[0].told(), [Told::application("only on weekdays")]);
    assert!(world.hosts.iter().all(|host| host.table.is_empty()));
    // Under a shared key alone, and without any key, the initiator is told too.
    for keys in [ring, KeyRing::insecure] {
        let mut world = World::with(keys(), keys());
        world.hosts[1].accepts = false;
        world.connect(0, 1);
        world.settle();
        let Event::Incoming { session, .. } = world.hosts[1].events[0] else { panic!("came in") };
        world.hosts[1].table.refuse_because(session, "no");
        world.settle();
        assert_eq!(world.hosts[0].told(), [Told::application("no")]);
    }
}

#[test]
fn the_cipher_of_an_identified_session_is_the_proposed_one() {
    for cipher in Cipher::available() {
        let mut world = world();
        world.hosts[0].table.config.cipher = cipher;
        let (world, ours, _) = world.join();
        let mode = world.hosts[0].table.get(ours).map(|s| s.mode);
        assert_eq!(mode, Some(Mode::Identified(cipher)));
    }
}

/// Key ring of a host: numbers of the group keys, own pairs and peers; a negative number is retired.
fn rotated(groups: &[i8], own: &[i8], peers: &[i8]) -> KeyRing {
    let of = |n: &i8, key: EntryKey| Entry { key, retired: *n < 0 };
    let number = |n: &i8| n.unsigned_abs();
    let groups = groups.iter().map(|n| of(n, EntryKey::Shared(SharedKey::new([number(n); 32]))));
    let own = own.iter().map(|n| of(n, EntryKey::Own(format!("own-{n}"), pair(number(n)))));
    let peers = peers
        .iter()
        .map(|n| of(n, EntryKey::Peer(format!("host-{}", number(n)), pair(number(n)).public())));
    KeyRing::of(groups.chain(own).chain(peers)).unwrap()
}

/// Client 1 and server 2 of group 42 change the shared key to 43, the server's pair to 4, and the client's pair to 5.
#[test]
fn each_key_is_replaced_without_the_end_of_a_session() {
    for (client, server, last) in [
        // The shared key.
        (
            [rotated(&[43, -42], &[1], &[2]), rotated(&[43], &[1], &[2])],
            [rotated(&[42, 43], &[2], &[1]), rotated(&[43, -42], &[2], &[1])],
            rotated(&[43], &[2], &[1]),
        ),
        // The server's pair.
        (
            [rotated(&[42], &[1], &[4, -2]), rotated(&[42], &[1], &[4])],
            [rotated(&[42], &[2, 4], &[1]), rotated(&[42], &[-2, 4], &[1])],
            rotated(&[42], &[4], &[1]),
        ),
        // The client's pair.
        (
            [rotated(&[42], &[5, -1], &[2]), rotated(&[42], &[5], &[2])],
            [rotated(&[42], &[2], &[1, 5]), rotated(&[42], &[2], &[5, -1])],
            rotated(&[42], &[2], &[5]),
        ),
    ] {
        let (mut world, ours, theirs) =
            World::with(rotated(&[42], &[1], &[2]), rotated(&[42], &[2], &[1])).join();
        let now = world.now;
        world.hosts[1].table.set_keys(now, server[0].clone()).unwrap();
        world.hosts[0].table.set_keys(now, client[0].clone()).unwrap();
        world.hosts[1].table.set_keys(now, server[1].clone()).unwrap();
        let datagram = world.sealed(0, ours, 0, b"still there");
        assert_eq!(world.deliver(&datagram), None);
        assert!(world.hosts.iter().all(|host| host.ends().is_empty()), "no session has ended");
        // A new session of another client is opened under the new keys.
        world.hosts.push(host(3, client[1].clone(), Config::default()));
        let fresh = world.connect(2, 1);
        world.settle();
        assert!(world.hosts[2].table.is_connected(fresh));
        // The old keys open no session.
        world.hosts.push(host(6, rotated(&[42], &[1], &[2]), Config::default()));
        let stale = world.connect(3, 1);
        world.run(5_000);
        assert!(!world.hosts[3].table.is_connected(stale));
        // Removal of the old key ends only the session that still uses it.
        world.hosts[1].table.set_keys(world.now, last).unwrap();
        let now = world.now;
        world.hosts[1].take_events(now);
        assert_eq!(world.hosts[1].ends(), [(theirs, End::KeyWithdrawn)]);
        world.settle();
        assert!(world.hosts[2].table.is_connected(fresh));
    }
}

#[test]
fn a_peer_that_is_no_longer_listed_loses_its_session_at_once() {
    let (mut world, ours, theirs) = world().join();
    let late = world.sealed(0, ours, 0, b"late");
    let now = world.now;
    world.hosts[1].table.set_keys(now, identified(2, &[7])).unwrap();
    world.hosts[1].take_events(now);
    assert_eq!(world.hosts[1].ends(), [(theirs, End::KeyWithdrawn)]);
    assert_eq!(world.deliver(&late), Some(Dropped::UnknownSession));
    world.settle();
    assert_eq!(world.hosts[0].ends(), [(ours, End::Closed)]);
}

/// A retired line ends no session. Neither does the removal of a line if unlisted peers may connect, and then the peer may also
/// connect again.
#[test]
fn a_session_outlives_a_retired_line_and_a_removed_one_where_unlisted_peers_may_connect() {
    for (ring, accept_unlisted) in
        [(rotated(&[42], &[2], &[-1]), false), (identified(2, &[7]), true)]
    {
        let (mut world, ours, _) = world().join();
        world.hosts[1].table.config.accept_unlisted = accept_unlisted;
        let now = world.now;
        world.hosts[1].table.set_keys(now, ring).unwrap();
        world.hosts[1].take_events(now);
        let datagram = world.sealed(0, ours, 0, b"still there");
        assert_eq!(world.deliver(&datagram), None);
        assert_eq!(world.hosts[1].ends(), []);
        world.hosts[0].table.close(now, ours);
        world.settle();
        let again = world.connect(0, 1);
        world.settle();
        assert_eq!(world.hosts[0].table.is_connected(again), accept_unlisted);
    }
}

/// Compares sessions of processes with other seeds, and successive sessions of the same two processes: with keys of hosts, and
/// under a shared key alone.
#[test]
fn sessions_of_the_same_hosts_have_independent_secrets() {
    for new_world in [world, World::new] {
        check_secrets(new_world);
    }
}

fn check_secrets(new_world: fn() -> World) {
    let mut secrets = std::collections::BTreeSet::new();
    let mut ephemeral = std::collections::BTreeSet::new();
    for seed in 0..4 {
        let mut world = new_world();
        for (n, host) in world.hosts.iter_mut().enumerate() {
            let keys = host.table.keys.clone();
            let seed = [10 * (seed + 1) + n as u8; 32];
            host.table = Sessions::new(Config::default(), keys, seed).unwrap();
        }
        for _ in 0..3 {
            let (joined, ours, theirs) = world.join();
            world = joined;
            for (from, id) in [(0, ours), (1, theirs)] {
                let datagram = world.sealed(from, id, 0, b"x");
                let nonce = world.hosts[from].table.nonce_of(&datagram.bytes);
                secrets.insert(nonce.expect("it is sealed").0);
            }
            let now = world.now;
            world.hosts[0].table.close(now, ours);
            world.settle();
        }
        // The ephemeral key is at the start of the Noise message: behind the cookie in an Init, and at the start of a
        // Response.
        for datagram in &world.seen {
            let noise = match datagram.bytes[2] {
                0x42 => &datagram.bytes[32..],
                0x43 => &datagram.bytes[16..],
                _ => continue,
            };
            ephemeral.insert(*noise.first_chunk::<32>().unwrap());
        }
    }
    assert_eq!(secrets.len(), 24, "each session and direction has a secret of its own");
    assert_eq!(ephemeral.len(), 24, "each side has an ephemeral key for each session");
}

/// Checks the end that the client reports: only a reason in words can come from the server alone.
#[test]
fn a_member_of_the_group_on_the_path_can_only_end_an_attempt() {
    use packet::Refusal;
    let forged = |world: &World, refusal, initiator: SessionId, is_proven: bool| {
        let keys = &world.hosts[0].table.keys;
        let key = keys.towards(None).unwrap();
        let credential = keys.get(key).unwrap();
        let message = packet::Message::Refused(refusal);
        let mode = Mode::Identified(Cipher::Aes256Gcm);
        let packet = packet::Handshake { mode, key, initiator: initiator.get(), message };
        let mut bytes = [0; 64];
        let length = packet.write(credential, &mut bytes).unwrap();
        bytes[length - 1] ^= u8::from(!is_proven);
        let (from, to) = (world.address(1), world.address(0));
        Datagram { from, to, bytes: bytes[..length].to_vec() }
    };
    for (refusal, end) in [
        (Refusal::Full, End::PeerFull),
        (Refusal::Application, End::Refused),
        (Refusal::Cipher, End::CipherRefused),
        (Refusal::Draining, End::PeerDraining),
    ] {
        let mut world = world();
        let ours = world.connect(0, 1);
        // Hello and Cookie arrive; the Init is held back.
        assert_eq!(world.deliver_next(2), [0x40, 0x41]);
        world.transmit();
        world.wire.clear();
        let strangers = forged(&world, refusal, ours, false);
        assert_eq!(world.deliver(&strangers), Some(Dropped::Unproven));
        assert_eq!(world.hosts[0].ends(), [], "without the shared key");
        let members = forged(&world, refusal, ours, true);
        world.deliver(&members);
        assert_eq!(world.hosts[0].ends(), [(ours, end)]);
        // A connected session is out of the attacker's reach.
        let (mut world, ours, _) = self::world().join();
        let late = forged(&world, refusal, ours, true);
        assert_eq!(world.deliver(&late), Some(Dropped::Stray));
        assert!(world.hosts[0].table.is_connected(ours));
    }
}

/// A key pair was stolen, and its line is retired. The server accepts unlisted hosts, so the thief could try to connect as
/// one of them, under the name of the retired line.
#[test]
fn a_retired_peer_opens_no_session_though_unlisted_peers_may() {
    let mut world = World::with(identified(1, &[2]), rotated(&[42], &[2], &[-1]));
    world.hosts[1].table.config.accept_unlisted = true;
    let ours = world.connect(0, 1);
    world.settle();
    assert_eq!(world.hosts[0].told(), [Told::Unlisted]);
    assert!(world.hosts[0].table.get(ours).is_none());
    assert!(world.hosts[1].table.is_empty() && world.hosts[1].events.is_empty(), "nobody is asked");
    world.hosts.push(host(3, identified(3, &[2]), Config::default()));
    let unlisted = world.connect(2, 1);
    world.settle();
    assert!(world.hosts[2].table.is_connected(unlisted));
}
