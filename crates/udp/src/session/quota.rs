//! Limits per key: sessions, unfinished handshakes, and handshakes per second.

use std::collections::BTreeMap;
use std::iter;
use std::net::{IpAddr, Ipv6Addr};

use apus_units::{Span, Time};

use super::config::Config;
use super::identity::PeerKey;
use super::key::KeyId;

/// Holder of a quota: a peer by its own key, all holders of a shared key (who cannot be distinguished), or all unlisted peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Principal {
    /// All holders of a shared key.
    Key(KeyId),
    /// A listed peer with a key of its own.
    Peer(PeerKey),
    /// A peer with a key of its own that the key ring does not list. A holder of a shared key can create any number of such
    /// keys.
    Unlisted(PeerKey),
    /// All peers that the key ring does not list, together.
    AllUnlisted,
}

impl Principal {
    /// Returns the quota holders for which a session of this peer counts.
    pub(crate) fn holders(self) -> impl Iterator<Item = Self> {
        let all = matches!(self, Self::Unlisted(_)).then_some(Self::AllUnlisted);
        iter::once(self).chain(all)
    }

    /// Returns the peer's own key.
    pub(crate) const fn peer(self) -> Option<PeerKey> {
        match self {
            Self::Peer(key) | Self::Unlisted(key) => Some(key),
            Self::Key(_) | Self::AllUnlisted => None,
        }
    }

    /// Returns the source whose share a peer at this address uses. For an unlisted key this is the address: otherwise the
    /// peer could obtain another share with another key.
    pub(crate) fn source(self, address: IpAddr) -> Source {
        match self {
            Self::Peer(key) => Source::Peer(key),
            Self::Key(_) | Self::Unlisted(_) | Self::AllUnlisted => source(address),
        }
    }
}

/// Divisor of [`Config::handshake_rate`] for the number of handshakes that may follow each other at once: a quarter of the
/// rate.
const BURST_PARTS: u64 = 4;
/// Maximum rate of handshakes from all addresses together, in multiples of the rate of one address. deviation: no source;
/// 18 % of a core at 175 us for a handshake with the default rate.
const TOTAL: u64 = 4;
/// Weight of a handshake that is refused because of its key, in handshakes of its address. This applies to a peer that may not
/// connect, because it is unlisted or its line is retired, to a peer beyond the rate of its key, and to an unlisted peer
/// beyond its quota. The Diffie-Hellman of such a handshake is computed before the key is known. Without the weight, a peer
/// with several addresses could use up the rate of all addresses together. deviation: no source; with this weight, a peer
/// that may not connect needs about 64 addresses for that, and a listed one about 49, because a quarter of its handshakes count
/// once.
const REFUSED_WEIGHT: u64 = 16;
/// Maximum number of sources that are remembered. Rationale: with the default rate, a source is remembered for less than a
/// third of a second after its last handshake. In that time the limit of all sources together admits less than a third of
/// this number.
const MAX_SOURCES: usize = 4096;

/// A peer whose rate of handshakes is limited, and which has a share of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// An IPv4 address, or the first 64 bits of an IPv6 address, of which a host usually has all (RFC 7421).
    Address(Ipv6Addr),
    Peer(PeerKey),
}

pub(super) fn source(address: IpAddr) -> Source {
    Source::Address(match address {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64),
    })
}

#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    sessions: u32,
    pending: u32,
}

/// Usage of each quota, and the rates of handshakes.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    /// Sessions that peers opened, pending ones included.
    usage: BTreeMap<Principal, Usage>,
    /// Time at which the rate limit of a source is unused again (the theoretical arrival time of the generic cell rate
    /// algorithm, ITU-T I.371).
    rates: BTreeMap<Source, Time>,
    /// Time at which the rate limit of all sources together is unused again.
    total: Time,
}

impl Quotas {
    /// Counts a handshake from this address, which costs a Diffie-Hellman computation. Returns `false` if it exceeds a limit.
    pub(crate) fn admit_address(&mut self, now: Time, from: IpAddr, config: &Config) -> bool {
        let rate = u64::from(config.handshake_rate);
        let (rate_of_all, at_once) = of_all_addresses(config);
        let interval = interval(rate_of_all);
        let total = self.total.max(now);
        total.since(now) <= interval * at_once && self.admit(now, source(from), rate) && {
            self.total = total + interval;
            true
        }
    }

    /// Adds to an admitted handshake of this address the weight of a handshake that its key refused.
    pub(crate) fn count_refused(&mut self, now: Time, from: IpAddr, config: &Config) {
        let at = self.rates.entry(source(from)).or_insert(now);
        *at = (*at).max(now) + interval(config.handshake_rate.into()) * (REFUSED_WEIGHT - 1);
    }

