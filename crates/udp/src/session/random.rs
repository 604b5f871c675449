//! All randomness of a session table, from one seed that the caller takes from the system.

use aws_lc_rs::hmac;

/// A generator: block n is HMAC-SHA256(seed, n). The construction is that of a PRF in counter mode
/// (NIST SP 800-108, §4.1).
pub(crate) struct Random {
    key: hmac::Key,
    next: u64,
}

impl Random {
    pub(crate) fn new(seed: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, seed), next: 0 }
    }

    pub(crate) fn bytes(&mut self) -> [u8; 32] {
        let block = hmac::sign(&self.key, &self.next.to_be_bytes());
        self.next += 1;
        let mut bytes = [0; 32];
        bytes.copy_from_slice(block.as_ref());
        bytes
    }

    pub(crate) fn u32(&mut self) -> u32 {
        let [a, b, c, d, ..] = self.bytes();
        u32::from_be_bytes([a, b, c, d])
    }
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Random").field("next", &self.next).finish_non_exhaustive()
    }
}
