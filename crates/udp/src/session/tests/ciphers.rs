//! Ciphers of a session's packets: proposed, accepted and refused; an attacker cannot change them in transit.

#[cfg(feature = "aegis")]
use super::cipher::Mode;
use super::*;

/// Host 0 proposes a cipher; host 1 accepts some ciphers.
fn world(proposed: Cipher, taken: &[Cipher]) -> World {
    let mut world = World::new();
    let asks = Config { cipher: proposed, ..Config::default() };
    let takes = Config { accept_ciphers: taken.to_vec(), ..Config::default() };
    world.hosts = vec![host(1, ring(), asks), host(2, ring(), takes)];
    world
}

#[cfg(feature = "aegis")]
fn mode(world: &World, host: usize, id: SessionId) -> Option<Mode> {
    world.hosts[host].table.get(id).map(|session| session.mode)
}

#[cfg(feature = "aegis")]
#[test]
fn what_is_proposed_is_taken_or_refused_by_name() {
    let [aes, aegis] = Cipher::ALL;
    for proposed in Cipher::ALL {
        for taken in [&[aes][..], &[aegis], &[aes, aegis]] {
            let mut world = world(proposed, taken);
            if taken.contains(&proposed) {
                let (mut world, ours, theirs) = world.join();
                assert_eq!(mode(&world, 0, ours), Some(Mode::Sealed(proposed)));
                assert_eq!(mode(&world, 1, theirs), Some(Mode::Sealed(proposed)));
                for (from, id) in [(0, ours), (1, theirs)] {
                    for payload in [&b""[..], &[7; 64], &[8; 1400]] {
                        let datagram = world.sealed(from, id, 1, payload);
                        let whole = message(1, payload.len()).encoded_len() + payload.len() + 24;
                        assert_eq!(datagram.bytes.len(), whole, "no cipher takes more room");
                        assert_eq!(world.deliver(&datagram), None);
                        let last = world.hosts[1 - from].delivered.pop();
                        assert_eq!(last, Some((1, payload.to_vec())));
                    }
                }
            } else {
                let ours = world.connect(0, 1);
                world.settle();
                assert_eq!(world.hosts[0].ends(), [(ours, End::CipherRefused)]);
                assert!(world.hosts[1].events.is_empty(), "the application is not asked");
                assert!(world.hosts.iter().all(|host| host.table.is_empty()));
                assert_eq!(world.hosts[1].table.counters().failed, 1);
            }
        }
    }
}

#[cfg(feature = "aegis")]
#[test]
fn a_session_that_comes_in_is_sealed_as_its_initiator_proposed() {
    let [aes, aegis] = Cipher::ALL;
    let mut world = world(aegis, &Cipher::ALL);
    world.hosts[0].table.config.accept_ciphers = vec![aes];
    let theirs = world.connect(1, 0);
    world.settle();
    assert_eq!(mode(&world, 1, theirs), Some(Mode::Sealed(aes)));
    let ours = world.hosts[0].session().expect("connected");
    assert_eq!(mode(&world, 0, ours), Some(Mode::Sealed(aes)), "though it would propose another");
}

