use super::*;

const DIGITS: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn pair(n: u8) -> KeyPair {
    KeyPair::new([n; 32]).unwrap()
}

fn peer(name: &str, n: u8) -> Entry {
    Entry::new(EntryKey::Peer(name.to_owned(), pair(n).public()))
}

fn own(n: u8) -> Entry {
    Entry::new(EntryKey::Own("this".to_owned(), pair(n)))
}

fn group(n: u8) -> Entry {
    Entry::new(EntryKey::Shared(SharedKey::new([n; 32])))
}

fn retired(entry: Entry) -> Entry {
    Entry { retired: true, ..entry }
}

#[test]
fn a_key_file_is_read_and_written_back() {
    let secret = core::array::from_fn(|i| i as u8);
    let text = format!("# the storage group\n\n  apus-key-1   {}\n", DIGITS.to_uppercase());
    let ring = KeyRing::parse(&text).unwrap();
    assert_eq!(ring.0.credentials[0].secret.bytes(), &secret);
    assert_eq!(*SharedKey::new(secret).to_line(), format!("apus-key-1 {DIGITS}"));
    assert!(!ring.is_insecure() && !ring.is_identified());
    assert!(KeyRing::insecure().is_insecure());
    let all = [group(1), own(2), peer("b.c_d-9", 3), retired(peer("old", 4)), retired(group(5))];
    let text: String = all.iter().map(|entry| entry.to_line().to_string() + "\n").collect();
    assert_eq!(entries(&text).unwrap(), all);
    assert!(text.contains("\nretired apus-peer-1 old "), "{text}");
    assert!(text.lines().all(|line| line.len() <= 256), "no line grows, which would copy a secret");
}

#[test]
fn what_is_no_key_is_named_by_its_line() {
    let zeros = "0".repeat(64);
    let public = pair(1).public();
    let bad = [
        "apus-key-1".to_owned(),
        format!("apus-key-2 {DIGITS}"),
        format!("apus-key-1 {}", &DIGITS[1..]),
        format!("apus-key-1 {DIGITS}0"),
        format!("apus-key-1 {DIGITS} 1"),
        format!("apus-key-1 {}", DIGITS.replace('f', "g")),
        format!("apus-key-1 {}", DIGITS.replace("0f", "+f")),
        format!("apus-key-1 {}", DIGITS.replace("0f1", "\u{fc}1")),
        format!("apus-key-1 {zeros}"),
        format!("retiredapus-key-1 {DIGITS}"),
        format!("apus-self-1 {DIGITS}"),
        format!("apus-self-1 a {zeros}"),
        format!("apus-self-1 a/b {DIGITS}"),
        format!("apus-peer-1 a {zeros}"),
        format!("apus-peer-1 {} {public}", "a".repeat(65)),
        format!("apus-peer-1 \u{fc} {public}"),
        format!("apus-peer-1 a {public} b"),
    ];
    for line in bad {
        let error = KeyRing::parse(&format!("# a comment\n{line}\n")).unwrap_err();
        assert_eq!(error, KeyError::Line(2), "{line}");
        // No part of a key is shown.
        let shown = format!("{error} {error:?}");
        for key in line.split(' ').filter(|word| word.len() > 60) {
            let mut parts = key.as_bytes().chunks_exact(8);
            let is_shown =
                parts.any(|part| shown.as_bytes().windows(8).any(|window| window == part));
            assert!(!is_shown, "{shown}");
        }
    }
    assert_eq!(KeyRing::parse("# nothing\n").unwrap_err(), KeyError::None);
    let line = format!("apus-key-1 {DIGITS}\n");
    let twice = KeyRing::parse(&line.repeat(2)).unwrap_err();
    assert!(matches!(twice, KeyError::Twice(_)));
    assert!(!twice.to_string().contains(&DIGITS[..8]));
}

#[test]
fn rings_that_contradict_themselves_are_errors() {
    let of = |entries: &[Entry]| KeyRing::of(entries.to_vec()).unwrap_err();
    assert_eq!(of(&[own(1)]), KeyError::None, "the shared key keeps strangers cheap");
    assert_eq!(of(&[retired(group(1))]), KeyError::None);
    assert_eq!(of(&[group(1), peer("a", 2)]), KeyError::NoOwn);
    assert_eq!(of(&[group(1), retired(own(1))]), KeyError::NoOwn);
    let error = of(&[group(1), own(1), peer("a", 2), peer("a", 3)]);
    assert_eq!(error, KeyError::NameTwice("a".to_owned()));
    let error = of(&[group(1), own(1), peer("a", 2), retired(peer("b", 2))]);
    assert_eq!(error, KeyError::HostTwice(pair(2).public()));
    let error = of(&[group(1), own(1), peer("a b", 2)]);
    assert_eq!(error, KeyError::Name("a b".to_owned()));
    let error = of(&[group(1), own(1), peer("a", 1)]);
    assert_eq!(error, KeyError::HostTwice(pair(1).public()), "a host is not its own peer");
}

