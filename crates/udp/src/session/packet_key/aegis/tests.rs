//! Published test vectors, and the choice of the key for a packet.

use super::super::PacketKey;
use super::super::tests::{gives, hex};
use super::*;

fn aegis(short: [u8; 16], long: [u8; 16], iv: [u8; 16]) -> PacketKey {
    let [short, long, iv] = [short, long, iv].map(Zeroizing::new);
    PacketKey::Aegis128X(Aegis128X { short, long, iv })
}

/// RFC 10032, App. A, AEGIS-128L, test vectors 1 to 5, with tags of 128 bits.
#[test]
fn rfc_10032_aegis_128l_vectors() {
    let key = aegis(
        hex("10010000000000000000000000000000"),
        [0xee; 16],
        hex("10000200000000000000000000000000"),
    );
    gives(
        &key,
        b"",
        &[0; 16],
        &hex::<16>("c1c0e58bd913006feba00f4b3cc3594e"),
        &hex("abe0ece80c24868a226a35d16bdae37a"),
    );
    gives(&key, b"", b"", b"", &hex("c2b879a67def9d74e6c14f708bbcc9b4"));
    let ascending: [u8; 48] = core::array::from_fn(|i| i as u8);
    gives(
        &key,
        &ascending[..8],
        &ascending[..32],
        &hex::<32>("79d94593d8c2119d7e8fd9b8fc77845c5c077a05b2528b6ac54b563aed8efe84"),
        &hex("cc6f3372f6aa1bb82388d695c3962d9a"),
    );
    gives(
        &key,
        &ascending[..8],
        &ascending[..14],
        &hex::<14>("79d94593d8c2119d7e8fd9b8fc77"),
        &hex("5c04b3dba849b2701effbe32c7f0fab7"),
    );
    let plain: [u8; 40] = core::array::from_fn(|i| 0x10 + i as u8);
    gives(
        &key,
        &ascending[..42],
        &plain,
        &hex::<40>(concat!(
            "b31052ad1cca4e291abcf2df3502e6bdb1bfd6db36798be3607b1f94d34478aa",
            "7ede7f7a990fec10"
        )),
        &hex("7542a745733014f9474417b337399507"),
    );
}

/// RFC 10032, App. A, AEGIS-128L, test vectors 6 to 9: verification fails. Compared with vector 4, these change in turn: key
/// and nonce, the text, the readable bytes, and the tag.
#[test]
fn rfc_10032_aegis_128l_vectors_that_must_fail() {
    let (key, iv) =
        (hex("10010000000000000000000000000000"), hex("10000200000000000000000000000000"));
    let good = aegis(key, [0xee; 16], iv);
    let readable = hex::<8>("0001020304050607");
    let text = "79d94593d8c2119d7e8fd9b8fc77";
    let tag = "5c04b3dba849b2701effbe32c7f0fab7";
    let opens = |key: &PacketKey, readable: &[u8], text: &str, tag: &str| {
        key.open(0, readable, &mut [&hex::<14>(text)[..], &hex::<16>(tag)].concat())
    };
    assert!(opens(&good, &readable, text, tag));
    assert!(!opens(&aegis(iv, [0xee; 16], key), &readable, text, tag));
    assert!(!opens(&good, &readable, "79d94593d8c2119d7e8fd9b8fc78", tag));
    assert!(!opens(&good, &hex::<8>("0001020304050608"), text, tag));
    assert!(!opens(&good, &readable, text, "6c04b3dba849b2701effbe32c7f0fab8"));
}

/// RFC 10032, App. A, AEGIS-128X4, test vectors 1 and 2, with tags of 128 bits. They are shorter than the payloads that are
/// sealed with this degree, so [`Aegis128X::encrypt`] takes its degree as an argument.
#[test]
fn rfc_10032_aegis_128x4_vectors() {
    let ascending: [u8; 32] = core::array::from_fn(|i| i as u8);
    let long = Zeroizing::new(*ascending.first_chunk().unwrap());
    let iv = Zeroizing::new(*ascending[16..].first_chunk().unwrap());
    let key = Aegis128X { short: Zeroizing::new([0xee; 16]), long, iv };
    let tag = key.encrypt(Degree::Four, 0, b"", &mut []);
    assert_eq!(tag, hex("5bef762d0947c00455b97bb3af30dfa3"));
    let plain = [4, 5, 6, 7].repeat(30);
    let readable = [1, 2, 3, 4, 1, 2, 3, 4];
    let mut bytes = plain.clone();
    let tag = key.encrypt(Degree::Four, 0, &readable, &mut bytes);
    let sealed: [u8; 120] = hex(concat!(
        "e836118562f4479c9d35c17356a833114c21f9aa39e4dda5e5c87f4152a00fce",
        "9a7c38f832eafe8b1c12f8a7cf12a81a1ad8a9c24ba9dedfbdaa586ffea67ddc",
        "801ea97d9ab4a872f42d0e352e2713dacd609f9442c17517c5a29daf3e2a3fac",
        "4ff6b1380c4e46df7b086af6ce6bc1ed594b8dd64aed2a7e"
    ));
    assert_eq!((&bytes[..], tag), (&sealed[..], hex("0e56ab94e2e85db80f9d54010caabfb4")));
    assert!(key.decrypt(Degree::Four, 0, &readable, &mut bytes, &tag));
    assert_eq!(bytes, plain);
}

/// The degree depends on the payload's length alone, and each degree has its own key.
#[test]
fn payloads_from_256_bytes_on_go_under_degree_four() {
    let both = |short, long| match aegis([short; 16], [long; 16], [3; 16]) {
        PacketKey::Aegis128X(key) => key,
        PacketKey::Aes256Gcm(_) => unreachable!("it is AEGIS"),
    };
    for (length, degree) in
        [(0, Degree::One), (255, Degree::One), (256, Degree::Four), (9_000, Degree::Four)]
    {
        let plain = vec![1; length];
        let sealed = |key: &Aegis128X| {
            let mut bytes = vec![0; length + TAG_BYTES];
            key.seal(7, b"header", &plain, &mut bytes);
            bytes
        };
        let mut bytes = plain.clone();
        let tag = both(1, 2).encrypt(degree, 7, b"header", &mut bytes);
        assert_eq!(sealed(&both(1, 2)), [bytes, tag.to_vec()].concat(), "{length} bytes");
        let other = if degree == Degree::One { both(1, 9) } else { both(9, 2) };
        assert_eq!(sealed(&both(1, 2)), sealed(&other), "the other key is not used");
    }
}
