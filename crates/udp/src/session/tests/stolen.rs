//! What an attacker can do with stolen long-lived keys: the shared key, and the pairs of hosts.

use zeroize::Zeroizing;

use super::cipher::Mode;
use super::cookie::Cookie;
use super::key::{Credential, Level};
use super::noise::Noise;
use super::noise::thief::{self, Shown};
use super::packet::{Handshake, Message};
use super::*;

const COOKIE: Cookie = Cookie([3; 16]);

/// Returns a handshake packet of host 0 of a world that has this ring.
fn handshake<'m>(keys: &KeyRing, message: Message<'m>) -> Handshake<'m> {
    let key = keys.towards(None).unwrap();
    let mode = match keys.get(key).unwrap().level.is_identified() {
        true => Mode::Identified(Cipher::Aes256Gcm),
        false => Mode::Sealed(Cipher::Aes256Gcm),
    };
    Handshake { mode, key, initiator: 2, message }
}

/// An attacker has recorded a handshake, and obtains all long-lived keys later: the shared key and the pairs of both sides.
#[test]
fn long_lived_keys_that_are_stolen_later_open_the_first_message_of_a_handshake_alone() {
    for rings in [[identified(1, &[2]), identified(2, &[1])], [ring(), ring()]] {
        let packet = handshake(&rings[0], Message::Hello);
        let credential = |host: usize| rings[host].get(packet.key).unwrap();
        let side = |is_initiator: bool, seed: u8| {
            let credential = credential(usize::from(!is_initiator));
            let seed = Zeroizing::new([seed; 32]);
            Noise::new(is_initiator, credential, &packet, COOKIE, seed).unwrap()
        };
        let (mut client, mut server) = (side(true, 11), side(false, 12));
        let first = client.write(b"hello").unwrap();
        server.read(&first).unwrap();
        let second = server.write(b"welcome").unwrap();
        assert_eq!(client.read(&second).as_deref(), Some(&b"welcome"[..]));

        // The server's keys read the first message.
        let mut thief = side(false, 9);
        assert_eq!(thief.read(&first).as_deref(), Some(&b"hello"[..]));
        let is_identified = credential(0).level.is_identified();
        assert_eq!(thief.peer(), is_identified.then(|| pair(1).public()));
        // With the keys of both sides the thief repeats the client's part, except the secret of both ephemeral keys.
        let ephemeral = *first.first_chunk().unwrap();
        let shown = Shown::Ephemeral(ephemeral);
        let mut thief = thief::initiator(shown, &pair(2), credential(0), &packet, COOKIE);
        assert_eq!(thief.write(b"hello").unwrap(), first, "nothing else is missing");
        assert_eq!(thief.read(&second), None);
        // Only that secret is missing: with the client's ephemeral key the second message is readable.
        let mut thief = side(true, 11);
        assert_eq!(thief.write(b"hello").unwrap(), first);
        assert_eq!(thief.read(&second).as_deref(), Some(&b"welcome"[..]));
    }
}

/// A handshake of host 0 of a world, made by a custom program instead of a table.
struct ByHand {
    credential: Credential,
    cookie: Cookie,
}

/// Sends a packet of host 0 to host 1.
fn put(world: &mut World, credential: &Credential, message: Message<'_>) -> Option<Dropped> {
    let (from, to) = (world.address(0), world.address(1));
    let packet = handshake(&world.hosts[0].table.keys, message);
    let mut bytes = [0; MAX_HANDSHAKE_BYTES];
    let length = packet.write(credential, &mut bytes).unwrap();
    world.deliver(&Datagram { from, to, bytes: bytes[..length].to_vec() })
}

impl ByHand {
    /// Sends a Hello and gets its Cookie.
    fn begin(world: &mut World) -> Self {
        let credential = {
            let keys = &world.hosts[0].table.keys;
            keys.get(keys.towards(None).unwrap()).unwrap().clone()
        };
        assert_eq!(put(world, &credential, Message::Hello), None);
        world.transmit();
        let answer = world.wire.pop_front().expect("an answer").bytes;
        let cookie = match Handshake::parse(&answer).map(|packet| packet.message) {
            Some(Message::Cookie(cookie)) => cookie,
            other => panic!("{other:?}"),
        };
        Self { credential, cookie }
    }

