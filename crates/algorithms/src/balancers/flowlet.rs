//! Flowlets at hosts: another path after a gap in the acknowledgements.

use apus_cc::settings::{POSITIVE, ParamInfo, time};
use apus_cc::{
    AlgorithmInfo, Balancer, Derivation, Ev, PathEvent, PathFeedback, PathPolicy, ProfileInfo,
    SettingError, Settings,
};
use apus_units::random::SplitMix64;
use apus_units::{Span, Time};

use super::ecmp::draw;

const TABLE: &[ParamInfo] = &[time(
    "gap",
    POSITIVE,
    "time without an acknowledgement after which the flow takes another path, at most once per retransmission timeout",
)
.default(
    "5us",
    "deviation: half a base RTT, derived from the network; this value is for an RTT of 10 us",
)];

const DERIVED: &[Derivation] = &[Derivation {
    parameter: "gap",
    profiles: &["reps"],
    rule: "half of the unloaded RTT of the longest path",
    source: "artifact of REPS (b751588): its flowlets at hosts",
    value: |network, _| alloc::format!("{}", network.base_rtt.mul_f64(0.5)),
}];

/// Gives a flow another path if no acknowledgement has arrived for a while, at most once per timeout.
#[derive(Clone, Debug)]
pub struct Flowlet {
    gap: Span,
    random: SplitMix64,
    ev: Ev,
    acked_at: Time,
    changed_at: Time,
    rto: Span,
}

impl Balancer for Flowlet {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "flowlet",
        summary: "another path after a gap in the acknowledgements",
        source: "unverified: Vanini et al., Let It Flow, NSDI 2017; at hosts as in the artifact of REPS",
        profiles: &[ProfileInfo { name: "reps", doc: "at hosts, as in the artifact of REPS" }],
        parameters: TABLE,
    };
    const DERIVED: &'static [Derivation] = DERIVED;

    fn new(settings: &mut Settings) -> Result<Self, SettingError> {
        Ok(Self {
            gap: settings.time("gap"),
            random: SplitMix64::new(0),
            ev: Ev::default(),
            acked_at: Time::ZERO,
            changed_at: Time::ZERO,
            rto: Span::ZERO,
        })
    }
}

impl PathPolicy for Flowlet {
    fn reseed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
        self.ev = draw(&mut self.random);
    }

    #[inline]
    fn next(&mut self, now: Time, _: f64) -> Ev {
        // Before the first acknowledgement, gaps are unknown.
        let has_gap = self.acked_at != Time::ZERO && now.since(self.acked_at) > self.gap;
        if has_gap && now.since(self.changed_at) >= self.rto {
            self.ev = draw(&mut self.random);
            self.changed_at = now;
        }
        self.ev
    }

    #[inline]
    fn feedback(&mut self, event: &PathEvent) {
        self.rto = event.rto;
        if matches!(event.kind, PathFeedback::Good | PathFeedback::Marked) {
            self.acked_at = event.now;
        }
    }

    fn sprays(&self) -> bool {
        false
    }
}
