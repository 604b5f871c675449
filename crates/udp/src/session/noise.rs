//! The handshake, by crate `snow`: Noise pattern NNpsk0 under a shared key alone, IKpsk1 if both sides have keys of their
//! own.
//!
//! Rationale: the initiator must prove the shared key in the first message (psk0, psk1). An HMAC under that key proves a packet
//! before any Diffie-Hellman is computed. Ephemeral keys of both sides give forward secrecy.
//!
//! With NNpsk0 the shared key is the identity, so a holder of the key can act as either side. With IKpsk1 the initiator must
//! already know the responder's public key, so no other member of the group can respond; it sends its own key encrypted. IK
//! has two messages like NN. XK would need a third message before the responder knows its peer, and KK would name the
//! initiator in the clear. psk2 (as in WireGuard) would prove the shared key to the initiator only. In WireGuard the
//! responder learns from the first message which key to use; here it learns this from the header.

use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{BoxedCryptoResolver, CryptoResolver};
use snow::types::{Cipher, Dh, Hash, Random as NoiseRandom};
use snow::{Builder, HandshakeState};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::cookie::Cookie;
use super::identity::PeerKey;
use super::key::{Credential, Level};
use super::packet::Handshake;
use super::primitives::{AesGcm, Sha256, X25519};

#[cfg(test)]
pub(crate) mod thief;

const SHARED: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
const IDENTIFIED: &str = "Noise_IKpsk1_25519_AESGCM_SHA256";

/// Bytes that a Noise message adds to its payload: an ephemeral key and a tag.
pub(crate) const NOISE_OVERHEAD: usize = 48;
/// Bytes that the first message of IKpsk1 has in addition: the initiator's key and a tag.
pub(crate) const STATIC_BYTES: usize = 48;

/// The secrets of both directions, by their sender. Wiped when dropped.
#[derive(ZeroizeOnDrop)]
pub(crate) struct Secrets {
    pub(crate) initiator: [u8; 32],
    pub(crate) responder: [u8; 32],
}

/// One side of a handshake in progress.
pub(crate) struct Noise(HandshakeState);

impl Noise {
    /// Begins a handshake. Both sides must have the same credential, cookie and mode, key and initiator of `packet`.
    /// Returns `None` only if the library refuses its own pattern.
    pub(crate) fn new(
        initiator: bool,
        credential: &Credential,
        packet: &Handshake<'_>,
        cookie: Cookie,
        entropy: Zeroizing<[u8; 32]>,
    ) -> Option<Self> {
        let primitives = Box::new(Seeded { seed: entropy });
        Self::by(primitives, initiator, credential, packet, cookie)
    }

    /// As [`Noise::new`], with these primitives.
    fn by(
        primitives: BoxedCryptoResolver,
        initiator: bool,
        credential: &Credential,
        packet: &Handshake<'_>,
        cookie: Cookie,
    ) -> Option<Self> {
        let (pattern, place) = match &credential.level {
            Level::Shared => (SHARED, 0),
            Level::Own(_) | Level::Peer { .. } => (IDENTIFIED, 1),
        };
        let params: NoiseParams = pattern.parse().ok()?;
        let prologue = [
            &b"apus session 1"[..],
            &[packet.mode.byte()],
            &packet.key.get().to_be_bytes(),
            &packet.initiator.to_be_bytes(),
            &cookie.0,
        ]
        .concat();
        let builder = Builder::with_resolver(params, primitives)
            .psk(place, credential.secret.bytes())
            .and_then(|builder| builder.prologue(&prologue))
            .and_then(|builder| match &credential.level {
                Level::Shared => Ok(builder),
                Level::Own(pair) => builder.local_private_key(pair.secret()),
                Level::Peer { own, peer } => builder
                    .local_private_key(own.secret())
                    .and_then(|builder| builder.remote_public_key(peer.bytes())),
            })
            .ok()?;
        let state = if initiator { builder.build_initiator() } else { builder.build_responder() };
        state.ok().map(Self)
    }

    /// Returns the next message, which carries `payload`.
    pub(crate) fn write(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let mut message = vec![0; payload.len() + NOISE_OVERHEAD + STATIC_BYTES];
        let length = self.0.write_message(payload, &mut message).ok()?;
        message.truncate(length);
        Some(message)
    }

    /// Returns the payload of the peer's message; `None` if it is not authentic.
    pub(crate) fn read(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let mut payload = vec![0; message.len()];
        let length = self.0.read_message(message, &mut payload).ok()?;
        payload.truncate(length);
        Some(payload)
    }

