//! An address that has proved nothing receives less than it has sent, and costs no memory.

use super::adversary::elsewhere;
use super::cipher::Mode;
use super::cookie::Cookie;
use super::packet::{Command, Handshake, Message, Refusal, UNKNOWN_BYTES, kind};
use super::*;

/// The rings of each mode.
fn rings() -> [KeyRing; 3] {
    [KeyRing::insecure(), ring(), identified(1, &[2])]
}

/// Returns all handshake packets of a mode, with the cookie of another address: packets that a holder of a credential of this
/// ring can make, and packets of a sender without one.
fn handshakes(keys: &KeyRing, mode: Mode) -> Vec<Vec<u8>> {
    let cookie = Cookie([7; 16]);
    let noise = [1; 300];
    let lengths = [0, 1, 48, 96, 116, 300];
    let messages = [
        Message::Hello,
        Message::Cookie(cookie),
        Message::Refused(Refusal::Full),
        Message::Refused(Refusal::Application),
        Message::Refused(Refusal::Cipher),
        Message::Refused(Refusal::Draining),
    ];
    let of_length = |length: usize| {
        let noise = &noise[..length];
        [Message::Init { cookie, noise }, Message::Response { noise }, Message::Told { noise }]
    };
    let mut packets = Vec::new();
    for message in messages.into_iter().chain(lengths.into_iter().flat_map(of_length)) {
        for key in keys.ids() {
            let credential = keys.get(key).unwrap();
            let packet = Handshake { mode, key, initiator: 0x0101, message };
            let mut bytes = [0; 1000];
            let length = packet.write(credential, &mut bytes).unwrap();
            packets.push(bytes[..length].to_vec());
            bytes[length - 1] ^= 1;
            packets.push(bytes[..length].to_vec());
        }
    }
    packets
}

/// Returns all kinds of datagrams that prove no address.
fn questions() -> Vec<Vec<u8>> {
    let modes = Cipher::available().flat_map(|c| [Mode::Sealed(c), Mode::Identified(c)]);
    let mut questions: Vec<Vec<u8>> = modes
        .chain([Mode::Insecure])
        .flat_map(|mode| rings().into_iter().flat_map(move |ring| handshakes(&ring, mode)))
        .collect();
    for sealed in [false, true] {
        questions.push(packet::write_unknown(sealed, 0x0101, 0).to_vec());
        for carried in [0, 1, 2, 16, 100, 1400] {
            // Control packets of an unknown session, and the shortest packets of the transport.
            for command in 0..=Command::Joined as u8 + 1 {
                let mut bytes = Command::Ping.header().to_vec();
                bytes[3] = command;
                bytes.resize(bytes.len() + carried + guard_bytes(sealed), 1);
                questions.push(bytes);
            }
            let header = message(0, carried);
            let mut bytes = vec![1; header.encoded_len() + carried + guard_bytes(sealed)];
            apus_wire::encode(&header, &mut bytes).unwrap();
            questions.push(bytes);
        }
    }
    questions.push(REACH_PROBE.to_vec());
    questions.extend((0..100).map(|length| vec![0; length]));
    // Truncated versions of each of them, too.
    let cut = |bytes: &Vec<u8>| {
        let length = bytes.len();
        [length / 2, length.saturating_sub(1), length.min(17)].map(|cut| bytes[..cut].to_vec())
    };
    let cuts: Vec<Vec<u8>> = questions.iter().flat_map(cut).collect();
    questions.into_iter().chain(cuts).collect()
}