    /// Sends the Init of a thief that shows the public key of host 1, and has the private key of host `n`.
    fn ask_as_host_1(&self, world: &mut World, n: u8) -> (Noise, Option<Dropped>) {
        let shown = Shown::Client(*pair(1).public().bytes());
        let hello = handshake(&world.hosts[0].table.keys, Message::Hello);
        let (credential, cookie) = (&self.credential, self.cookie);
        let mut thief = thief::initiator(shown, &pair(n), credential, &hello, cookie);
        // A process, the number of its session, and a hello.
        let text = [&[0; 16][..], &hello.initiator.to_be_bytes(), b"hello"].concat();
        let first = thief.write(&text).unwrap();
        let dropped = put(world, credential, Message::Init { cookie, noise: &first });
        (thief, dropped)
    }
}

/// Key compromise impersonation (Noise §7.7): the first message of IK is authenticated by a secret of both sides' pairs, so
/// the server's pair suffices to forge it. Reading the answer requires the client's pair.
#[test]
fn a_stolen_server_key_asks_in_the_name_of_any_client_and_is_never_connected() {
    let mut world = World::with(identified(3, &[2]), identified(2, &[1]));
    let by_hand = ByHand::begin(&mut world);
    let (mut thief, dropped) = by_hand.ask_as_host_1(&mut world, 2);
    assert_eq!(dropped, None);
    let Event::Incoming { identity, .. } = &world.hosts[1].events[0] else { panic!("came in") };
    assert_eq!(*identity, Some(pair(1).public()), "in the name of host 1");
    world.transmit();
    let answer = world.wire.pop_front().expect("an answer").bytes;
    let Some(Message::Response { noise }) = Handshake::parse(&answer).map(|packet| packet.message)
    else {
        panic!("a response")
    };
    assert_eq!(thief.read(noise), None);
    world.run(5_000);
    assert_eq!(world.hosts[1].session(), None);
    assert!(world.hosts[1].table.is_empty());
}

/// As above, but the thief has the group's key and a pair of its own, host 3's, instead of the server's pair. The server
/// reads the public key of host 1, which is listed, and cannot authenticate the rest.
#[test]
fn who_shows_a_listed_key_without_its_private_half_does_not_reach_the_application() {
    let mut world = World::with(identified(3, &[2]), identified(2, &[1]));
    let by_hand = ByHand::begin(&mut world);
    let (_, dropped) = by_hand.ask_as_host_1(&mut world, 3);
    assert_eq!(dropped, Some(Dropped::Unproven));
    assert!(world.hosts[1].table.is_empty() && world.hosts[1].events.is_empty());
    world.transmit();
    assert!(world.wire.is_empty(), "no answer");
    // The same thief is answered if it shows the public key of the pair that it has, and that pair is listed.
    let mut world = World::with(identified(1, &[2]), identified(2, &[1]));
    let by_hand = ByHand::begin(&mut world);
    let (_, dropped) = by_hand.ask_as_host_1(&mut world, 1);
    assert_eq!(dropped, None);
    assert!(matches!(world.hosts[1].events[..], [Event::Incoming { .. }]));
}

/// Host 1 is a client and host 2 a server, and each lists the other. Host 3 lists the server too, and host 4 lists host 1.
#[test]
fn a_stolen_pair_acts_as_its_own_host_alone() {
    let session = |a: KeyRing, b: KeyRing| {
        let mut world = World::with(a, b);
        world.connect(0, 1);
        world.run(5_000);
        let connected = world.hosts[1].session();
        let identity =
            connected.map(|theirs| world.hosts[1].table.identity(theirs).expect("proved"));
        (identity, *world.hosts[1].table.counters())
    };
    let (as_itself, _) = session(identified(1, &[2]), identified(2, &[1, 3]));
    assert_eq!(as_itself, Some(pair(1).public()), "never host 3");
    // The client's pair is used to act as the server: under the client's own name, and under the server's name, which is
    // public.
    let (none, counters) = session(identified(3, &[2]), identified(1, &[3]));
    assert!(none.is_none() && counters.dropped_unknown_key > 0, "{counters:?}");
    let (none, counters) = session(identified(3, &[2]), identified(1, &[2]));
    assert!(none.is_none() && counters.dropped_stray > 0, "{counters:?}");
    // The server's pair is used to act as its client.
    let (none, counters) = session(identified(2, &[4]), identified(4, &[1]));
    assert!(none.is_none() && counters.connected == 0, "{counters:?}");
}

