//! Cookies. A peer receives a cookie at the address that it claims, and must return it before any memory is used for the peer
//! (RFC 9147 §5.1). Nothing is stored: a cookie is a keyed hash of the peer's data.

use std::net::{IpAddr, SocketAddr};

use apus_units::{Span, Time};
use aws_lc_rs::{constant_time, hmac};

use super::key::KeyId;

/// Minimum time for which a cookie is valid; the maximum is twice as long. deviation: WireGuard §5.4.7 has 120 s because its
/// cookies are kept for later use. Here cookies are used at once, and 5 s limit the time for replays.
const LIFE: Span = Span::from_secs(5);

/// A cookie, and the challenge to which the initiator's first Noise message is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cookie(pub(crate) [u8; 16]);

/// Creates and checks cookies.
#[derive(Debug)]
pub(crate) struct Baker {
    key: hmac::Key,
}

impl Baker {
    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// Returns the cookie for a peer at `from` that requests session `initiator` under `key`.
    pub(crate) fn make(&self, now: Time, from: SocketAddr, key: KeyId, initiator: u32) -> Cookie {
        self.of_period(period(now), from, key, initiator)
    }

    /// Returns `true` if `cookie` is valid for these data. The comparison takes constant time.
    pub(crate) fn is_good(
        &self,
        now: Time,
        from: SocketAddr,
        key: KeyId,
        initiator: u32,
        cookie: Cookie,
    ) -> bool {
        let present = period(now);
        [present, present.wrapping_sub(1)].into_iter().any(|period| {
            let made = self.of_period(period, from, key, initiator);
            constant_time::verify_slices_are_equal(&made.0, &cookie.0).is_ok()
        })
    }

    fn of_period(&self, period: u64, from: SocketAddr, key: KeyId, initiator: u32) -> Cookie {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&period.to_be_bytes());
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        context.update(&ip.octets());
        context.update(&from.port().to_be_bytes());
        context.update(&key.get().to_be_bytes());
        context.update(&initiator.to_be_bytes());
        let tag = context.sign();
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&tag.as_ref()[..16]);
        Cookie(cookie)
    }
}

fn period(now: Time) -> u64 {
    now.as_ps() / LIFE.as_ps()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_key_session_and_time_only() {
        let baker = Baker::new(&[1; 32]);
        let from: SocketAddr = "10.0.0.1:7000".parse().unwrap();
        let at = |s| Time::from_ps(0) + Span::from_secs(s);
        let key = KeyId::new(5);
        let cookie = baker.make(at(12), from, key, 9);
        let good = |now, from: &str, key, initiator| {
            baker.is_good(now, from.parse().unwrap(), KeyId::new(key), initiator, cookie)
        };
        for s in [12, 17, 19] {
            assert!(good(at(s), "10.0.0.1:7000", 5, 9), "{s}");
        }
        for s in [4, 20, 1000] {
            assert!(!good(at(s), "10.0.0.1:7000", 5, 9), "{s}");
        }
        assert!(!good(at(12), "10.0.0.2:7000", 5, 9));
        assert!(!good(at(12), "10.0.0.1:7001", 5, 9));
        assert!(!good(at(12), "[2001:db8::1]:7000", 5, 9));
        assert!(!good(at(12), "10.0.0.1:7000", 6, 9));
        assert!(!good(at(12), "10.0.0.1:7000", 5, 8));
        let restarted = Baker::new(&[2; 32]);
        assert!(!restarted.is_good(at(12), from, key, 9, cookie), "another secret");
        for bit in 0..128 {
            let mut changed = cookie;
            changed.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!baker.is_good(at(12), from, key, 9, changed));
        }
    }
}