#[test]
fn no_answer_to_an_unproven_address_is_longer_than_its_question() {
    let mut kinds = [const { std::collections::BTreeSet::new() }; 3];
    for (keys, kinds) in rings().into_iter().zip(&mut kinds) {
        let mut host = host(1, keys, Config::default());
        let mut now = at(1_000_000);
        for question in questions() {
            // More time than the minimum interval of Unknowns.
            now += Span::from_ms(1);
            let _ = host.table.receive(now, elsewhere(), &mut question.clone());
            let mut out = [0; MAX_HANDSHAKE_BYTES];
            let mut answered = 0;
            while let Some((to, length)) = host.table.poll_transmit(now, &mut out) {
                assert_eq!(to, elsewhere().into());
                answered += length;
                kinds.insert(out[2]);
            }
            assert!(answered <= question.len(), "{answered} B for {question:02x?}");
        }
        assert!(host.table.is_empty() && !host.table.has_event());
        assert_eq!(host.table.next_timeout(), None);
    }
    // There were answers: Cookies and Unknowns.
    assert!(kinds.iter().all(|kinds| kinds.iter().eq(&[kind::COOKIE, kind::UNKNOWN])), "{kinds:?}");
}

#[test]
fn a_repeated_hello_is_answered_by_less_and_stores_nothing() {
    for keys in [|_| ring(), |n: u8| identified(n, &[3 - n])] {
        let mut world = World::with(keys(1), keys(2));
        world.connect(0, 1);
        world.transmit();
        let hello = world.wire.pop_front().expect("a Hello");
        assert_eq!(hello.bytes[2], kind::HELLO);
        let from = [world.address(0), elsewhere()];
        for n in 0..1_000 {
            // From its sender, and from an attacker that has recorded it.
            let again = Datagram { from: from[n % 2], ..hello.clone() };
            assert_eq!(world.deliver(&again), None);
            world.transmit();
            let answers: Vec<Datagram> = world.wire.drain(..).collect();
            let [answer] = &answers[..] else { panic!("{} answers", answers.len()) };
            assert_eq!((answer.to, answer.bytes[2]), (again.from, kind::COOKIE));
            assert!(answer.bytes.len() < again.bytes.len());
        }
        // If the answers cannot be sent, the queue of answers is bounded.
        for _ in 0..1_000 {
            world.deliver(&hello);
        }
        let table = &world.hosts[1].table;
        assert_eq!(table.waiting_replies(), 256);
        assert!(table.is_empty() && table.pending.is_empty() && world.hosts[1].events.is_empty());
        assert_eq!(table.next_timeout(), None);
        // None of the Hellos has used up the rate of handshakes that cost a Diffie-Hellman.
        assert_eq!(table.counters().dropped_rate, 0);
    }
}

/// The limit protects the engine: a flood of such packets costs at most 10,000 answers per second. Packets of unknown sessions
/// and Hellos of another mode, sent in turn, have one limit together.
#[test]
fn packets_of_unknown_sessions_and_other_modes_are_answered_once_per_100_us_at_most() {
    let header = message(0, 10);
    let mut unknown = vec![1; header.encoded_len() + 10 + guard_bytes(true)];
    apus_wire::encode(&header, &mut unknown).unwrap();
    let hello = Handshake {
        mode: Mode::Insecure,
        key: KeyId::INSECURE,
        initiator: 0x0101,
        message: Message::Hello,
    };
    let insecure = KeyRing::insecure();
    let mut other_mode = [0; 1000];
    let length = hello.write(insecure.get(hello.key).unwrap(), &mut other_mode).unwrap();
    let packets_in_turn =
        [(unknown, Dropped::UnknownSession), (other_mode[..length].to_vec(), Dropped::OtherMode)];
    for (apart_us, packets, answers) in [(50, 2, 1), (100, 2, 2), (10, 100_000, 10_000)] {
        let mut host = host(1, ring(), Config::default());
        let mut answered = 0;
        for n in 0..packets {
            let now = at(1_000_000) + Span::from_us(apart_us) * n;
            let (mut packet, why) = packets_in_turn[n as usize % 2].clone();
            let received = host.table.receive(now, elsewhere(), &mut packet);
            assert_eq!(received, Received::Dropped(why));
            let mut out = [0; MAX_HANDSHAKE_BYTES];
            while let Some((to, length)) = host.table.poll_transmit(now, &mut out) {
                let expected = (elsewhere().into(), UNKNOWN_BYTES, kind::UNKNOWN);
                assert_eq!((to, length, out[2]), expected);
                answered += 1;
            }
        }
        assert_eq!(answered, answers, "{packets} packets, {apart_us} us apart");
    }
}
