//! REPS: recycled entropy packet spraying.

use alloc::string::String;

use apus_cc::derivation::whole;
use apus_cc::settings::{ANY, AT_LEAST_1, POSITIVE, ParamInfo, choice, count, flag, number, time};
use apus_cc::{
    AlgorithmInfo, Balancer, Derivation, Ev, PathEvent, PathFeedback, PathPolicy, ProfileInfo,
    SettingError, Settings,
};
use apus_units::random::SplitMix64;
use apus_units::{Span, Time};

use super::EVS;

const PAPER: &str = "paper";
const UET: &str = "uet";
/// Every timeout is a failure of a path.
const ANY_TIMEOUT: &str = "timeout";
/// A timeout is a failure only if no packet had waited in a queue for long.
const LOW_RTT: &str = "timeout-at-low-rtt";

#[rustfmt::skip]
const TABLE: &[ParamInfo] = &[
    EVS.default_of(PAPER, "65536", "REPS §3: all values of a 16-bit field")
        .default_of(UET, "64", "uet-htsim 40ccb05, `-paths`"),
    time("freeze", POSITIVE, "time after a failure in which only known values are used")
        .default_of(PAPER, "100us", "REPS Fig. 7: its run")
        .default_of(UET, "10ms", "uet-htsim 40ccb05, `uec_mp.h`"),
    count("explore", ANY, "number of packets after the frozen time of which some take random values")
        .default_of(PAPER, "71", "unverified: REPS §3: the BDP in packets; if the network is unknown, the \
            value of the paper at 400 Gb/s")
        .default_of(UET, "16", "uet-htsim 40ccb05, `uec_mp.cpp`"),
    count("explore_every", AT_LEAST_1, "of the packets that `explore` counts, one in this number takes a \
        random value")
        .default_of(PAPER, "8", "REPS §3")
        .default_of(UET, "1", "uet-htsim 40ccb05, `uec_mp.cpp`"),
    flag("forget_on_thaw", "whether the known values are discarded when the frozen time ends")
        .default_of(PAPER, "false", "REPS §3")
        .default_of(UET, "true", "uet-htsim 40ccb05, `uec_mp.cpp`"),
    choice("failure", &[ANY_TIMEOUT, LOW_RTT], "\"timeout\": every timeout is a failure, as with trimming. \
        \"timeout-at-low-rtt\": a timeout is a failure only if the largest RTT since the previous timeout was \
        below `low_rtt` base RTTs")
        .default_of(PAPER, "timeout", "REPS §3, with trimming; without trimming timeout-at-low-rtt is derived")
        .default_of(UET, "timeout", "uet-htsim 40ccb05, `uec_mp.cpp`"),
    number("low_rtt", POSITIVE, "upper limit of a low RTT, as a multiple of `base_rtt`")
        .default("1.65", "REPS §3"),
    time("base_rtt", POSITIVE, "RTT without queues")
        .default("10us", "deviation: a property of the network, from which it is derived; this value is for a \
            leaf-spine network"),
];

const DERIVED: &[Derivation] = &[
    Derivation {
        parameter: "base_rtt",
        profiles: &[PAPER, UET],
        rule: "the unloaded RTT of the longest path",
        source: "REPS §3",
        value: |network, _| alloc::format!("{}", network.base_rtt),
    },
    Derivation {
        parameter: "failure",
        profiles: &[PAPER],
        rule: "\"timeout\" if switches trim, otherwise \"timeout-at-low-rtt\"",
        source: "REPS §3",
        value: |network, _| String::from(if network.trims { ANY_TIMEOUT } else { LOW_RTT }),
    },
    Derivation {
        parameter: "explore",
        profiles: &[PAPER],
        rule: "the BDP in packets",
        source: "REPS §3: BDP / MTU",
        value: |network, _| whole(network.bdp_packets()),
    },
];

/// Number of values that REPS keeps (REPS §3: a ring of 8 entries).
const RING: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Rules {
    evs: u32,
    freeze: Span,
    explore: u32,
    explore_every: u32,
    forget_on_thaw: bool,
    /// Largest RTT at which a timeout is a failure; `None` for every timeout.
    low_rtt: Option<Span>,
}

/// Reuses the values of packets that arrived without a mark once each, the oldest first.
#[derive(Clone, Debug)]
pub struct Reps {
    rules: Rules,
    random: SplitMix64,
    ring: [Ev; RING],
    /// Bit i: entry i was not used since it was stored.
    valid: u8,
    head: u8,
    /// Entries that were ever stored, at most [`RING`].
    seen: u8,
    /// Entry to use next if the policy is frozen and no entry is valid.
    turn: u8,
    frozen: bool,
    exit_at: Time,
    explore: u32,
    largest_rtt: Span,
}

