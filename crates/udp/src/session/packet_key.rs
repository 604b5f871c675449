//! The key of one epoch and direction: packets sealed and opened where they lie.

use aegis::aegis128l::Aegis128L;
use aegis::aegis128x4::Aegis128X4;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// Bytes of an AEAD's tag, whichever it is.
pub(crate) const TAG_BYTES: usize = 16;

/// Payloads from this length on go under AEGIS-128X4, shorter ones under AEGIS-128L. deviation: no source;
/// measured (docs/security.md): where both take the same time on a CPU with 512-bit VAES. The length is
/// not secret, so both ends know which it is.
const LONG_BYTES: usize = 256;

/// The key of one epoch and direction.
pub(crate) enum PacketKey {
    Aes256Gcm(Aes256Gcm),
    Aegis128X(Aegis128X),
}

/// AES-256-GCM.
pub(crate) struct Aes256Gcm {
    key: LessSafeKey,
    iv: Zeroizing<[u8; NONCE_LEN]>,
}

/// AEGIS-128X of degree 1, which is AEGIS-128L, for short payloads and of degree 4 for long ones. Each has
/// a key of its own, so that nothing depends on how the two are related.
pub(crate) struct Aegis128X {
    short: Zeroizing<[u8; 16]>,
    long: Zeroizing<[u8; 16]>,
    iv: Zeroizing<[u8; 16]>,
}

/// The initialisation vector with the packet's number mixed in (RFC 9001 §5.3): no nonce comes twice
/// under a key, as no number does.
#[inline]
fn nonce<const N: usize>(iv: &[u8; N], number: u64) -> [u8; N] {
    let mut nonce = *iv;
    for (byte, n) in nonce[N - 8..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= n;
    }
    nonce
}

impl PacketKey {
    pub(crate) fn aes_256_gcm(key: &[u8; 32], iv: Zeroizing<[u8; NONCE_LEN]>) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, key).expect("the key has 32 bytes");
        Self::Aes256Gcm(Aes256Gcm { key: LessSafeKey::new(key), iv })
    }

    pub(crate) fn aegis_128x(
        short: Zeroizing<[u8; 16]>,
        long: Zeroizing<[u8; 16]>,
        iv: Zeroizing<[u8; 16]>,
    ) -> Self {
        Self::Aegis128X(Aegis128X { short, long, iv })
    }

    /// Encrypts `payload` where it lies, and authenticates it with `readable`.
    #[inline]
    pub(crate) fn seal(&self, number: u64, readable: &[u8], payload: &mut [u8], tag: &mut [u8]) {
        match self {
            Self::Aes256Gcm(key) => key.seal(number, readable, payload, tag),
            Self::Aegis128X(key) => key.seal(number, readable, payload, tag),
        }
    }

    /// As [`Self::seal`], with the payload from elsewhere; `payload_and_tag` is as long as both.
    #[inline]
    pub(crate) fn seal_from(
        &self,
        number: u64,
        readable: &[u8],
        payload: &[u8],
        payload_and_tag: &mut [u8],
    ) {
        match self {
            Self::Aes256Gcm(key) => key.seal_from(number, readable, payload, payload_and_tag),
            Self::Aegis128X(key) => {
                // The library encrypts in place, or by a state that it wipes byte by byte afterwards,
                // which takes longer than this copy (docs/security.md).
                let (place, tag) = payload_and_tag.split_at_mut(payload.len());
                place.copy_from_slice(payload);
                key.seal(number, readable, place, tag);
            }
        }
    }

    /// Opens a packet in place; false if it is not authentic, and then its payload may be overwritten.
    #[inline]
    pub(crate) fn open(&self, number: u64, readable: &[u8], payload_and_tag: &mut [u8]) -> bool {
        match self {
            Self::Aes256Gcm(key) => key.open(number, readable, payload_and_tag),
            Self::Aegis128X(key) => key.open(number, readable, payload_and_tag),
        }
    }
}

impl Aes256Gcm {
    #[inline]
    fn nonce(&self, number: u64) -> Nonce {
        Nonce::assume_unique_for_key(nonce(&self.iv, number))
    }

    #[inline]
    fn seal(&self, number: u64, readable: &[u8], payload: &mut [u8], tag: &mut [u8]) {
        let made = self
            .key
            .seal_in_place_separate_tag(self.nonce(number), Aad::from(readable), payload)
            .expect("a packet is far below the cipher's limit");
        tag.copy_from_slice(made.as_ref());
    }

    /// Encrypting copies.
    #[inline]
    fn seal_from(&self, number: u64, readable: &[u8], payload: &[u8], payload_and_tag: &mut [u8]) {
        self.key
            .seal_in_place_scatter(
                self.nonce(number),
                Aad::from(readable),
                &mut [],
                payload,
                payload_and_tag,
            )
            .expect("a packet is far below the cipher's limit, and there is room for its tag");
    }

    #[inline]
    fn open(&self, number: u64, readable: &[u8], payload_and_tag: &mut [u8]) -> bool {
        self.key.open_in_place(self.nonce(number), Aad::from(readable), payload_and_tag).is_ok()
    }
}

/// Blocks of AES that AEGIS-128X works on side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Degree {
    One,
    Four,
}

impl Degree {
    #[inline]
    fn of(payload: &[u8]) -> Self {
        if payload.len() < LONG_BYTES { Self::One } else { Self::Four }
    }
}

impl Aegis128X {
    #[inline]
    fn seal(&self, number: u64, readable: &[u8], payload: &mut [u8], tag: &mut [u8]) {
        tag.copy_from_slice(&self.encrypt(Degree::of(payload), number, readable, payload));
    }

    #[inline]
    fn open(&self, number: u64, readable: &[u8], payload_and_tag: &mut [u8]) -> bool {
        payload_and_tag
            .split_last_chunk_mut()
            .is_some_and(|(text, tag)| self.decrypt(Degree::of(text), number, readable, text, tag))
    }

    #[inline]
    fn encrypt(
        &self,
        degree: Degree,
        number: u64,
        readable: &[u8],
        payload: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let nonce = nonce(&self.iv, number);
        match degree {
            Degree::One => Aegis128L::new(&self.short, &nonce).encrypt_in_place(payload, readable),
            Degree::Four => Aegis128X4::new(&self.long, &nonce).encrypt_in_place(payload, readable),
        }
    }

    #[inline]
    fn decrypt(
        &self,
        degree: Degree,
        number: u64,
        readable: &[u8],
        text: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> bool {
        let nonce = nonce(&self.iv, number);
        let opened = match degree {
            Degree::One => {
                Aegis128L::new(&self.short, &nonce).decrypt_in_place(text, tag, readable)
            }
            Degree::Four => {
                Aegis128X4::new(&self.long, &nonce).decrypt_in_place(text, tag, readable)
            }
        };
        opened.is_ok()
    }
}

#[cfg(test)]
mod tests;