#[test]
fn a_peer_is_named_unless_it_is_the_only_one() {
    let ring = |entries: &[Entry]| KeyRing::of(entries.to_vec()).unwrap();
    let (first, second) = (SharedKey::new([1; 32]), SharedKey::new([9; 32]));
    let id = |key: &SharedKey, n| key.id_with(Some(&pair(n).public()));
    let one = ring(&[group(1), group(9), own(1), peer("a", 2), retired(peer("b", 3))]);
    assert_eq!(one.towards(None), Ok(id(&first, 2)));
    assert_eq!(one.towards(Some("a")), Ok(id(&first, 2)));
    assert_eq!(one.towards(Some("b")), Err(PeerNameError::Unknown("b".to_owned())), "retired");
    let two = ring(&[retired(group(1)), group(9), own(1), peer("a", 2), peer("b", 3)]);
    assert_eq!(two.towards(None), Err(PeerNameError::Which));
    assert_eq!(two.towards(Some("b")), Ok(id(&second, 3)));
    assert_eq!(two.name_of(&pair(3).public()), Some("b"));
    assert_eq!(ring(&[group(1), own(1)]).towards(None), Err(PeerNameError::NoPeer));
    let shared = ring(&[retired(group(9)), group(1)]);
    assert_eq!(shared.towards(None), Ok(first.id()));
    assert_eq!(shared.towards(Some("a")), Err(PeerNameError::NoNames));
    assert_eq!(KeyRing::insecure().towards(None), Ok(KeyId::INSECURE));
}

#[test]
fn a_secret_is_not_shown() {
    let text = format!("apus-key-1 {DIGITS}\napus-self-1 me {DIGITS}");
    let shown = format!("{:?}", KeyRing::parse(&text).unwrap());
    assert!(!shown.contains(&DIGITS[..8]) && !shown.contains("1, 2, 3"), "{shown}");
}

#[test]
fn a_ring_has_a_bounded_number_of_keys() {
    let groups = |count: u16| {
        (0..count).map(|n| {
            let mut secret = [1; 32];
            secret[..2].copy_from_slice(&n.to_be_bytes());
            Entry::new(EntryKey::Shared(SharedKey::new(secret)))
        })
    };
    assert!(KeyRing::of(groups(1024)).is_ok());
    assert_eq!(KeyRing::of(groups(1025)).unwrap_err(), KeyError::TooMany);
    let with_peers = groups(1000).chain([own(1)]).chain((2..19).map(|n| peer(&n.to_string(), n)));
    assert_eq!(KeyRing::of(with_peers).unwrap_err(), KeyError::TooMany, "18,000 pairs");
    // The limit applies to each kind, in any order of the lines.
    let peers = |count: u16| {
        (0..count).map(|n| {
            let mut public = [1; 32];
            public[..2].copy_from_slice(&n.to_be_bytes());
            let key = PeerKey::new(public).unwrap();
            Entry::new(EntryKey::Peer(format!("peer-{n}"), key))
        })
    };
    assert!(KeyRing::of(peers(1024).chain([group(1), own(1)])).is_ok());
    assert!(KeyRing::of([own(1), group(1)].into_iter().chain(peers(1024))).is_ok());
    let beyond = KeyRing::of(peers(1025).chain([group(1), own(1)])).unwrap_err();
    assert_eq!(beyond, KeyError::TooMany);
}

/// A vector that grows returns its former buffer, with the secrets in it, to the allocator.
#[test]
fn vectors_of_secrets_have_their_full_capacity_at_once() {
    let all = [group(1), group(2), group(3), own(4), peer("a", 5), peer("b", 6), peer("c", 7)];
    let text: String = all.iter().map(|entry| entry.to_line().to_string() + "\n").collect();
    assert_eq!(entries(&text).unwrap().capacity(), all.len());
    let credentials = &KeyRing::parse(&text).unwrap().0.credentials;
    assert_eq!((credentials.len(), credentials.capacity()), (3 * 4, 3 * 4));
}
