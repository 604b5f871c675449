//! Keys of hosts: each side of an identified session proves its own.

use std::fmt;
use std::io;
use std::str::FromStr;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::primitives::X25519;
use super::random;

/// Bytes of a private or public key (X25519, RFC 7748).
pub(crate) const KEY_BYTES: usize = 32;

/// Public key of a host, by which peers identify the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerKey([u8; KEY_BYTES]);

impl PeerKey {
    /// Returns the key with these bytes. Returns `None` for a point of low order: with it, every private key gives the same
    /// secret.
    #[must_use]
    pub fn new(bytes: [u8; KEY_BYTES]) -> Option<Self> {
        // Private keys are multiples of the cofactor, so their product with such a point is zero (RFC 7748 §6.1).
        X25519::new(&[9; KEY_BYTES])?.agree(&bytes, |_| Self(bytes))
    }

    /// Returns the key with these bytes. The caller has agreed on a secret with it, so it does not have low order.
    pub(super) const fn agreed(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Display for PeerKey {
    /// 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerKey({self})")
    }
}

impl FromStr for PeerKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        read_hex(text).and_then(|bytes| Self::new(*bytes)).ok_or_else(|| {
            format!("`{text}` is not a public key; write the 64 hexadecimal digits of `apus key --public`")
        })
    }
}

/// Key pair of a host. The private half is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct KeyPair {
    secret: [u8; KEY_BYTES],
    #[zeroize(skip)]
    public: PeerKey,
}

impl KeyPair {
    /// Returns the key pair of a private key, which must be random. Returns `None` if all bytes are zero.
    #[must_use]
    pub fn new(secret: [u8; KEY_BYTES]) -> Option<Self> {
        let public = *X25519::new(&secret)?.public();
        // A multiple of the base point lies in the subgroup of large prime order, so it does not have low order.
        let pair = Self { secret, public: PeerKey::agreed(public) };
        (secret != [0; KEY_BYTES]).then_some(pair)
    }

    /// Returns a new key pair from the system's generator.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn generate() -> io::Result<Self> {
        Self::new(*random::system()?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Returns the public half of the pair.
    #[must_use]
    pub const fn public(&self) -> PeerKey {
        self.public
    }

    pub(crate) const fn secret(&self) -> &[u8; KEY_BYTES] {
        &self.secret
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", self.public)
    }
}

/// Reads 64 hexadecimal digits.
pub(crate) fn read_hex(digits: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let nibble = |digit: u8| char::from(digit).to_digit(16);
        // Two hexadecimal digits are below 256.
        *byte = (nibble(pair[0])? << 4 | nibble(pair[1])?) as u8;
    }
    Some(bytes)
}

/// Appends 64 hexadecimal digits to a text with room for them. If the text grew, copies of a secret would remain in memory.
pub(crate) fn push_hex(text: &mut String, bytes: &[u8; KEY_BYTES]) {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            // A nibble is a hexadecimal digit.
            text.extend(char::from_digit(u32::from(nibble), 16));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::packet_key::tests::hex;

    /// The responder's static pair in cacophony's vectors.
    #[test]
    fn a_private_key_has_the_public_key_of_the_published_vectors() {
        let secret = hex("4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893");
        let public = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62";
        let pair = KeyPair::new(secret).unwrap();
        assert_eq!(pair.public().to_string(), public);
        assert_eq!(public.parse(), Ok(pair.public()));
        assert_eq!(format!("{pair:?}"), format!("KeyPair({public})"), "no secret is shown");
    }

    /// RFC 7748 §6.1 and its errata: 0 and 1 have low order, as has 2^255 - 20, which is -1 modulo p.
    #[test]
    fn points_of_low_order_and_other_texts_are_no_public_keys() {
        let mut minus_one = [0xff; 32];
        (minus_one[0], minus_one[31]) = (0xec, 0x7f);
        let mut one = [0; 32];
        one[0] = 1;
        for bytes in [[0; 32], one, minus_one] {
            assert_eq!(PeerKey::new(bytes), None);
        }
        for text in ["", "31e0", &"0".repeat(64), &"g".repeat(64), &"\u{fc}".repeat(32)] {
            assert!(text.parse::<PeerKey>().is_err(), "{text}");
        }
        assert_eq!(KeyPair::new([0; 32]), None);
    }

    #[test]
    fn pairs_are_wiped_when_dropped_and_differ() {
        fn is_wiped<T: ZeroizeOnDrop>() {}
        is_wiped::<KeyPair>();
        assert_ne!(KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    }
}
