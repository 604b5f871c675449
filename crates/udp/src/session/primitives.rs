//! The primitives of the Noise patterns, implemented by AWS-LC: X25519, AES-256-GCM and SHA-256.
//!
//! AWS-LC overwrites the memory of private keys and ciphers when it frees them (`OPENSSL_free`).

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, MAX_TAG_LEN, Nonce, UnboundKey};
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey};
use aws_lc_rs::digest;
use snow::Error;
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

use super::identity::KEY_BYTES;

/// X25519 (RFC 7748 §5).
#[derive(Default)]
pub(crate) struct X25519 {
    private: Option<PrivateKey>,
    public: [u8; KEY_BYTES],
}

impl X25519 {
    /// Returns the pair of a private key; `None` if the library refuses it.
    pub(crate) fn new(secret: &[u8]) -> Option<Self> {
        let private = PrivateKey::from_private_key(&agreement::X25519, secret).ok()?;
        let public = private.compute_public_key().ok()?.as_ref().first_chunk().copied()?;
        Some(Self { private: Some(private), public })
    }

    /// Returns the public key.
    pub(crate) const fn public(&self) -> &[u8; KEY_BYTES] {
        &self.public
    }

    /// Calls `with` with the secret that this pair shares with the holder of a public key. Returns `None` if the secret is
    /// all zeros, as with a point of low order (RFC 7748 §6.1).
    pub(crate) fn agree<R>(&self, public: &[u8], with: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let peer = UnparsedPublicKey::new(&agreement::X25519, public);
        agreement::agree(self.private.as_ref()?, peer, (), |shared| Ok(with(shared))).ok()
    }
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_BYTES
    }

    fn priv_len(&self) -> usize {
        KEY_BYTES
    }

    /// If the library refuses the key, [`Dh::dh`] fails later.
    fn set(&mut self, privkey: &[u8]) {
        *self = Self::new(privkey).unwrap_or_default();
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), Error> {
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        random.try_fill_bytes(&mut secret[..])?;
        *self = Self::new(&secret[..]).ok_or(Error::Dh)?;
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    /// Empty: `snow` reads the private key only when it generates key pairs for its caller, a function that is not used here.
    fn privkey(&self) -> &[u8] {
        &[]
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = pubkey.get(..KEY_BYTES).ok_or(Error::Dh)?;
        let copied = self.agree(public, |shared| {
            out.get_mut(..shared.len()).map(|out| out.copy_from_slice(shared))
        });
        copied.flatten().ok_or(Error::Dh)
    }
}

/// AES-256-GCM with Noise's nonces: four zeros, and the number in big-endian order (Noise §12.4).
#[derive(Default)]
pub(crate) struct AesGcm(Option<LessSafeKey>);

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

impl Cipher for AesGcm {
    fn name(&self) -> &'static str {
        "AESGCM"
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.0 = UnboundKey::new(&AES_256_GCM, key).ok().map(LessSafeKey::new);
    }

    /// Returns 0 if `out` is too short, or no key is set.
    fn encrypt(&self, number: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let length = plaintext.len() + MAX_TAG_LEN;
        let (Some(key), Some(out)) = (&self.0, out.get_mut(..length)) else { return 0 };
        let (text, place) = out.split_at_mut(plaintext.len());
        text.copy_from_slice(plaintext);
        match key.seal_in_place_separate_tag(nonce(number), Aad::from(authtext), text) {
            Ok(tag) => {
                place.copy_from_slice(tag.as_ref());
                length
            }
            Err(_) => 0,
        }
    }

    fn decrypt(
        &self,
        number: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let length = ciphertext.len().checked_sub(MAX_TAG_LEN).ok_or(Error::Decrypt)?;
        let (text, tag) = ciphertext.split_at(length);
        let (Some(key), Some(out)) = (&self.0, out.get_mut(..length)) else {
            return Err(Error::Decrypt);
        };
        key.open_separate_gather(nonce(number), Aad::from(authtext), text, tag, out)
            .map_err(|_| Error::Decrypt)?;
        Ok(length)
    }
}

/// SHA-256.
pub(crate) struct Sha256(digest::Context);

impl Default for Sha256 {
    fn default() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }
}

impl Hash for Sha256 {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        digest::SHA256_OUTPUT_LEN
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        let hash = std::mem::take(self).0.finish();
        out[..hash.as_ref().len()].copy_from_slice(hash.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::packet_key::tests::hex;

    /// The first vector of RFC 7748 §5.2. Zero has low order (§6.1).
    #[test]
    fn x25519_gives_the_published_secret_and_none_for_a_point_of_low_order() {
        let secret: [u8; 32] =
            hex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4");
        let public: [u8; 32] =
            hex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c");
        let shared: [u8; 32] =
            hex("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
        let pair = X25519::new(&secret).unwrap();
        assert_eq!(pair.agree(&public, <[u8]>::to_vec).as_deref(), Some(&shared[..]));
        assert_eq!(pair.agree(&[0; 32], <[u8]>::to_vec), None);
        let mut out = [0; 32];
        assert!(pair.dh(&[0; 32], &mut out).is_err() && pair.dh(&public[1..], &mut out).is_err());
        assert!(X25519::default().dh(&public, &mut out).is_err(), "without a private key");
    }

    #[test]
    fn a_cipher_without_a_key_or_without_room_seals_nothing() {
        let mut cipher = AesGcm::default();
        assert_eq!(cipher.encrypt(0, b"", b"text", &mut [0; 20]), 0);
        cipher.set(&[3; 32]);
        let mut sealed = [0; 20];
        assert_eq!(cipher.encrypt(0, b"", b"text", &mut sealed[..19]), 0);
        assert_eq!(cipher.encrypt(7, b"with", b"text", &mut sealed), 20);
        let mut text = [0; 4];
        assert_eq!(cipher.decrypt(7, b"with", &sealed, &mut text).ok(), Some(4));
        assert_eq!(&text, b"text");
        for (number, with) in [(8, "with"), (7, "without")] {
            assert!(cipher.decrypt(number, with.as_bytes(), &sealed, &mut text).is_err());
        }
        assert!(cipher.decrypt(7, b"with", &sealed[..15], &mut text).is_err());
    }
}
