//! PLB: protective load balancing, by marks or by delay.

use apus_cc::settings::{
    ANY, AT_LEAST_1, FRACTION, NOT_NEGATIVE, POSITIVE, ParamInfo, count, number, time,
};
use apus_cc::{
    AlgorithmInfo, Balancer, Derivation, Ev, PathEvent, PathFeedback, PathPolicy, ProfileInfo,
    SettingError, Settings,
};
use apus_units::random::SplitMix64;
use apus_units::{Span, Time};

use super::ecmp::draw;
use crate::swift::fabric_target;

const LINUX: &str = "linux";
const FALCON: &str = "falcon";

#[rustfmt::skip]
const TABLE: &[ParamInfo] = &[
    number("congested_fraction", FRACTION, "fraction of congested packets at or above which a round counts as \
        congested")
        .default_of(LINUX, "0.5", "Linux `tcp_plb.c`: 128/256")
        .default_of(FALCON, "0.5", "Falcon default"),
    count("rounds", AT_LEAST_1, "number of consecutive congested rounds after which the flow changes its path")
        .default_of(LINUX, "12", "Linux `tcp_plb_rehash_rounds`")
        .default_of(FALCON, "5", "Falcon default"),
    count("idle_rounds", ANY, "as `rounds`, for a flow with nothing in flight; 0: never")
        .default_of(LINUX, "3", "Linux `tcp_plb_idle_rehash_rounds`")
        .default_of(FALCON, "0", "Falcon has no such rule"),
    number("pause", NOT_NEGATIVE, "time for which the path does not change after a timeout: 1 to 2 times this \
        number of retransmission timeouts, at random")
        .default_of(LINUX, "60", "deviation: Linux `tcp_plb_suspend_rto_sec` is 60 s, longer than any run; \
            here the same number of timeouts, which last at least 1 s in RFC 6298")
        .default_of(FALCON, "0", "Falcon has no such rule"),
    time("max_delay", POSITIVE, "fabric delay above which a packet counts as congested")
        .default_of(FALCON, "25us", "Swift §5.2: the target delay, from which this limit is derived"),
];

const DERIVED: &[Derivation] = &[Derivation {
    parameter: "max_delay",
    profiles: &[FALCON],
    rule: "1.01 times Swift's target on the longest path",
    source: "Falcon default: a delay above 1.01 times the target",
    value: |network, _| alloc::format!("{}", fabric_target(network).mul_f64(1.01)),
}];

#[derive(Clone, Copy, Debug)]
struct Rules {
    congested_fraction: f64,
    rounds: u32,
    idle_rounds: u32,
    pause: f64,
    /// `None`: congested packets are those with a mark.
    max_delay: Option<Span>,
}

/// Counts the congested packets of a round, which is a window of acknowledged packets, and the congested
/// rounds in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CongestedRounds {
    /// Packets acknowledged in this round.
    acked: u32,
    /// Congested packets among them.
    congested: u32,
    /// Congested rounds in a row.
    pub(crate) in_a_row: u32,
}

impl CongestedRounds {
    /// Records acknowledged packets. At the end of a round, returns the number of congested rounds in a row. A
    /// round is congested if at least `fraction` of its packets are.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        (acked, congested): (u32, u32),
        cwnd: f64,
        fraction: f64,
    ) -> Option<u32> {
        self.acked = self.acked.saturating_add(acked);
        self.congested = self.congested.saturating_add(congested);
        let (all, congested) = (f64::from(self.acked), f64::from(self.congested));
        if all < cwnd || self.acked == 0 {
            return None;
        }
        self.in_a_row = if congested >= fraction * all { self.in_a_row + 1 } else { 0 };
        (self.acked, self.congested) = (0, 0);
        Some(self.in_a_row)
    }
}

/// Gives a flow another path after several congested rounds in a row.
#[derive(Clone, Debug)]
pub struct Plb {
    rules: Rules,
    random: SplitMix64,
    ev: Ev,
    count: CongestedRounds,
    round_began: Time,
    pause_until: Time,
}

impl Balancer for Plb {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "plb",
        summary: "a flow that stays congested takes another path",
        source: "Qureshi et al., PLB: Congestion Signals are Simple and Effective for Network Load Balancing, \
                 SIGCOMM 2022",
        profiles: &[
            ProfileInfo { name: LINUX, doc: "by marks, as in Linux" },
            ProfileInfo { name: FALCON, doc: "by delay, as in Falcon" },
        ],
        parameters: TABLE,
    };
    const DERIVED: &'static [Derivation] = DERIVED;

    fn new(settings: &mut Settings) -> Result<Self, SettingError> {
        let by_delay = settings.profile() == FALCON;
        let rules = Rules {
            congested_fraction: settings.number("congested_fraction"),
            rounds: settings.count("rounds"),
            idle_rounds: settings.count("idle_rounds"),
            pause: settings.number("pause"),
            max_delay: by_delay.then(|| settings.time("max_delay")),
        };
        Ok(Self {
            rules,
            random: SplitMix64::new(0),
            ev: Ev::default(),
            count: CongestedRounds::default(),
            round_began: Time::ZERO,
            pause_until: Time::ZERO,
        })
    }
}

impl Plb {
    fn relabel(&mut self) {
        self.ev = draw(&mut self.random);
        self.count.in_a_row = 0;
    }
}

impl PathPolicy for Plb {
    fn reseed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
        self.ev = draw(&mut self.random);
    }

    #[inline]
    fn next(&mut self, _: Time, _: f64) -> Ev {
        self.ev
    }

    #[inline]
    fn feedback(&mut self, event: &PathEvent) {
        let acked = event.acked_packets;
        let (acked, congested) = match (event.kind, self.rules.max_delay) {
            (PathFeedback::Good | PathFeedback::Marked, Some(limit)) => {
                (acked, if event.fabric_delay > limit { acked } else { 0 })
            }
            (PathFeedback::Good | PathFeedback::Marked, None) => (acked, event.marked_packets),
            (PathFeedback::Trimmed | PathFeedback::TrimmedAtLastHop, _) => (1, 1),
            (PathFeedback::Timeout, _) => {
                self.relabel();
                let pause = self.rules.pause * (1.0 + self.random.uniform());
                self.pause_until = event.now.saturating_add(event.rto.mul_f64(pause));
                return;
            }
            (PathFeedback::Lost | PathFeedback::ProbeAnswered, _) => return,
        };
        let fraction = self.rules.congested_fraction;
        // deviation: PLB is defined for windows. A flow with a rate but no window has rounds of one RTT.
        let is_over = !event.rtt.is_zero() && event.now.since(self.round_began) >= event.rtt;
        let cwnd = if event.cwnd.is_infinite() && is_over { 0.0 } else { event.cwnd };
        let rounds = self.count.on_ack((acked, congested), cwnd, fraction);
        if rounds.is_some() {
            self.round_began = event.now;
        }
        if rounds.is_some_and(|rounds| rounds >= self.rules.rounds) && event.now >= self.pause_until
        {
            self.relabel();
        }
    }

    fn on_idle(&mut self, now: Time) {
        let limit = self.rules.idle_rounds;
        if limit > 0 && self.count.in_a_row >= limit && now >= self.pause_until {
            self.relabel();
        }
    }

    fn reads_marks(&self) -> bool {
        self.rules.max_delay.is_none()
    }

    fn sprays(&self) -> bool {
        false
    }
}
