//! What must be true of datagrams: no nonce is used twice under a key, and no payload is readable.

use std::collections::HashSet;

use crate::ledger::MARK;

/// What was seen on the network.
#[derive(Default)]
pub(crate) struct Audit {
    /// Keys, by fingerprint, with the numbers of their packets.
    nonces: HashSet<(u64, u64)>,
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
        let mut starts = datagram.iter().enumerate().filter(|(_, byte)| **byte == MARK[0]);
        if starts.any(|(at, _)| datagram[at..].starts_with(&MARK)) {
            return Err("a sealed datagram has a readable payload".to_owned());
        }
        Ok(())
    }
}
