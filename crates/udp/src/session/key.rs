//! Shared keys: a holder of a key may open sessions under it.
//!
//! A key file is text. Lines that are empty or begin with `#` are skipped. Every other line is
//! `apus-key-1 SECRET`, where the secret is 32 bytes as 64 hexadecimal digits. A server may hold many keys
//! (one per client or group, so that one can be withdrawn). A client usually holds one.

use std::{fmt, io};

use aws_lc_rs::{constant_time, hmac};
use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::random;

/// Start of the line of a key, with the version of the format.
const MARK: &str = "apus-key-1";

/// Maximum number of keys in a ring, which is searched linearly.
/// deviation: no source; a thousand groups of peers are many.
pub const MAX_KEYS: usize = 1024;

/// The public name of a key: a hash of its secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(u64);

impl KeyId {
    /// The name of the key in the insecure mode.
    pub const INSECURE: Self = Self(0);

    /// Returns its value on the wire.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    pub(crate) const fn new(id: u64) -> Self {
        Self(id)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A secret that two or more peers share.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct SharedKey([u8; 32]);

impl SharedKey {
    /// Returns the key with these bytes, which must be random or a secret with as much entropy, never a password.
    #[must_use]
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Returns a new key from the system's generator.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn generate() -> io::Result<Self> {
        Ok(Self(*random::system()?))
    }

    /// Returns the line of a key file with this key. Keep it secret. It is wiped when dropped.
    #[must_use]
    pub fn to_line(&self) -> Zeroizing<String> {
        // Full capacity at once: growing would leave copies of the secret in memory.
        let mut line = Zeroizing::new(String::with_capacity(MARK.len() + 1 + 64));
        line.push_str(MARK);
        line.push(' ');
        for byte in self.0 {
            for nibble in [byte >> 4, byte & 15] {
                // A nibble is a hexadecimal digit.
                line.extend(char::from_digit(u32::from(nibble), 16));
            }
        }
        line
    }

    /// Returns its public name.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let [a, b, c, d, e, f, g, h, ..] = *self.derive(b"apus key id");
        // 0 names the insecure mode.
        KeyId(u64::from_be_bytes([a, b, c, d, e, f, g, h]).max(1))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn derive(&self, label: &[u8]) -> Zeroizing<[u8; 32]> {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), label);
        let mut bytes = Zeroizing::new([0; 32]);
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedKey({})", self.id())
    }
}

/// A key in use: the secret for the handshake, and the key of the proof of each handshake packet.
#[derive(Clone, Debug)]
pub(crate) struct Credential {
    pub(crate) id: KeyId,
    pub(crate) secret: SharedKey,
    mac: hmac::Key,
}

/// Bytes of the proof at the end of every handshake packet.
pub(crate) const MAC_BYTES: usize = 16;

impl Credential {
    fn new(id: KeyId, secret: SharedKey) -> Self {
        let mac = hmac::Key::new(hmac::HMAC_SHA256, &secret.derive(b"apus handshake mac")[..]);
        Self { id, secret, mac }
    }

    pub(crate) fn mac(&self, bytes: &[u8]) -> [u8; MAC_BYTES] {
        let tag = hmac::sign(&self.mac, bytes);
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(&tag.as_ref()[..MAC_BYTES]);
        mac
    }

    /// Returns `true` if `mac` is the proof of `bytes`. Compares in constant time.
    pub(crate) fn proves(&self, bytes: &[u8], mac: &[u8]) -> bool {
        constant_time::verify_slices_are_equal(&self.mac(bytes), mac).is_ok()
    }
}

/// The keys that a process accepts and offers, or the insecure mode, which has none.
#[derive(Clone, Debug)]
pub struct KeyRing {
    credentials: Vec<Credential>,
    insecure: bool,
}

impl KeyRing {
    /// Returns a ring of these keys.
    ///
    /// # Errors
    /// If there is no key, there are too many, or a key occurs twice.
    pub fn new(keys: impl IntoIterator<Item = SharedKey>) -> Result<Self, KeyError> {
        let mut credentials: Vec<Credential> = Vec::new();
        for secret in keys {
            let id = secret.id();
            if credentials.iter().any(|c| c.id == id) {
                return Err(KeyError::Twice(id));
            }
            if credentials.len() == MAX_KEYS {
                return Err(KeyError::TooMany);
            }
            credentials.push(Credential::new(id, secret));
        }
        if credentials.is_empty() {
            return Err(KeyError::None);
        }
        Ok(Self { credentials, insecure: false })
    }

    /// Returns the insecure mode: packets have a checksum against damage, and any host may be a peer. For benchmarks on a
    /// network that is trusted as a whole.
    #[must_use]
    pub fn insecure() -> Self {
        let secret = SharedKey::new([0; 32]);
        Self { credentials: vec![Credential::new(KeyId::INSECURE, secret)], insecure: true }
    }

