//! The search for the MTU of a path by probes (RFC 8899). The search starts from the kernel's value but does not trust
//! it: some routers drop long packets silently, and the value expires.

use apus_cc::{FlowInfo, PacketSizeEvent};
use apus_units::{Bytes, Span, Time};
use apus_wire::WORD_BYTES;

use crate::config::wire_bytes_of;

/// Length in bytes of a packet that every path carries. Source: RFC 8899 §5.1.2, BASE_PLPMTU for IPv6.
pub(super) const BASE: u32 = 1280;
/// Minimum length in bytes of packets over IPv4: to which the kernel shortens a path at most, by default. Source: Linux,
/// ip-sysctl, `net.ipv4.route.min_pmtu`: 512 bytes and two headers of 20.
pub(super) const LEAST: u32 = 552;
/// Maximum number of unanswered probes of one length; after them, the length counts as too long. Source: RFC 8899
/// §5.1.2, MAX_PROBES.
const MAX_PROBES: u32 = 3;
/// Resolution of the search in bytes. The search ends when at most this number of bytes can be gained. deviation: RFC
/// 8899 §5.3.2 leaves it open; 32 bytes are 2 % of the shortest packets.
const RESOLUTION: u32 = 32;
/// Time after which longer packets are tried again. Source: RFC 8899 §5.1.1, PMTU_RAISE_TIMER: 600 s.
const RAISE_AFTER: Span = Span::from_secs(600);

/// The search on one path. All lengths are those of an IP packet in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathSearch {
    /// Length of packets that are known to arrive.
    pub(super) confirmed: u32,
    /// Maximum length that may still arrive: longer packets do not arrive or are not allowed.
    max: u32,
    /// Maximum length that both hosts and the kernel allow.
    limit: u32,
    /// Maximum length that both hosts allow.
    most: u32,
    probing: Option<Probing>,
    /// When the search starts again.
    raise_at: Time,
    /// Number of timeouts of the connection's flows at the last check.
    timeouts: u64,
}

/// The length that is being probed.
#[derive(Clone, Copy, Debug)]
struct Probing {
    length: u32,
    /// Number of probes sent.
    sent: u32,
    /// When the next probe is due.
    next_at: Time,
}

/// The next action of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Do nothing before this time.
    Wait(Time),
    /// Send a probe of this length.
    Probe(u32),
    /// Ask the kernel for its limit, which may have changed, and call [`PathSearch::raise`].
    Ask,
    /// Shorten packets to the confirmed length, which has shrunk.
    Shrink,
}

impl PathSearch {
    /// Returns a search on a path on which the kernel allows packets of up to `kernel` bytes, and both hosts of up to
    /// `most`.
    pub(super) fn new(now: Time, kernel: u32, most: u32) -> Self {
        let limit = kernel.min(most);
        let confirmed = limit.min(BASE);
        let probing =
            (limit > confirmed).then_some(Probing { length: limit, sent: 0, next_at: now });
        let raise_at =
            if probing.is_none() && limit < most { now + RAISE_AFTER } else { Time::MAX };
        Self { confirmed, max: limit, limit, most, probing, raise_at, timeouts: 0 }
    }

    /// Chooses the next length to probe: halfway between the confirmed length and the maximum.
    fn choose(&mut self, now: Time) {
        let gap = self.max - self.confirmed;
        let length = self.confirmed + gap.div_ceil(2);
        self.probing = (gap > RESOLUTION).then_some(Probing { length, sent: 0, next_at: now });
        let below = self.probing.is_none() && self.confirmed + RESOLUTION < self.most;
        self.raise_at = if below { now + RAISE_AFTER } else { Time::MAX };
    }

    /// Returns the action that is due at `now`. Probes are repeated after `wait`.
    pub(super) fn step(&mut self, now: Time, wait: Span) -> Step {
        let Some(Probing { length, sent, next_at }) = self.probing else {
            if self.raise_at > now {
                return Step::Wait(self.raise_at);
            }
            return Step::Ask;
        };
        if next_at > now {
            return Step::Wait(next_at);
        }
        if sent < MAX_PROBES {
            self.probing = Some(Probing { length, sent: sent + 1, next_at: now + wait });
            return Step::Probe(length);
        }
        self.max = length - 1;
        let shrunk = length <= self.confirmed;
        if shrunk {
            // A black hole: packets of the confirmed length no longer arrive (RFC 8899 §4.3).
            self.confirmed = self.limit.min(BASE);
            self.max = self.max.max(self.confirmed);
        }
        self.choose(now);
        if shrunk { Step::Shrink } else { self.step(now, wait) }
    }

