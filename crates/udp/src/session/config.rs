//! Settings of a session table.

use apus_units::Span;

use super::cipher::{Cipher, Ciphers};

/// Settings of a [`Sessions`](super::Sessions).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of sessions, including those being opened, 1 to 2^20. Each takes a few kilobytes. deviation: no
    /// source; 4096 peers of one engine are many.
    pub max_sessions: u32,
    /// Maximum number of sessions that peers have requested and not confirmed yet. deviation: no source; 256 handshakes of
    /// a millisecond each exceed what one core computes in the meantime.
    pub max_pending: u32,
    /// Maximum duration of a handshake. Source: WireGuard's REKEY_TIMEOUT (§6.1): 5 s.
    pub handshake_timeout: Span,
    /// First wait before a packet of the handshake, or a ping, is repeated. It doubles each time, up to 10 times this value. deviation: RFC 9002 §6.2.2 has 333 ms of RTT for the Internet; 100 ms is a
    /// hundred times a datacenter's worst.
    pub retry: Span,
    /// Silence after which the peer is pinged. deviation: WireGuard's KEEPALIVE_TIMEOUT (§6.1) is 10 s;
    /// 5 s, so that the loss of a peer is known within `idle_timeout`.
    pub keepalive: Span,
    /// Silence after which the peer is given up. Source: WireGuard §6.1, KEEPALIVE_TIMEOUT +
    /// REKEY_TIMEOUT: 15 s.
    pub idle_timeout: Span,
    /// Time after an unproven claim that the peer does not know the session, within which the peer can disprove it.
    /// deviation: no source; 500 ms are three pings.
    pub suspect_timeout: Span,
    /// Age at which a key is replaced, in addition to the replacement by count. Source: WireGuard's
    /// REKEY_AFTER_TIME (§6.1): 120 s.
    pub key_life: Span,
    /// Cipher of sessions that this side opens, if it has keys. deviation: no source;
    /// AES-256-GCM is the standard, has keys of 256 bits and is fast wherever the CPU has AES; docs/security.md
    /// compares both.
    pub cipher: Cipher,
    /// Ciphers accepted for sessions that peers open. deviation: no source; all of this build, since both are sound.
    pub accept_ciphers: Ciphers,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_sessions: 4096,
            max_pending: 256,
            handshake_timeout: Span::from_secs(5),
            retry: Span::from_ms(100),
            keepalive: Span::from_secs(5),
            idle_timeout: Span::from_secs(15),
            suspect_timeout: Span::from_ms(500),
            key_life: Span::from_secs(120),
            cipher: Cipher::Aes256Gcm,
            accept_ciphers: Ciphers::AVAILABLE,
        }
    }
}

/// Maximum number of sessions that session numbers can distinguish.
pub(crate) const MAX_SESSIONS: u32 = 1 << 20;

impl Config {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that names the setting and what it must be.
    pub fn check(&self) -> Result<(), &'static str> {
        if !(1..=MAX_SESSIONS).contains(&self.max_sessions) {
            return Err("max_sessions must be 1 to 1048576");
        }
        if !(1..=self.max_sessions).contains(&self.max_pending) {
            return Err("max_pending must be at least 1 and at most max_sessions");
        }
        if self.retry.is_zero() || self.retry > self.handshake_timeout {
            return Err("retry must be above 0 and at most handshake_timeout");
        }
        if self.keepalive.is_zero() || self.keepalive >= self.idle_timeout {
            return Err("keepalive must be above 0 and below idle_timeout");
        }
        if self.suspect_timeout < self.retry {
            return Err("suspect_timeout must be at least retry");
        }
        if self.key_life.is_zero() {
            return Err("key_life must be above 0");
        }
        if self.accept_ciphers.is_empty() {
            return Err("accept_ciphers must name at least one cipher");
        }
        if !self.cipher.is_available() {
            return Err(
                "cipher is aegis-128x, which this build lacks; choose aes-256-gcm, or build \
                        with the feature `aegis`",
            );
        }
        if !self.accept_ciphers.is_available() {
            return Err(
                "accept_ciphers has aegis-128x, which this build lacks; choose aes-256-gcm, \
                        or build with the feature `aegis`",
            );
        }
        Ok(())
    }
}
