//! What long-lived keys open that were stolen: the shared key, and the pairs of hosts.

use zeroize::Zeroizing;

use super::cipher::Mode;
use super::cookie::Cookie;
use super::noise::Noise;
use super::noise::thief::{self, Shown};
use super::packet::{Handshake, Message};
use super::*;

const COOKIE: Cookie = Cookie([3; 16]);

/// Returns a handshake packet of host 0 of a world, which has this ring.
fn handshake<'m>(keys: &KeyRing, message: Message<'m>) -> Handshake<'m> {
    let key = keys.towards(None).unwrap();
    let mode = match keys.get(key).unwrap().level.is_identified() {
        true => Mode::Identified(Cipher::Aes256Gcm),
        false => Mode::Sealed(Cipher::Aes256Gcm),
    };
    Handshake { mode, key, initiator: 2, message }
}

/// Somebody has recorded a handshake, and gets all long-lived keys later: the shared key and the pairs of both sides.
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
        // With the keys of both sides the thief repeats the client's part, but for the secret of both ephemeral keys.
        let ephemeral = *first.first_chunk().unwrap();
        let shown = Shown::Ephemeral(ephemeral);
        let mut thief = thief::initiator(shown, &pair(2), credential(0), &packet, COOKIE);
        assert_eq!(thief.write(b"hello").unwrap(), first, "nothing else is missing");
        assert_eq!(thief.read(&second), None);
        // That is what is missing: with the client's ephemeral key the second message is readable.
        let mut thief = side(true, 11);
        assert_eq!(thief.write(b"hello").unwrap(), first);
        assert_eq!(thief.read(&second).as_deref(), Some(&b"welcome"[..]));
    }
}

/// Key compromise impersonation (Noise §7.7): the first message of IK is authenticated by a secret of both sides' pairs, so that the
/// server's pair suffices to forge it. To read the answer takes the client's pair.
#[test]
fn a_stolen_server_key_asks_in_the_name_of_any_client_and_is_never_connected() {
    let mut world = World::with(identified(3, &[2]), identified(2, &[1]));
    let credential = {
        let keys = &world.hosts[0].table.keys;
        keys.get(keys.towards(None).unwrap()).unwrap().clone()
    };
    let (from, to) = (world.address(0), world.address(1));
    let send = |world: &mut World, message: Message<'_>| {
        let packet = handshake(&world.hosts[0].table.keys, message);
        let mut bytes = [0; MAX_HANDSHAKE_BYTES];
        let length = packet.write(&credential, &mut bytes).unwrap();
        let dropped = world.deliver(&Datagram { from, to, bytes: bytes[..length].to_vec() });
        assert_eq!(dropped, None);
        world.transmit();
        world.wire.pop_front().expect("an answer").bytes
    };
    let answer = send(&mut world, Message::Hello);
    let Some(Message::Cookie(cookie)) = Handshake::parse(&answer).map(|packet| packet.message)
    else {
        panic!("a cookie")
    };
    let shown = Shown::Client(*pair(1).public().bytes());
    let hello = handshake(&world.hosts[0].table.keys, Message::Hello);
    let mut thief = thief::initiator(shown, &pair(2), &credential, &hello, cookie);
    // A process, the number of its session, and a hello.
    let text = [&[0; 16][..], &hello.initiator.to_be_bytes(), b"hello"].concat();
    let first = thief.write(&text).unwrap();
    let answer = send(&mut world, Message::Init { cookie, noise: &first });
    let Event::Incoming { identity, .. } = &world.hosts[1].events[0] else { panic!("came in") };
    assert_eq!(*identity, Some(pair(1).public()), "in the name of host 1");
    let Some(Message::Response { noise }) = Handshake::parse(&answer).map(|packet| packet.message)
    else {
        panic!("a response")
    };
    assert_eq!(thief.read(noise), None);
    world.run(5_000);
    assert_eq!(world.hosts[1].session(), None);
    assert!(world.hosts[1].table.is_empty());
}