    /// Counts a handshake of this peer, which has proved its key. Returns `false` if it exceeds the limit.
    pub(crate) fn admit_peer(&mut self, now: Time, peer: PeerKey, config: &Config) -> bool {
        self.admit(now, Source::Peer(peer), u64::from(config.handshake_rate))
    }

    fn admit(&mut self, now: Time, source: Source, rate: u64) -> bool {
        if self.rates.len() >= MAX_SOURCES {
            self.rates.retain(|_, at| *at > now);
            if self.rates.len() >= MAX_SOURCES {
                return false;
            }
        }
        let (interval, at) = (interval(rate), self.rates.entry(source).or_insert(now));
        let before = (*at).max(now);
        let admitted = before.since(now) < interval * (rate / BURST_PARTS).max(1);
        if admitted {
            *at = before + interval;
        }
        admitted
    }

    /// Returns `true` if another session of this key is within its quotas. The new session replaces a session of `replaced`,
    /// if given.
    pub(crate) fn has_room(
        &self,
        who: Principal,
        replaced: Option<Principal>,
        config: &Config,
    ) -> bool {
        who.holders().all(|holder| {
            let mut ended = replaced.into_iter().flat_map(Principal::holders);
            let ended = u32::from(ended.any(|other| other == holder));
            let used = self.usage.get(&holder).copied().unwrap_or_default();
            let (sessions, pending) = config.quota(holder);
            used.sessions - ended.min(used.sessions) < sessions && used.pending < pending
        })
    }

    /// Counts a pending session of this key.
    pub(crate) fn begin(&mut self, who: Principal) {
        for holder in who.holders() {
            let used = self.usage.entry(holder).or_default();
            used.sessions += 1;
            used.pending += 1;
        }
    }

    /// Counts a pending session as connected.
    pub(crate) fn connected(&mut self, who: Principal) {
        for holder in who.holders() {
            if let Some(used) = self.usage.get_mut(&holder) {
                used.pending = used.pending.saturating_sub(1);
            }
        }
    }

    /// Counts the end of a session.
    pub(crate) fn end(&mut self, who: Principal, pending: bool) {
        if pending {
            self.connected(who);
        }
        for holder in who.holders() {
            if let Some(used) = self.usage.get_mut(&holder) {
                used.sessions = used.sessions.saturating_sub(1);
                if used.sessions == 0 {
                    self.usage.remove(&holder);
                }
            }
        }
    }
}

/// Returns the part of a limit that all unlisted peers together may use: three quarters. The rest is reserved for listed
/// peers. deviation: no source; a listed key has a quarter by default.
pub(crate) fn of_unlisted(all: u32) -> u32 {
    (all - all.div_ceil(4)).max(1)
}

/// Returns the number of handshakes that may come from all addresses together: per second, and at once.
pub(super) fn of_all_addresses(config: &Config) -> (u64, u64) {
    let rate = u64::from(config.handshake_rate) * TOTAL;
    (rate, (rate / BURST_PARTS).max(1))
}

pub(super) fn interval(rate: u64) -> Span {
    Span::from_secs(1) / rate.max(1)
}

