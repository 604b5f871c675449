//! Shared keys, and the credentials that handshakes prove: a shared key alone, or one with the key of the responder.

use std::{fmt, io};

use aws_lc_rs::{constant_time, hmac};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::identity::{KeyPair, PeerKey, push_hex};
use super::random;

/// Start of the line of a shared key, with the version of the format.
pub(crate) const MARK: &str = "apus-key-1";

/// Public name of a credential: a hash of a shared key, or of a shared key and the public key of the responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(u64);

impl KeyId {
    /// Name of the credential in the insecure mode.
    pub const INSECURE: Self = Self(0);

    /// Returns the value of the name on the wire.
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

/// A secret of 32 bytes that two or more peers share.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct SharedKey([u8; 32]);

impl SharedKey {
    /// Returns the key with these bytes. They must be random, or a secret with as much entropy, but never a password.
    #[must_use]
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// Returns a new key from the system's generator.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn generate() -> io::Result<Self> {
        Ok(Self(*random::system()?))
    }

    /// Returns the line of this key in a key file. Keep the line secret. It is wiped when dropped.
    #[must_use]
    pub fn to_line(&self) -> Zeroizing<String> {
        // Full capacity at once: if the line grew, copies of the secret would remain in memory.
        let mut line = Zeroizing::new(String::with_capacity(MARK.len() + 1 + 64));
        line.push_str(MARK);
        line.push(' ');
        push_hex(&mut line, &self.0);
        line
    }

    /// Returns the public name of the key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id_with(None)
    }

    /// Returns the public name of this key with the public key of a responder.
    pub(crate) fn id_with(&self, responder: Option<&PeerKey>) -> KeyId {
        let [a, b, c, d, e, f, g, h, ..] = *self.derive(b"apus key id", responder);
        // 0 names the insecure mode.
        KeyId(u64::from_be_bytes([a, b, c, d, e, f, g, h]).max(1))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn derive(&self, label: &[u8], responder: Option<&PeerKey>) -> Zeroizing<[u8; 32]> {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        context.update(label);
        if let Some(responder) = responder {
            context.update(responder.bytes());
        }
        let tag = context.sign();
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

/// Keys that a handshake proves in addition to the shared key.
#[derive(Clone, Debug)]
pub(crate) enum Level {
    /// No further key.
    Shared,
    /// The key of this host as the responder.
    Own(KeyPair),
    /// The key of a peer as the responder, and the key of this host as the initiator.
    Peer { own: KeyPair, peer: PeerKey },
}

impl Level {
    /// Returns `true` if both sides prove keys of their own.
    pub(crate) fn is_identified(&self) -> bool {
        !matches!(self, Self::Shared)
    }
}

/// A key in use: the secret for the handshake, and the key of the proof of each handshake packet.
#[derive(Clone, Debug)]
pub(crate) struct Credential {
    pub(crate) id: KeyId,
    pub(crate) secret: SharedKey,
    pub(crate) level: Level,
    /// Whether the credential opens no more sessions.
    pub(crate) retired: bool,
    mac: hmac::Key,
}

/// Bytes of the proof at the end of every handshake packet.
pub(crate) const MAC_BYTES: usize = 16;

impl Credential {
    pub(crate) fn new(secret: &SharedKey, level: Level, retired: bool) -> Self {
        let responder = match &level {
            Level::Shared => None,
            Level::Own(pair) => Some(pair.public()),
            Level::Peer { peer, .. } => Some(*peer),
        };
        let secret = secret.clone();
        let derived = secret.derive(b"apus handshake mac", responder.as_ref());
        let mac = hmac::Key::new(hmac::HMAC_SHA256, &derived[..]);
        Self { id: secret.id_with(responder.as_ref()), secret, level, retired, mac }
    }

    /// Returns the credential of the insecure mode.
    pub(crate) fn insecure() -> Self {
        let secret = SharedKey::new([0; 32]);
        Self { id: KeyId::INSECURE, ..Self::new(&secret, Level::Shared, false) }
    }

    pub(crate) fn mac(&self, bytes: &[u8]) -> [u8; MAC_BYTES] {
        let tag = hmac::sign(&self.mac, bytes);
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(&tag.as_ref()[..MAC_BYTES]);
        mac
    }

    /// Returns `true` if `mac` is the proof of `bytes`. The comparison takes constant time.
    pub(crate) fn proves(&self, bytes: &[u8], mac: &[u8]) -> bool {
        constant_time::verify_slices_are_equal(&self.mac(bytes), mac).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test cases 1 to 4 of RFC 4231 check HMAC-SHA256 itself; this case checks the truncation.
    #[test]
    fn rfc_4231_the_proof_is_an_hmac_cut_to_16_bytes() {
        let mac = hmac::Key::new(hmac::HMAC_SHA256, &[0x0b; 20]);
        let credential = Credential { mac, ..Credential::insecure() };
        let expected = [
            0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38, 0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b,
            0xf1, 0x2b,
        ];
        assert_eq!(credential.mac(b"Hi There"), expected);
        assert!(credential.proves(b"Hi There", &expected));
        assert!(!credential.proves(b"Hi There!", &expected));
        assert!(!credential.proves(b"Hi There", &expected[..15]));
    }

    #[test]
    fn the_name_and_the_proof_of_a_shared_key_differ_by_responder() {
        let secret = SharedKey::new([7; 32]);
        let [a, b] = [1, 2].map(|n| KeyPair::new([n; 32]).unwrap());
        let of = |level| Credential::new(&secret, level, false);
        let (alone, first, second) =
            (of(Level::Shared), of(Level::Own(a.clone())), of(Level::Own(b.clone())));
        assert_eq!(alone.id, secret.id());
        assert!(alone.id != first.id && first.id != second.id && alone.id != second.id);
        let peers = of(Level::Peer { own: b, peer: a.public() });
        assert_eq!(peers.id, first.id, "both sides name it alike");
        assert!(peers.proves(b"x", &first.mac(b"x")) && !second.proves(b"x", &first.mac(b"x")));
    }
}
