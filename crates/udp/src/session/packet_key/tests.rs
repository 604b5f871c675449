//! Published vectors.

use super::*;

pub(in crate::session) fn hex<const N: usize>(digits: &str) -> [u8; N] {
    assert_eq!(digits.len(), 2 * N);
    core::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
}

/// McGrew and Viega, "The Galois/Counter Mode of Operation", App. B, test case 16. The number mixed into the initialisation
/// vector is 0, so the nonce is the initialisation vector itself.
#[test]
fn gcm_specification_test_case_16() {
    let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    let iv = Zeroizing::new(hex("cafebabefacedbaddecaf888"));
    let key = PacketKey::Aes256Gcm(Aes256Gcm { key: aes_256_gcm(&key), iv });
    let readable = hex::<20>("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    let plain: [u8; 60] = hex(concat!(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72",
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
    ));
    let sealed: [u8; 60] = hex(concat!(
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa",
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
    ));
    gives(&key, &readable, &plain, &sealed, &hex("76fc6ece0f4e1768cddf8853bb2d551b"));
}

/// Checks that sealing gives these bytes, and that they open.
pub(super) fn gives(key: &PacketKey, readable: &[u8], plain: &[u8], sealed: &[u8], tag: &[u8; 16]) {
    let mut bytes = vec![0; plain.len() + TAG_BYTES];
    key.seal(0, readable, plain, &mut bytes);
    assert_eq!(bytes, [sealed, tag].concat());
    assert!(key.open(0, readable, &mut bytes));
    assert_eq!(&bytes[..plain.len()], plain);
}

/// RFC 9001 §5.3 and App. A.5: the initialisation vector with packet number 654360564 mixed in.
#[test]
fn rfc_9001_the_number_is_mixed_into_the_vector() {
    let mixed = nonce(&hex("e0459b3474bdd0e44a41c144"), 654_360_564);
    assert_eq!(mixed, hex::<12>("e0459b3474bdd0e46d417eb0"));
    let mixed = nonce(&[0xff; 16], 1);
    assert_eq!(mixed[..15], [0xff; 15]);
    assert_eq!(mixed[15], 0xfe);
}
