//! Sources of randomness of a session table.

use std::io;

use aws_lc_rs::hmac;
use zeroize::Zeroizing;

/// A source of random bytes.
#[derive(Debug)]
pub enum Randomness {
    /// The system's generator (getrandom(2)), called for each value, such as an ephemeral key or the secret of the cookies. A
    /// copy of the process's memory therefore reveals no keys of earlier or later sessions.
    System,
    /// A seed: block n is HMAC-SHA256(seed, n), a PRF in counter mode (NIST SP 800-108, §4.1). For repeatable tests: the seed
    /// determines all keys.
    Seeded(Box<Seeded>),
}

/// Returns 32 bytes of the system's generator.
pub(crate) fn system() -> io::Result<Zeroizing<[u8; 32]>> {
    let mut bytes = Zeroizing::new([0; 32]);
    let given = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    // The kernel returns up to 256 bytes as a whole, without interruption by signals (getrandom(2)).
    if given == bytes.len() { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// State of [`Randomness::Seeded`].
pub struct Seeded {
    key: hmac::Key,
    next: u64,
}

impl From<[u8; 32]> for Randomness {
    fn from(seed: [u8; 32]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &seed);
        Self::Seeded(Box::new(Seeded { key, next: 0 }))
    }
}

impl Randomness {
    /// Returns the next 32 bytes; `None` if the system's generator fails.
    pub(crate) fn bytes(&mut self) -> Option<Zeroizing<[u8; 32]>> {
        match self {
            Self::System => system().ok(),
            Self::Seeded(seeded) => {
                let block = hmac::sign(&seeded.key, &seeded.next.to_be_bytes());
                seeded.next += 1;
                let mut bytes = Zeroizing::new([0; 32]);
                bytes.copy_from_slice(block.as_ref());
                Some(bytes)
            }
        }
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let bytes = self.bytes()?;
        let [a, b, c, d, ..] = *bytes;
        Some(u32::from_be_bytes([a, b, c, d]))
    }
}

impl std::fmt::Debug for Seeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seeded").field("next", &self.next).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_gives_other_bytes_each_time_and_a_seed_the_same_ones() {
        let mut system = Randomness::System;
        let drawn: Vec<_> = (0..3).map(|_| system.bytes().expect("randomness")).collect();
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2]);
        let [mut one, mut two] = [(); 2].map(|()| Randomness::from([7; 32]));
        let first = one.bytes();
        assert_eq!(first, two.bytes());
        assert_ne!(first, one.bytes());
    }
}