/// A custom program need not respect the server's name: it tries to read the Init, and to answer it.
#[test]
fn a_clients_pair_neither_reads_nor_answers_an_init_to_its_server() {
    let rings = [identified(3, &[2]), identified(2, &[3])];
    let packet = handshake(&rings[0], Message::Hello);
    let side = |is_initiator: bool, credential: &Credential, seed: u8| {
        Noise::new(is_initiator, credential, &packet, COOKIE, Zeroizing::new([seed; 32])).unwrap()
    };
    let first = side(true, rings[0].get(packet.key).unwrap(), 11).write(b"hello").unwrap();
    let group = SharedKey::new([42; 32]);
    for (n, reads) in [(1, None), (2, Some(&b"hello"[..]))] {
        let stolen = Credential::new(&group, Level::Own(pair(n)), false);
        let mut thief = side(false, &stolen, 12);
        assert_eq!(thief.read(&first).as_deref(), reads, "the pair of host {n}");
        // Noise continues only after an authentic message.
        assert_eq!(thief.write(b"welcome").is_some(), reads.is_some());
    }
}

/// Under a shared key alone all holders are equal, so an attacker on the path may choose which of them a client reaches. With
/// keys of hosts, a client reaches the one that it names.
#[test]
fn who_is_on_the_path_chooses_the_server_under_a_shared_key_and_not_with_keys_of_hosts() {
    let shared = [ring(), ring(), ring()];
    let of_hosts = [identified(1, &[2]), identified(2, &[1]), identified(3, &[1])];
    for (rings, connects) in [(shared, true), (of_hosts, false)] {
        let [client, named, other] = rings;
        let mut world = World::with(client, named);
        world.hosts.push(host(3, other, Config::default()));
        let ours = world.connect(0, 1);
        let [named, other] = [1, 2].map(|n| world.address(n));
        // A relay without a key: packets to host 1 go to host 2, whose answers come from the address of host 1.
        let end = world.now + Span::from_secs(6);
        while world.now < end {
            world.transmit();
            while let Some(mut datagram) = world.wire.pop_front() {
                match datagram.from {
                    from if from == other => datagram.from = named,
                    _ => datagram.to = other,
                }
                world.deliver(&datagram);
                world.transmit();
            }
            world.pass(100);
        }
        assert_eq!(world.hosts[0].table.is_connected(ours), connects);
        assert_eq!(world.hosts[2].session().is_some(), connects);
        assert!(world.hosts[1].events.is_empty(), "the named one has heard nothing");
        if !connects {
            assert_eq!(world.hosts[0].ends(), [(ours, End::NoAnswer)]);
        }
    }
}

/// Under a shared key alone, the thief of the key answers the client in place of the server, and connects to the server in place
/// of the client. It reads and changes what the two sides send.
#[test]
fn a_thief_of_the_shared_key_on_the_path_reads_and_changes_later_sessions() {
    let mut world = World::new();
    // The thief's two sides: host 2 acts as the server, and host 3 as the client.
    world.hosts.extend([3, 4].map(|n| host(n, ring(), Config::default())));
    let [client, server, as_server, as_client] = [0, 1, 2, 3].map(|n| world.address(n));
    let redirected = |mut datagram: Datagram| {
        match datagram.from {
            from if from == client => datagram.to = as_server,
            from if from == as_server => datagram.from = server,
            from if from == as_client => datagram.from = client,
            _ => datagram.to = as_client,
        }
        datagram
    };
    let [ours, of_thief] = [0, 3].map(|from| world.connect(from, 1));
    loop {
        world.transmit();
        let Some(datagram) = world.wire.pop_front() else { break };
        world.deliver(&redirected(datagram));
    }
    assert!(world.hosts[0].table.is_connected(ours));
    let theirs = world.hosts[1].session().expect("connected");
    let peer = world.hosts[1].table.get(theirs).map(|session| session.peer.address);
    assert_eq!(peer, Some(client), "as the server sees it");
    let sent = redirected(world.sealed(0, ours, 0, b"pay 1"));
    assert_eq!(world.deliver(&sent), None);
    assert_eq!(world.hosts[2].delivered, [(0, b"pay 1".to_vec())]);
    let changed = redirected(world.sealed(3, of_thief, 0, b"pay 9"));
    assert_eq!(world.deliver(&changed), None);
    assert_eq!(world.hosts[1].delivered, [(0, b"pay 9".to_vec())]);
}