/// The attacker is on the path and has no key.
#[cfg(feature = "aegis")]
#[test]
fn the_mode_byte_of_a_handshake_cannot_be_changed() {
    for at in 0..4 {
        for mode in (0..=3).filter(|&mode| mode != 2) {
            let mut world = world(Cipher::Aegis128X, &Cipher::ALL);
            let ours = world.connect(0, 1);
            for step in 0..=at {
                world.transmit();
                let mut datagram = world.wire.pop_front().expect("the next of the handshake");
                assert_eq!(datagram.bytes[3], 2);
                if step == at {
                    datagram.bytes[3] = mode;
                    let dropped = world.deliver(&datagram);
                    let expected = match mode {
                        0 => Dropped::OtherMode,
                        1 => Dropped::Unproven,
                        _ => Dropped::Malformed,
                    };
                    assert_eq!(dropped, Some(expected), "message {at}, mode {mode}");
                } else {
                    assert_eq!(world.deliver(&datagram), None);
                }
            }
            assert!(!world.hosts[0].table.is_connected(ours));
            assert_eq!(world.hosts[1].session(), None);
            // The initiator repeats its packets, so the session that it proposed is opened.
            world.run(3_000);
            assert!(world.hosts[0].table.is_connected(ours), "message {at}");
            let theirs = world.hosts[1].session().expect("connected");
            for (host, id) in [(0, ours), (1, theirs)] {
                let opened = self::mode(&world, host, id);
                assert_eq!(opened, Some(Mode::Sealed(Cipher::Aegis128X)), "message {at}");
            }
        }
    }
}

/// The attacker is on the path and has the key, so it can make every proof again. It still does not know the secrets that the
/// Noise messages yield.
#[cfg(feature = "aegis")]
#[test]
fn a_holder_of_the_key_in_between_cannot_change_the_cipher() {
    use crate::session::packet::{Handshake, Message};

    let ring = ring();
    let credential = ring.get(ring.ids().next().unwrap()).unwrap();
    let forged = |datagram: &Datagram, cipher| {
        let mut packet = Handshake::parse(&datagram.bytes).expect("a handshake packet");
        packet.mode = Mode::Sealed(cipher);
        let mut bytes = [0; MAX_HANDSHAKE_BYTES];
        let length = packet.write(credential, &mut bytes).expect("it fits");
        Datagram { bytes: bytes[..length].to_vec(), ..datagram.clone() }
    };
    let mut world = world(Cipher::Aegis128X, &Cipher::ALL);
    let ours = world.connect(0, 1);
    world.transmit();
    let hello = world.wire.pop_front().unwrap();
    world.deliver(&forged(&hello, Cipher::Aes256Gcm));
    world.transmit();
    let cookie = world.wire.pop_front().unwrap();
    assert_eq!(world.deliver(&cookie), Some(Dropped::Stray), "it answers what was not asked");
    world.deliver(&forged(&cookie, Cipher::Aegis128X));
    world.transmit();
    let init = world.wire.pop_front().unwrap();
    let Some(Handshake { message: Message::Init { .. }, .. }) = Handshake::parse(&init.bytes)
    else {
        panic!("an Init follows");
    };
    assert_eq!(world.deliver(&forged(&init, Cipher::Aes256Gcm)), Some(Dropped::Unproven));
    assert!(world.hosts[1].table.is_empty());
    assert_eq!(world.deliver(&init), None, "as it was sent it is good");
    world.settle();
    assert!(world.hosts[0].table.is_connected(ours));
}

#[test]
fn keys_change_with_age_under_both() {
    for cipher in Cipher::available() {
        let (mut world, ours, theirs) = world(cipher, &[cipher]).join();
        let mut delivered = 0;
        for number in 0..6 {
            world.run(61_000);
            for (from, id) in [(0, ours), (1, theirs)] {
                let datagram = world.sealed(from, id, number, &[9; 600]);
                assert_eq!(world.deliver(&datagram), None, "{cipher}, packet {number}");
                delivered += 1;
            }
        }
        let changes = [0, 1].map(|h| world.hosts[h].table.counters().key_changes);
        assert!(changes.iter().all(|&n| n >= 2), "{cipher}: {changes:?} in 366 s");
        let got: usize = world.hosts.iter().map(|host| host.delivered.len()).sum();
        assert_eq!(got, delivered);
    }
}

#[test]
fn a_table_that_takes_no_cipher_is_refused() {
    let config = Config { accept_ciphers: Vec::new(), ..Config::default() };
    let error = Sessions::new(config, ring(), [1; 32]).map(drop).unwrap_err();
    assert!(error.contains("accept_ciphers"), "{error}");
}