    /// Handles the answer to a probe of `length` bytes. Returns whether longer packets may be sent now, or `None` if
    /// the probe was given up or never sent.
    pub(super) fn on_answer(&mut self, now: Time, length: u32) -> Option<bool> {
        if self.probing.is_none_or(|probing| probing.length != length) {
            return None;
        }
        let grown = length > self.confirmed;
        self.confirmed = self.confirmed.max(length);
        self.max = self.max.max(self.confirmed);
        self.choose(now);
        Some(grown)
    }

    /// Handles the number of timeouts of the connection's flows. If it has grown, the confirmed length is probed again.
    pub(super) fn on_timeouts(&mut self, now: Time, timeouts: u64) {
        if timeouts > self.timeouts && self.probing.is_none() && self.confirmed > BASE {
            self.probing = Some(Probing { length: self.confirmed, sent: 0, next_at: now });
        }
        self.timeouts = timeouts;
    }

    /// Tries longer packets again, up to the kernel's current limit.
    pub(super) fn raise(&mut self, now: Time, kernel: u32) {
        self.limit = kernel.min(self.most).max(self.confirmed);
        self.max = self.limit;
        let longer = self.confirmed + RESOLUTION < self.limit;
        self.probing = longer.then_some(Probing { length: self.limit, sent: 0, next_at: now });
        self.raise_at = if longer { Time::MAX } else { now + RAISE_AFTER };
    }

    /// Handles the kernel's discovery that the path carries at most `limit` bytes.
    pub(super) fn on_limit(&mut self, now: Time, limit: u32) {
        if limit < self.limit {
            *self = Self { timeouts: self.timeouts, ..Self::new(now, limit, self.most) };
        }
    }
}

/// Returns the payload of a full packet of `mtu` bytes. It is a multiple of the word size, so that no packet divides a
/// word of an op that starts at a word boundary.
fn payload(mtu: u32, headers: u32) -> u32 {
    (mtu.saturating_sub(headers) / WORD_BYTES * WORD_BYTES).max(256)
}

/// Returns the initial length of full packets on a path whose MTU is `mtu` according to the kernel. Probes may confirm
/// more later.
pub(super) fn first_mtu(mtu: u32) -> u32 {
    mtu.min(BASE)
}

/// Returns the event that informs algorithms about a changed length of full packets.
pub(super) fn size_change(before: u32, now: u32, headers: u32) -> PacketSizeEvent {
    let (before, now) = (full_packets(before, headers), full_packets(now, headers));
    PacketSizeEvent { payload_before: before.payload, payload: now.payload, packet: now.packet }
}

