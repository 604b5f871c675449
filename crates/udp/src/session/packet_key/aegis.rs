//! AEGIS-128X, implemented by the C code of crate `aegis`.

use ::aegis::aegis128l::Aegis128L;
use ::aegis::aegis128x4::Aegis128X4;
use zeroize::Zeroizing;

use super::{TAG_BYTES, nonce};

/// Minimum length of payloads that AEGIS-128X4 seals; AEGIS-128L seals shorter ones. deviation: no source; at this length both
/// take the same time on a CPU with 512-bit VAES (docs/security.md). The length is not secret, so both sides know the
/// algorithm.
const LONG_BYTES: usize = 256;

/// AEGIS-128X of degree 1, which is AEGIS-128L, for short payloads and of degree 4 for long ones. Each has a key of its own,
/// so that security does not depend on the relation of the two.
pub(crate) struct Aegis128X {
    pub(super) short: Zeroizing<[u8; 16]>,
    pub(super) long: Zeroizing<[u8; 16]>,
    pub(super) iv: Zeroizing<[u8; 16]>,
}

/// Number of AES blocks that AEGIS-128X processes in parallel.
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
    /// As [`PacketKey::seal`](super::PacketKey::seal). The library encrypts in place, or with a state that it wipes byte by
    /// byte afterwards. That wiping takes longer than the copy here (docs/security.md).
    #[inline]
    pub(super) fn seal(
        &self,
        number: u64,
        readable: &[u8],
        payload: &[u8],
        payload_and_tag: &mut [u8],
    ) {
        let (place, tag) = payload_and_tag.split_at_mut(payload.len());
        place.copy_from_slice(payload);
        tag.copy_from_slice(&self.encrypt(Degree::of(payload), number, readable, place));
    }

    #[inline]
    pub(super) fn open(&self, number: u64, readable: &[u8], payload_and_tag: &mut [u8]) -> bool {
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