impl Balancer for Reps {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "reps",
        summary: "reuses the entropy values of packets that arrived without a mark, and after a failure uses \
            only these",
        source: "Bonato et al., REPS: Recycled Entropy Packet Spraying, EuroSys 2026",
        profiles: &[
            ProfileInfo { name: PAPER, doc: "as in the paper" },
            ProfileInfo { name: UET, doc: "as in uet-htsim" },
        ],
        parameters: TABLE,
    };
    const DERIVED: &'static [Derivation] = DERIVED;

    fn new(settings: &mut Settings) -> Result<Self, SettingError> {
        let low_rtt = (settings.choice("failure") == LOW_RTT)
            .then(|| settings.time("base_rtt").mul_f64(settings.number("low_rtt")));
        let rules = Rules {
            evs: settings.count("evs"),
            freeze: settings.time("freeze"),
            explore: settings.count("explore"),
            explore_every: settings.count("explore_every"),
            forget_on_thaw: settings.flag("forget_on_thaw"),
            low_rtt,
        };
        if low_rtt.is_none() {
            let names = ["low_rtt", "base_rtt"];
            settings.without_effect(&names, "unless `failure` is \"timeout-at-low-rtt\"")?;
        }
        if rules.explore == 0 {
            settings.without_effect(&["explore_every"], "while `explore` is 0")?;
        }
        Ok(Self::of(rules))
    }
}

impl Reps {
    fn of(rules: Rules) -> Self {
        Self {
            rules,
            random: SplitMix64::new(0),
            ring: [Ev::default(); RING],
            valid: 0,
            head: 0,
            seen: 0,
            turn: 0,
            frozen: false,
            exit_at: Time::ZERO,
            explore: 0,
            largest_rtt: Span::ZERO,
        }
    }

    /// Returns `true` while only known values are used.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    fn draw(&mut self) -> Ev {
        Ev::new(self.random.below(u64::from(self.rules.evs)) as u16) // below 65536
    }

    fn on_ack(&mut self, event: &PathEvent, marked: bool) {
        self.largest_rtt = self.largest_rtt.max(event.rtt);
        if !marked {
            let head = usize::from(self.head);
            self.ring[head] = event.ev;
            self.valid |= 1 << head;
            self.head = ((head + 1) % RING) as u8;
            self.seen = (self.seen + 1).min(RING as u8);
        }
        if self.frozen && event.now > self.exit_at {
            self.frozen = false;
            self.explore = self.rules.explore;
            if self.rules.forget_on_thaw {
                (self.valid, self.seen, self.head) = (0, 0, 0);
            }
        }
    }

    fn on_failure(&mut self, now: Time) {
        let largest = core::mem::take(&mut self.largest_rtt);
        let is_failure = self.rules.low_rtt.is_none_or(|limit| largest < limit);
        if is_failure && !self.frozen && self.explore == 0 {
            self.frozen = true;
            self.exit_at = now.saturating_add(self.rules.freeze);
        }
    }

    /// Returns the oldest valid entry, which is not valid any more.
    fn take_oldest(&mut self) -> Ev {
        // The valid entries are the last ones before `head`.
        let oldest = (usize::from(self.head) + RING - self.valid.count_ones() as usize) % RING;
        self.valid &= !(1 << oldest);
        self.ring[oldest]
    }
}

impl PathPolicy for Reps {
    fn values(&self) -> u32 {
        self.rules.evs
    }

    fn reseed(&mut self, seed: u64) {
        *self = Self { random: SplitMix64::new(seed), ..Self::of(self.rules) };
    }

    #[inline]
    fn next(&mut self, _: Time, _: f64) -> Ev {
        if self.explore > 0 {
            self.explore -= 1;
            if self.explore.is_multiple_of(self.rules.explore_every) {
                return self.draw();
            }
        }
        if self.valid != 0 {
            return self.take_oldest();
        }
        if self.seen == 0 || !self.frozen {
            return self.draw();
        }
        self.turn = (self.turn + 1) % self.seen;
        self.ring[usize::from(self.turn)]
    }

    #[inline]
    fn feedback(&mut self, event: &PathEvent) {
        match event.kind {
            PathFeedback::Good => self.on_ack(event, false),
            PathFeedback::Marked => self.on_ack(event, true),
            // All paths share the last port (uet-htsim 40ccb05, `uec.cpp`).
            PathFeedback::TrimmedAtLastHop => self.on_ack(event, event.marked_packets > 0),
            PathFeedback::Timeout => self.on_failure(event.now),
            PathFeedback::Trimmed | PathFeedback::Lost | PathFeedback::ProbeAnswered => {}
        }
    }

    fn reads_marks(&self) -> bool {
        true
    }

    fn sprays(&self) -> bool {
        true
    }
}