/// Returns the information for algorithms about full packets of `mtu` bytes.
pub(super) fn full_packets(mtu: u32, headers: u32) -> FlowInfo {
    FlowInfo {
        payload: Bytes::new(u64::from(payload(mtu, headers))),
        packet: Bytes::new(u64::from(wire_bytes_of(mtu))),
        ..FlowInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::region::ATOMIC_BYTES;
    use crate::session::KeyRing;

    #[test]
    fn algorithms_learn_payload_and_link_bytes_of_full_packets() {
        let info = full_packets(1500, 100);
        assert_eq!((info.payload.get(), info.packet.get()), (1400, 1538));
        assert_eq!(full_packets(9000, 100).packet.get(), 9038);
    }

    #[test]
    fn packets_carry_whole_words_and_on_every_path_of_1280_bytes_atomic_ops() {
        for mtu in 1280..=1500 {
            assert_eq!(full_packets(mtu, 131).payload.get() % 8, 0, "{mtu}");
        }
        let mut config =
            Config::new(([127, 0, 0, 1], 0).into(), KeyRing::insecure()).expect("valid");
        for algorithm in config.registry.algorithms() {
            config.set_algorithm(Some(algorithm.name), &[]).expect("defaults");
            // The longest guard: a tag of 16 bytes, and numbers of 8 bytes in total.
            let headers = crate::config::header_bytes(&config.algorithm, 24);
            let payload = full_packets(BASE, headers).payload.get();
            assert!(payload >= ATOMIC_BYTES as u64, "{}: {payload}", algorithm.name);
        }
    }

    /// Forged ICMP messages shorten packets over IPv4 to 552 bytes. Ops of 256 bytes are then still one packet.
    #[test]
    fn packets_of_552_bytes_carry_whole_words_and_ops_of_256_bytes() {
        let mut config =
            Config::new(([127, 0, 0, 1], 0).into(), KeyRing::insecure()).expect("valid");
        for algorithm in config.registry.algorithms() {
            config.set_algorithm(Some(algorithm.name), &[]).expect("defaults");
            let headers = crate::config::header_bytes(&config.algorithm, 24);
            let payload = full_packets(LEAST, headers).payload.get() as u32;
            assert!(payload >= 256 && payload.is_multiple_of(8), "{}: {payload}", algorithm.name);
            assert!(payload + headers <= LEAST, "{}: {payload} and {headers}", algorithm.name);
        }
    }

    const WAIT: Span = Span::from_ms(100);

    /// Searches on a path that carries `takes` bytes. Returns the result and the number of probes.
    fn search(path: &mut PathSearch, now: &mut Time, takes: u32) -> (u32, u32) {
        let mut probes = 0;
        loop {
            match path.step(*now, WAIT) {
                Step::Probe(length) => {
                    probes += 1;
                    if length <= takes {
                        path.on_answer(*now, length);
                    }
                }
                Step::Wait(at) if path.probing.is_some() => *now = at,
                Step::Wait(_) => return (path.confirmed, probes),
                Step::Shrink => {}
                Step::Ask => path.raise(*now, path.most),
            }
        }
    }

    #[test]
    fn rfc_8899_5_3_a_good_path_needs_one_probe_and_a_worse_one_a_search() {
        let mut now = Time::ZERO;
        assert_eq!(search(&mut PathSearch::new(now, 9000, 9000), &mut now, 9000), (9000, 1));
        assert_eq!(
            search(&mut PathSearch::new(now, 9000, 1280), &mut now, 9000),
            (1280, 0),
            "nothing to gain"
        );
        for takes in [1280, 1281, 1400, 1500, 4352, 8999] {
            let (found, probes) = search(&mut PathSearch::new(now, 9000, 9000), &mut now, takes);
            assert!(found <= takes && takes - found <= RESOLUTION, "{found} of {takes}");
            // 7720 bytes (9000 - 1280) are halved until at most 32 are left: 1 + 8 lengths, 3 times each.
            assert!(probes <= 27, "{probes} probes");
        }
    }

    #[test]
    fn rfc_8899_4_3_timeouts_reveal_a_black_hole_and_ten_minutes_later_longer_packets_are_tried() {
        let mut now = Time::ZERO;
        let mut path = PathSearch::new(now, 9000, 9000);
        search(&mut path, &mut now, 9000);
        path.on_timeouts(now, 2);
        assert_eq!(search(&mut path, &mut now, 9000).0, 9000, "the timeouts had another reason");
        path.on_timeouts(now, 2);
        assert!(path.probing.is_none(), "no further timeout");
        path.on_timeouts(now, 3);
        let (found, _) = search(&mut path, &mut now, 1500);
        assert!((1500 - RESOLUTION..=1500).contains(&found), "{found}");
        assert_eq!(path.step(now, WAIT), Step::Wait(path.raise_at));
        assert_eq!(path.raise_at.since(now), RAISE_AFTER);
        now += RAISE_AFTER;
        assert_eq!(search(&mut path, &mut now, 9000).0, 9000);
        path.on_limit(now, 1500);
        assert_eq!((path.confirmed, path.limit), (1280, 1500), "the kernel's limit");
        assert_eq!(search(&mut path, &mut now, 9000).0, 1500);
    }

    /// The kernel's knowledge of a path expires, as does the detour that caused it.
    #[test]
    fn the_kernel_is_asked_again_after_ten_minutes() {
        let mut now = Time::ZERO;
        for (kernel, least) in [(1500, 1500), (1280, 1280), (552, 552)] {
            let mut path = PathSearch::new(now, kernel, 9000);
            assert_eq!(search(&mut path, &mut now, 9000).0, least);
            let asked = now + RAISE_AFTER;
            for _ in 0..2 {
                let Step::Wait(at) = path.step(now, WAIT) else { panic!("nothing is due") };
                assert!(at > now && at <= asked + RAISE_AFTER, "{at:?}");
                now = at;
                assert_eq!(path.step(now, WAIT), Step::Ask);
                path.raise(now, kernel);
            }
            let Step::Wait(at) = path.step(now, WAIT) else {
                panic!("the kernel's limit is as before")
            };
            now = at;
            assert_eq!(path.step(now, WAIT), Step::Ask);
            path.raise(now, 65_535);
            assert_eq!(search(&mut path, &mut now, 9000).0, 9000, "{kernel}");
            let Step::Wait(at) = path.step(now, WAIT) else { panic!("the search has ended") };
            assert_eq!(at, Time::MAX, "as long as both hosts allow");
        }
    }

    #[test]
    fn answers_to_no_current_probe_change_nothing() {
        let mut now = Time::ZERO;
        let mut path = PathSearch::new(now, 9000, 9000);
        assert_eq!(path.on_answer(now, 65_000), None);
        assert_eq!(path.confirmed, 1280);
        search(&mut path, &mut now, 1400);
        let found = path.confirmed;
        assert_eq!(path.on_answer(now, 9000), None, "an answer to a probe that was given up");
        assert_eq!(path.confirmed, found);
    }
}