    /// Returns the peer's own key, which the peer has sent or was expected to have; `None` under a shared key alone. Once a
    /// message has been read or written, a secret has been agreed on with the key, so the key does not have low order.
    pub(crate) fn peer(&self) -> Option<PeerKey> {
        self.0.get_remote_static()?.first_chunk().copied().map(PeerKey::agreed)
    }

    /// Returns the secrets of the finished handshake.
    pub(crate) fn finish(mut self) -> Option<Secrets> {
        self.0.is_handshake_finished().then(|| {
            let (mut initiator, mut responder) = self.0.dangerously_get_raw_split();
            let secrets = Secrets { initiator, responder };
            initiator.zeroize();
            responder.zeroize();
            secrets
        })
    }
}

/// Primitives of AWS-LC. The ephemeral key comes from the caller's randomness.
struct Seeded {
    seed: Zeroizing<[u8; 32]>,
}

impl CryptoResolver for Seeded {
    fn resolve_rng(&self) -> Option<Box<dyn NoiseRandom>> {
        Some(Box::new(Once(Some(self.seed.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| Box::<X25519>::default() as _)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        (*choice == HashChoice::SHA256).then(|| Box::<Sha256>::default() as _)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        (*choice == CipherChoice::AESGCM).then(|| Box::<AesGcm>::default() as _)
    }
}

/// A random source that returns its bytes once: each side draws one ephemeral key.
struct Once(Option<Zeroizing<[u8; 32]>>);

impl NoiseRandom for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        // Taking the value out would leave a copy of it here.
        let seed = self.0.as_ref().ok_or(snow::Error::Rng)?;
        if dest.len() != seed.len() {
            return Err(snow::Error::Rng);
        }
        dest.copy_from_slice(&seed[..]);
        self.0.zeroize();
        self.0 = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::cipher::{Cipher, Mode};
    use crate::session::identity::KeyPair;
    use crate::session::key::{KeyId, SharedKey};
    use crate::session::packet::Message;
    use crate::session::packet_key::tests::hex;
    use crate::session::ring::KeyRing;

    /// A conversation of cacophony's vectors (cacophony is an implementation in Haskell). All vectors have these keys.
    struct Vector {
        pattern: &'static str,
        messages: [&'static str; 2],
        /// The first message of each side under the final secrets.
        sealed: [&'static str; 2],
    }

    const NNPSK0: Vector = Vector {
        pattern: SHARED,
        messages: [
            "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
             7c37a89fc17813788d30df2d59501d6066f5f8aecc3406bbd9829f2d24a531b1",
            "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843\
             2f29d79368ef9de4e1ae7a362fb05bf0ad668e026bf5714554497b3a720461",
        ],
        sealed: [
            "7c01e898a6201f36aecee532e29cd0b7f8ffa29d3366ad0dce39a6",
            "a9ff535aace3db6a1da1a7fb00fe2de2622bb373abad9fb42c00e0",
        ],
    };

    const IKPSK1: Vector = Vector {
        pattern: IDENTIFIED,
        messages: [
            "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944\
             cf5aec5a69cc937598c005d3f36940abe166f1eab777e15d8958d533d2d5eca2\
             967c66cfc0788d6197989cac53ecb8e9cb04a2ff8bdf3a9d2bf1897b492c8463\
             9583c5486e0205e4012ac81400e569cb",
            "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843\
             746e1ca9059ed09501f41b1c01dd32378315c2d754bdc29ced08b435f05259",
        ],
        sealed: [
            "232fe1ce5018b3cd1e732e72894d61fc242473f6919344e30e569a",
            "419f5c6e5b039e67e125bcd7fb1cfbb79720ef97e8a3cb2c5a660a",
        ],
    };

    fn bytes(digits: &str) -> Vec<u8> {
        let digit = |i: usize| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap();
        (0..digits.len() / 2).map(digit).collect()
    }

    /// The published vectors of cacophony. The way in which keys are passed in and secrets are taken out here must yield
    /// their bytes.
    #[test]
    fn cacophony_vectors_of_nnpsk0_and_ikpsk1_25519_aesgcm_sha256() {
        let psk = hex("54686973206973206d7920417573747269616e20706572737065637469766521");
        let ephemerals = [
            hex("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a"),
            hex("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b"),
        ];
        let statics: [[u8; 32]; 2] = [
            hex("e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1"),
            hex("4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893"),
        ];
        let publics = statics.map(|secret| KeyPair::new(secret).unwrap().public());
        for Vector { pattern, messages, sealed } in [NNPSK0, IKPSK1] {
            let identified = pattern == IDENTIFIED;
            let side = |initiator: bool| {
                let own = usize::from(!initiator);
                let resolver = Box::new(Seeded { seed: Zeroizing::new(ephemerals[own]) });
                let mut builder = Builder::with_resolver(pattern.parse().unwrap(), resolver)
                    .psk(u8::from(identified), &psk)
                    .unwrap()
                    .prologue(b"John Galt")
                    .unwrap();
                if identified {
                    builder = builder.local_private_key(&statics[own]).unwrap();
                    if initiator {
                        builder = builder.remote_public_key(publics[1].bytes()).unwrap();
                    }
                }
                Noise(if initiator {
                    builder.build_initiator().unwrap()
                } else {
                    builder.build_responder().unwrap()
                })
            };
            let (mut initiator, mut responder) = (side(true), side(false));
            let payload = hex::<16>("4c756477696720766f6e204d69736573");
            let first = initiator.write(&payload).unwrap();
            assert_eq!(first, bytes(messages[0]), "{pattern}");
            assert_eq!(responder.read(&first).unwrap(), b"Ludwig von Mises");
            assert_eq!(responder.peer(), identified.then_some(publics[0]));
            let second = responder.write(b"Murray Rothbard").unwrap();
            assert_eq!(second, bytes(messages[1]), "{pattern}");
            assert_eq!(initiator.read(&second).unwrap(), b"Murray Rothbard");
            let (ours, theirs) = (initiator.finish().unwrap(), responder.finish().unwrap());
            assert_eq!((ours.initiator, ours.responder), (theirs.initiator, theirs.responder));
            // The vector's transport messages, under the raw secrets with nonce 0.
            let secrets = [ours.initiator, ours.responder];
            for ((secret, sealed), plain) in
                secrets.iter().zip(sealed).zip(["F. A. Hayek", "Carl Menger"])
            {
                use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
                let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, secret).unwrap());
                let mut bytes = bytes(sealed);
                let nonce = Nonce::assume_unique_for_key([0; 12]);
                assert_eq!(
                    key.open_in_place(nonce, Aad::empty(), &mut bytes).unwrap(),
                    plain.as_bytes()
                );
            }
        }
    }

    #[test]
    fn secrets_of_a_handshake_are_wiped_when_dropped() {
        fn is_wiped<T: ZeroizeOnDrop>() {}
        is_wiped::<Secrets>();
        is_wiped::<SharedKey>();
        let mut once = Once(Some(Zeroizing::new([5; 32])));
        let mut bytes = [0; 32];
        assert!(once.try_fill_bytes(&mut bytes).is_ok() && once.0.is_none());
        assert!(once.try_fill_bytes(&mut bytes).is_err(), "an ephemeral key is drawn once");
    }

    #[test]
    fn both_sides_must_agree_on_everything() {
        let ring = KeyRing::new([SharedKey::new([1; 32]), SharedKey::new([2; 32])]).unwrap();
        let [one, two] = [0, 1].map(|i| ring.get(ring.ids().nth(i).unwrap()).unwrap());
        let [aes, aegis] = Cipher::ALL.map(Mode::Sealed);
        let agreed = (aes, 1, 2, 3);
        let noise = |is_initiator, credential, (mode, key, initiator, cookie)| {
            let (key, message) = (KeyId::new(key), Message::Hello);
            let packet = Handshake { mode, key, initiator, message };
            let seed = Zeroizing::new([u8::from(is_initiator); 32]);
            Noise::new(is_initiator, credential, &packet, Cookie([cookie; 16]), seed).unwrap()
        };
        let message = noise(true, one, agreed).write(b"hi").unwrap();
        let reads = |credential, prologue| noise(false, credential, prologue).read(&message);
        assert_eq!(reads(one, agreed).as_deref(), Some(&b"hi"[..]));
        assert_eq!(reads(two, agreed), None);
        for other in [
            (Mode::Insecure, 1, 2, 3),
            (aegis, 1, 2, 3),
            (aes, 0, 2, 3),
            (aes, 1, 0, 3),
            (aes, 1, 2, 0),
        ] {
            assert_eq!(reads(one, other), None);
        }
    }
}
