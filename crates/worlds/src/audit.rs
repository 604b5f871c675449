//! Properties of datagrams: no nonce is used twice under a key, and no payload is readable.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use apus_units::random::mix;
use memchr::memmem::Finder;

use crate::content::MARK;

/// Packets seen on the network.
pub(crate) struct Audit {
    /// Fingerprints of keys with the numbers of the packets sealed under them.
    nonces: HashSet<(u64, u64), BuildHasherDefault<Mixed>>,
    mark: Finder<'static>,
}

impl Default for Audit {
    fn default() -> Self {
        Self { nonces: HashSet::default(), mark: Finder::new(&MARK).into_owned() }
    }
}

impl Audit {
    /// Checks a datagram of a sealed session.
    pub(crate) fn on_sent(
        &mut self,
        nonce: Option<(u64, u64)>,
        datagram: &[u8],
    ) -> Result<(), String> {
        if let Some((key, number)) = nonce
            && !self.nonces.insert((key, number))
        {
            return Err(format!("packet number {number} was used twice under a key"));
        }
        if self.mark.find(datagram).is_some() {
            return Err("a sealed datagram has a readable payload".to_owned());
        }
        Ok(())
    }
}

/// Hash of words without protection against chosen keys, which the standard hash has.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0 ^ word);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_that_comes_again_and_a_readable_mark_are_found() {
        let mut audit = Audit::default();
        assert!(audit.on_sent(Some((1, 2)), b"sealed").is_ok());
        assert!(audit.on_sent(Some((2, 1)), b"sealed").is_ok());
        assert!(audit.on_sent(None, b"sealed").is_ok());
        assert!(audit.on_sent(Some((1, 2)), b"sealed").is_err());
        let readable = [b"aaapus", &MARK[..], b"a"].concat();
        assert!(audit.on_sent(Some((1, 3)), &readable).is_err());
        assert!(audit.on_sent(Some((1, 4)), &readable[..readable.len() - 2]).is_ok());
    }
}