    /// Reads the text of a key file: lines of `apus-key-1` and 64 hexadecimal digits.
    ///
    /// # Errors
    /// The first invalid line, or a text without a key.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut keys = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let secret = line.strip_prefix(MARK).map(str::trim).and_then(secret_of);
            keys.push(secret.ok_or(KeyError::Line(index + 1))?);
        }
        Self::new(keys)
    }

    /// Returns `true` in the insecure mode.
    #[must_use]
    pub fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// Returns the public names of the keys. The first is the one to offer by default.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.credentials.iter().map(|c| c.id)
    }

    pub(crate) fn get(&self, id: KeyId) -> Option<&Credential> {
        self.credentials.iter().find(|c| c.id == id)
    }
}

/// Reads 64 hexadecimal digits as a key. A secret of zeros belongs to the insecure mode.
fn secret_of(digits: &str) -> Option<SharedKey> {
    let digits = digits.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut secret = Zeroizing::new([0; 32]);
    for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
        let nibble = |digit: u8| char::from(digit).to_digit(16);
        // Two hexadecimal digits are below 256.
        *byte = (nibble(pair[0])? << 4 | nibble(pair[1])?) as u8;
    }
    (*secret != [0; 32]).then(|| SharedKey::new(*secret))
}

/// Why a ring of keys is invalid. No message contains a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// This line, counted from 1, is not a key.
    #[error("line {0} is not a key; write `{MARK}` and 64 hexadecimal digits, not all 0")]
    Line(usize),
    /// The ring would be empty.
    #[error("no key found; write a line of `{MARK}` and 64 hexadecimal digits")]
    None,
    /// This key occurs twice.
    #[error("key {0} occurs twice; remove one of them")]
    Twice(KeyId),
    /// More than [`MAX_KEYS`].
    #[error("more than {MAX_KEYS} keys; divide the peers among several hosts")]
    TooMany,
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn a_key_file_is_read_and_written_back() {
        let secret = core::array::from_fn(|i| i as u8);
        let text = format!("# the storage group\n\n  apus-key-1   {}\n", DIGITS.to_uppercase());
        let ring = KeyRing::parse(&text).unwrap();
        assert_eq!(ring.credentials[0].secret.bytes(), &secret);
        assert_eq!(*SharedKey::new(secret).to_line(), format!("apus-key-1 {DIGITS}"));
        assert!(!ring.is_insecure());
        assert!(KeyRing::insecure().is_insecure());
    }

    #[test]
    fn what_is_no_key_is_named_by_its_line() {
        let zeros = "0".repeat(64);
        let bad = [
            "apus-key-1".to_owned(),
            format!("apus-key-2 {DIGITS}"),
            format!("apus-key-1 {}", &DIGITS[1..]),
            format!("apus-key-1 {DIGITS}0"),
            format!("apus-key-1 {}", DIGITS.replace('f', "g")),
            format!("apus-key-1 {}", DIGITS.replace("0f", "+f")),
            format!("apus-key-1 {}", DIGITS.replace("0f1", "\u{fc}1")),
            format!("apus-key-1 {zeros}"),
        ];
        for line in bad {
            let error = KeyRing::parse(&format!("# a comment\n{line}\n")).unwrap_err();
            assert_eq!(error, KeyError::Line(2), "{line}");
        }
        assert_eq!(KeyRing::parse("# nothing\n").unwrap_err(), KeyError::None);
        let line = format!("apus-key-1 {DIGITS}\n");
        let twice = KeyRing::parse(&line.repeat(2)).unwrap_err();
        assert!(matches!(twice, KeyError::Twice(_)));
        assert!(!twice.to_string().contains(&DIGITS[..8]));
    }

    #[test]
    fn a_secret_is_not_shown() {
        let ring = KeyRing::parse(&format!("apus-key-1 {DIGITS}")).unwrap();
        let shown = format!("{ring:?}");
        assert!(!shown.contains(&DIGITS[..8]) && !shown.contains("1, 2, 3"), "{shown}");
    }

    /// RFC 4231, test case 1 to 4 check HMAC-SHA256 itself; this one our truncation.
    #[test]
    fn rfc_4231_the_proof_is_an_hmac_cut_to_16_bytes() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[0x0b; 20]);
        let credential =
            Credential { id: KeyId::new(1), secret: SharedKey::new([1; 32]), mac: key };
        let expected = [
            0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b,
            0xf1, 0x2b,
        ];
        assert_eq!(credential.mac(b"Hi There"), expected);
        assert!(credential.proves(b"Hi There", &expected));
        assert!(!credential.proves(b"Hi There!", &expected));
        assert!(!credential.proves(b"Hi There", &expected[..15]));
    }
}
