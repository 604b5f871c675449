//! Settings of a session table.

use std::fmt::Display;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::RangeBounds;

use apus_units::Span;

use super::cipher::Cipher;

/// Settings of a [`Sessions`](super::Sessions) table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of sessions, 1 to 2^20, including those being opened. Each takes a few kilobytes. deviation: no source;
    /// 4096 peers of one engine are many.
    pub max_sessions: u32,
    /// Maximum number of sessions that peers have requested and not confirmed yet. deviation: no source; 256 handshakes of a
    /// millisecond each exceed what one core computes in the meantime.
    pub max_pending: u32,
    /// Maximum duration of a handshake. Source: WireGuard's REKEY_TIMEOUT (§6.1): 5 s.
    pub handshake_timeout: Span,
    /// First wait before a packet of the handshake, or a ping, is repeated. The wait doubles each time, up to 10 times this
    /// value. deviation: RFC 9002 §6.2.2 has 333 ms of RTT for the Internet; 100 ms is a hundred times a datacenter's worst.
    pub retry: Span,
    /// Silence after which the peer is pinged. The ping is sent up to a half earlier or a quarter later, so that idle sessions
    /// are pinged together. Source: WireGuard's KEEPALIVE_TIMEOUT (§6.1): 10 s.
    pub keepalive: Span,
    /// Silence after which the peer is given up. Source: WireGuard §6.1, KEEPALIVE_TIMEOUT plus REKEY_TIMEOUT: 15 s.
    pub idle_timeout: Span,
    /// Time for which the peer can disprove an unproven claim that it does not know the session. deviation: no source; 500 ms are
    /// three pings.
    pub suspect_timeout: Span,
    /// Age at which a packet key is replaced, in addition to the replacement by count. Source: WireGuard's REKEY_AFTER_TIME
    /// (§6.1): 120 s.
    pub key_life: Span,
    /// Cipher of sessions that this side opens, if it has keys. deviation: no source; AES-256-GCM is the standard, has keys of
    /// 256 bits and is fast wherever the CPU has AES; docs/security.md compares both.
    pub cipher: Cipher,
    /// Ciphers that this side accepts for sessions that peers open. deviation: no source; all of this build, since both are
    /// sound.
    pub accept_ciphers: Vec<Cipher>,
    /// Whether peers whose keys the key ring does not list may open sessions too, if they prove a shared key. Intended for hosts
    /// whose application decides by the keys of peers ([`Config::accept`](crate::Config::accept)). All these peers together have
    /// at most three quarters of `max_sessions` and of `max_pending`. Peers of retired lines are refused in any case. deviation:
    /// no source; a host serves the peers that it lists.
    pub accept_unlisted: bool,
    /// Maximum number of sessions that one key may open, including those being opened. By default a quarter of `max_sessions` for
    /// a peer with a key of its own, so that no peer excludes the other peers, and all for a shared key, whose holders cannot be
    /// distinguished. deviation: no source.
    pub quota_sessions: Option<u32>,
    /// Maximum number of sessions that one key has requested and not confirmed yet. By default a quarter of `max_pending` or all,
    /// as for `quota_sessions`. deviation: no source.
    pub quota_pending: Option<u32>,
    /// Maximum number of handshakes per second, 4 to 100,000, from one IP address (from one /64 of IPv6), and from one peer with
    /// a key of its own.
    ///
    /// A quarter of this number may arrive at once. Four times this number may arrive per second from all addresses together.
    /// Further handshakes are dropped, and the peers repeat them. Eight handshakes are answered at once, and the others at the
    /// rate of all addresses, or one per millisecond if that is faster. deviation: no source; 256 handshakes take 4 % of a core.
    pub handshake_rate: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_sessions: 4096,
            max_pending: 256,
            handshake_timeout: Span::from_secs(5),
            retry: Span::from_ms(100),
            keepalive: Span::from_secs(10),
            idle_timeout: Span::from_secs(15),
            suspect_timeout: Span::from_ms(500),
            key_life: Span::from_secs(120),
            cipher: Cipher::Aes256Gcm,
            accept_ciphers: Cipher::available().collect(),
            accept_unlisted: false,
            quota_sessions: None,
            quota_pending: None,
            handshake_rate: 256,
        }
    }
}

/// Maximum number of sessions that session numbers can distinguish.
pub(crate) const MAX_SESSIONS: u32 = 1 << 20;

impl Config {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that names the setting and the allowed values.
    pub fn check(&self) -> Result<(), String> {
        let lacks = |setting: &str| {
            let (cipher, other) = (Cipher::Aegis128X, Cipher::Aes256Gcm);
            Err(format!(
                "{setting} is {cipher}, which this build lacks; choose {other}, or build with the feature `aegis`"
            ))
        };
        let (above_zero, at_most) = (Excluded(Span::ZERO), Included(self.handshake_timeout));
        in_range("max_sessions", self.max_sessions, 1..=MAX_SESSIONS)?;
        in_range("max_pending", self.max_pending, 1..=self.max_sessions)
            .map_err(|error| error + " (max_sessions)")?;
        in_range("retry", self.retry, (above_zero, at_most))
            .map_err(|error| error + " (handshake_timeout)")?;
        in_range("keepalive", self.keepalive, (above_zero, Excluded(self.idle_timeout)))
            .map_err(|error| error + " (idle_timeout)")?;
        in_range("suspect_timeout", self.suspect_timeout, self.retry..)
            .map_err(|error| error + " (retry)")?;
        in_range("handshake_rate", self.handshake_rate, 4..=100_000)?;
        if let Some(sessions) = self.quota_sessions {
            in_range("quota_sessions", sessions, 1..=self.max_sessions)
                .map_err(|error| error + " (max_sessions)")?;
        }
        if let Some(pending) = self.quota_pending {
            in_range("quota_pending", pending, 1..=self.max_pending)
                .map_err(|error| error + " (max_pending)")?;
        }
        in_range("key_life", self.key_life, (above_zero, Unbounded))?;
        if self.accept_ciphers.is_empty() {
            return Err("accept_ciphers is empty; name at least one cipher".to_owned());
        }
        if !self.cipher.is_available() {
            return lacks("cipher");
        }
        if !self.accept_ciphers.iter().all(|cipher| cipher.is_available()) {
            return lacks("accept_ciphers");
        }
        Ok(())
    }
}

/// Checks that a setting is in its range.
///
/// # Errors
/// A sentence with the setting, its value and the range.
pub(crate) fn in_range<T: PartialOrd + Display>(
    setting: &str,
    value: T,
    range: impl RangeBounds<T>,
) -> Result<(), String> {
    if range.contains(&value) {
        return Ok(());
    }
    let least = match range.start_bound() {
        Included(least) => Some(format!("at least {least}")),
        Excluded(below) => Some(format!("above {below}")),
        Unbounded => None,
    };
    let most = match range.end_bound() {
        Included(most) => Some(format!("at most {most}")),
        Excluded(above) => Some(format!("below {above}")),
        Unbounded => None,
    };
    let bounds: Vec<String> = least.into_iter().chain(most).collect();
    Err(format!("{setting} is {value}; it must be {}", bounds.join(" and ")))
}
