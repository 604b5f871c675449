//! The key of one epoch and direction, which seals and opens packets.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

use super::cipher::Cipher;

#[cfg(feature = "aegis")]
use self::aegis::Aegis128X;

#[cfg(feature = "aegis")]
mod aegis;

/// Bytes of the tag, which are the same for each cipher.
pub(crate) const TAG_BYTES: usize = 16;

/// The key of one epoch and direction.
pub(crate) enum PacketKey {
    Aes256Gcm(Aes256Gcm),
    #[cfg(feature = "aegis")]
    Aegis128X(Aegis128X),
}

/// AES-256-GCM.
pub(crate) struct Aes256Gcm {
    key: LessSafeKey,
    iv: Zeroizing<[u8; NONCE_LEN]>,
}

/// Returns the initialisation vector with the packet's number mixed in (RFC 9001 §5.3). No number occurs twice under a key,
/// so no nonce does.
#[inline]
fn nonce<const N: usize>(iv: &[u8; N], number: u64) -> [u8; N] {
    let mut nonce = *iv;
    for (byte, n) in nonce[N - 8..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= n;
    }
    nonce
}

fn aes_256_gcm(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("the key has 32 bytes"))
}

impl PacketKey {
    /// Returns a key of zeros, whose place a derived key takes.
    pub(crate) fn blank(cipher: Cipher) -> Self {
        match cipher {
            Cipher::Aes256Gcm => {
                let iv = Zeroizing::new([0; NONCE_LEN]);
                Self::Aes256Gcm(Aes256Gcm { key: aes_256_gcm(&[0; 32]), iv })
            }
            #[cfg(feature = "aegis")]
            Cipher::Aegis128X => {
                let [short, long, iv] = [(); 3].map(|()| Zeroizing::new([0; 16]));
                Self::Aegis128X(Aegis128X { short, long, iv })
            }
            #[cfg(not(feature = "aegis"))]
            Cipher::Aegis128X => {
                unreachable!("`Config::check` refuses ciphers that this build lacks")
            }
        }
    }

    /// Replaces this key in its place; a key that was moved would leave copies on the stack. `derive` fills its argument with
    /// the bytes of this label. The labels differ per cipher, so that keys of different ciphers are independent.
    pub(crate) fn replace(&mut self, derive: impl Fn(&[u8], &mut [u8])) {
        match self {
            Self::Aes256Gcm(key) => {
                let mut bytes = Zeroizing::new([0; 32]);
                derive(b"apus key", &mut bytes[..]);
                key.key = aes_256_gcm(&bytes);
                derive(b"apus iv", &mut key.iv[..]);
            }
            #[cfg(feature = "aegis")]
            Self::Aegis128X(key) => {
                derive(b"apus aegis-128l key", &mut key.short[..]);
                derive(b"apus aegis-128x4 key", &mut key.long[..]);
                derive(b"apus aegis iv", &mut key.iv[..]);
            }
        }
    }

    /// Encrypts `payload` into `payload_and_tag`, whose length is that of payload and tag, and authenticates it with
    /// `readable`.
    #[inline]
    pub(crate) fn seal(
        &self,
        number: u64,
        readable: &[u8],
        payload: &[u8],
        payload_and_tag: &mut [u8],
    ) {
        match self {
            Self::Aes256Gcm(key) => key.seal(number, readable, payload, payload_and_tag),
            #[cfg(feature = "aegis")]
            Self::Aegis128X(key) => key.seal(number, readable, payload, payload_and_tag),
        }
    }

    /// Opens a packet in place. Returns `false` if it is not authentic; its payload may then have been overwritten.
    #[inline]
    pub(crate) fn open(&self, number: u64, readable: &[u8], payload_and_tag: &mut [u8]) -> bool {
        match self {
            Self::Aes256Gcm(key) => key.open(number, readable, payload_and_tag),
            #[cfg(feature = "aegis")]
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
    fn seal(&self, number: u64, readable: &[u8], payload: &[u8], payload_and_tag: &mut [u8]) {
        let (nonce, readable) = (self.nonce(number), Aad::from(readable));
        self.key
            .seal_in_place_scatter(nonce, readable, &mut [], payload, payload_and_tag)
            .expect("a packet is far below the cipher's limit, and there is room for its tag");
    }

    #[inline]
    fn open(&self, number: u64, readable: &[u8], payload_and_tag: &mut [u8]) -> bool {
        self.key.open_in_place(self.nonce(number), Aad::from(readable), payload_and_tag).is_ok()
    }
}

#[cfg(test)]
pub(super) mod tests;
