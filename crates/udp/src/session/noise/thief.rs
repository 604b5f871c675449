//! For tests: an initiator that shows a public key without owning its private key, and that has stolen the server's key pair.
//! It computes the secret that it can compute: the one of that public key and the server's key.

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

use super::{Noise, Seeded};
use crate::session::cookie::Cookie;
use crate::session::identity::{KEY_BYTES, KeyPair};
use crate::session::key::Credential;
use crate::session::packet::Handshake;
use crate::session::primitives::X25519;

/// The public key that the thief shows without its private key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    /// A client's own key.
    Client([u8; KEY_BYTES]),
    /// The ephemeral key of a client, from a recorded handshake.
    Ephemeral([u8; KEY_BYTES]),
}

/// Returns the initiator of a handshake like [`Noise::new`].
pub(crate) fn initiator(
    shown: Shown,
    server: &KeyPair,
    credential: &Credential,
    packet: &Handshake<'_>,
    cookie: Cookie,
) -> Noise {
    let seeded = Seeded { seed: Zeroizing::new([9; 32]) };
    let primitives = Box::new(Stolen { seeded, shown, server: server.clone() });
    Noise::by(primitives, true, credential, packet, cookie).expect("a pattern of this crate")
}

/// The primitives of [`Noise`], except the pair of [`Shown`].
struct Stolen {
    seeded: Seeded,
    shown: Shown,
    server: KeyPair,
}

impl CryptoResolver for Stolen {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        self.seeded.resolve_rng()
    }

    fn resolve_dh(&self, _: &DHChoice) -> Option<Box<dyn Dh>> {
        let (shown, server) = (self.shown, self.server.clone());
        Some(Box::new(HalfPair { private: X25519::default(), shows: None, shown, server }))
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        self.seeded.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        self.seeded.resolve_cipher(choice)
    }
}

/// A key pair of the thief, or a private key of the thief next to the public key that it shows.
struct HalfPair {
    private: X25519,
    shows: Option<[u8; KEY_BYTES]>,
    shown: Shown,
    server: KeyPair,
}

impl Dh for HalfPair {
    fn name(&self) -> &'static str {
        self.private.name()
    }

    fn pub_len(&self) -> usize {
        self.private.pub_len()
    }

    fn priv_len(&self) -> usize {
        self.private.priv_len()
    }

    /// Called for the host's own pair.
    fn set(&mut self, secret: &[u8]) {
        self.private.set(secret);
        if let Shown::Client(public) = self.shown {
            self.shows = Some(public);
        }
    }

    /// Called for the ephemeral pair.
    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        if let Shown::Ephemeral(public) = self.shown {
            self.shows = Some(public);
        }
        self.private.generate(random)
    }

    fn pubkey(&self) -> &[u8] {
        self.shows.as_ref().map_or_else(|| self.private.pubkey(), |public| &public[..])
    }

    fn privkey(&self) -> &[u8] {
        self.private.privkey()
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        match (&self.shows, X25519::new(self.server.secret())) {
            (Some(shown), Some(server)) if public[..KEY_BYTES] == server.public()[..] => {
                server.dh(shown, out)
            }
            _ => self.private.dh(public, out),
        }
    }
}