impl Config {
    /// Returns the maximum numbers of sessions and pending sessions of a holder.
    fn quota(&self, who: Principal) -> (u32, u32) {
        let share = |all: u32| match who {
            Principal::Peer(_) | Principal::Unlisted(_) => all.div_ceil(4),
            Principal::AllUnlisted => of_unlisted(all),
            // The limits of the table apply.
            Principal::Key(_) => u32::MAX,
        };
        if who == Principal::AllUnlisted {
            return (share(self.max_sessions), share(self.max_pending));
        }
        (
            self.quota_sessions.unwrap_or_else(|| share(self.max_sessions)),
            self.quota_pending.unwrap_or_else(|| share(self.max_pending)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_ps(0) + Span::from_ms(1000 + ms)
    }

    #[test]
    fn an_address_has_its_rate_with_a_burst_of_a_quarter_second() {
        let config = Config { handshake_rate: 40, ..Config::default() };
        let mut quotas = Quotas::default();
        let mut admitted = |ms, from: &str| {
            let from = from.parse().unwrap();
            (0..100).filter(|_| quotas.admit_address(at(ms), from, &config)).count()
        };
        assert_eq!(admitted(0, "10.0.0.1"), 10);
        assert_eq!(admitted(25, "10.0.0.1"), 1, "one per 25 ms");
        assert_eq!(admitted(25, "10.0.0.2"), 10, "another address");
        assert_eq!(admitted(500, "2001:db8::1"), 10);
        assert_eq!(admitted(500, "2001:db8::ffff:1"), 0, "of the same host");
        assert_eq!(admitted(500, "2001:db8:0:1::1"), 10);
        // All together: 160 per second, and a burst of 40 plus 1.
        let all: usize = (0..100).map(|n| admitted(2_000, &format!("10.0.1.{n}"))).sum();
        assert_eq!(all, 41);
    }

    /// Twenty addresses of a peer each request 40 sessions per second. The key is admitted 40 times per second. A refused
    /// handshake counts 16 times, so each address gets at most 2.5 of them per second: the limit of 160 for all together is
    /// never used up.
    #[test]
    fn a_peer_with_many_addresses_leaves_others_the_rate_of_all_together() {
        let config = Config { handshake_rate: 40, ..Config::default() };
        let mut quotas = Quotas::default();
        let peer = PeerKey::new([9; 32]).unwrap();
        let other = "10.0.0.1".parse().unwrap();
        let (mut computed, mut refused) = (0, 0);
        for ms in 0..4_000 {
            if ms % 25 == 0 {
                for n in 0..20 {
                    let from = IpAddr::from([10, 0, 1, n]);
                    if quotas.admit_address(at(ms), from, &config) {
                        computed += u32::from(ms >= 1_000);
                        if !quotas.admit_peer(at(ms), peer, &config) {
                            quotas.count_refused(at(ms), from, &config);
                        }
                    }
                }
            }
            if ms % 100 == 99 && ms >= 1_000 {
                refused += u32::from(!quotas.admit_address(at(ms), other, &config));
            }
        }
        assert_eq!(refused, 0);
        assert!((3 * 80..=3 * 100).contains(&computed), "{computed} in three seconds");
    }

    /// Returns how many of 30 handshakes of another address, one per second, are refused while a peer asks from this number of
    /// addresses 160 times per second each. The rate of all addresses together is 160. The addresses begin one after the other.
    fn refused_beside(addresses: u8, is_listed: bool) -> usize {
        let config = Config { handshake_rate: 40, ..Config::default() };
        let mut quotas = Quotas::default();
        let peer = PeerKey::new([9; 32]).unwrap();
        let other = "10.0.0.1".parse().unwrap();
        let mut refused = 0;
        for n in 0..60 * 160 {
            let now = at(0) + interval(160) * n;
            for address in (0..addresses).filter(|&address| n >= address.into()) {
                let from = IpAddr::from([10, 0, 1, address]);
                if quotas.admit_address(now, from, &config)
                    && !(is_listed && quotas.admit_peer(now, peer, &config))
                {
                    quotas.count_refused(now, from, &config);
                }
            }
            // The bursts of the beginning have passed.
            if n >= 30 * 160 && n % 160 == 0 {
                refused += usize::from(!quotas.admit_address(now, other, &config));
            }
        }
        refused
    }

    /// Each address has 40 units per second, and a refused handshake takes 16 of them. The rate of all addresses is used up by
    /// 160 * 16 / 40 = 64 addresses of an unlisted peer. Of the handshakes of a listed peer, 40 per second take one unit:
    /// (40 + 120 * 16) / 40 = 49 addresses. One address less leaves room for others, and one address more leaves none.
    #[test]
    fn about_49_addresses_of_a_listed_peer_or_64_of_an_unlisted_one_use_up_the_rate_of_all() {
        for (is_listed, needed) in [(true, 49), (false, 64)] {
            let refused = [needed - 1, needed + 1].map(|n| refused_beside(n, is_listed));
            assert_eq!(refused, [0, 30], "around {needed} addresses");
        }
    }

    #[test]
    fn a_peer_has_a_quarter_of_the_sessions_and_a_shared_key_no_quota() {
        let config = Config { max_sessions: 8, max_pending: 5, ..Config::default() };
        let peer = Principal::Peer(PeerKey::new([9; 32]).unwrap());
        let shared = Principal::Key(KeyId::INSECURE);
        let mut quotas = Quotas::default();
        let mut open = |who| {
            (0..20)
                .take_while(|_| {
                    let room = quotas.has_room(who, None, &config);
                    if room {
                        quotas.begin(who);
                        quotas.connected(who);
                    }
                    room
                })
                .count()
        };
        assert_eq!((open(peer), open(shared)), (2, 20), "the table itself limits the others");
        assert!(quotas.has_room(peer, Some(peer), &config), "it replaces one of its own");
        let other = Principal::Peer(PeerKey::new([10; 32]).unwrap());
        assert!(!quotas.has_room(peer, Some(other), &config), "one of another");
        quotas.end(peer, false);
        assert!(quotas.has_room(peer, None, &config));
        let named = Config { quota_sessions: Some(1), ..config };
        assert!(!quotas.has_room(peer, None, &named));
        quotas.end(peer, false);
        assert!(quotas.has_room(peer, None, &named) && !quotas.usage.contains_key(&peer));
    }
}
