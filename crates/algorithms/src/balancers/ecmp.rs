//! One path per flow, selected by a hash of the flow.

use apus_cc::settings::{ParamInfo, flag};
use apus_cc::{
    AlgorithmInfo, Balancer, Ev, PathEvent, PathFeedback, PathPolicy, ProfileInfo, SettingError,
    Settings,
};
use apus_units::Time;
use apus_units::random::SplitMix64;

const TABLE: &[ParamInfo] =
    &[flag("relabel_on_timeout", "whether a timeout gives the flow another path")
        .default_of("rfc2992", "false", "RFC 2992: the hash of the flow alone selects the path")
        .default_of(
            "prr",
            "true",
            "unverified: Wetherall et al., Improving Network Availability with \
            Protective ReRoute, SIGCOMM 2023: each timeout changes the label",
        )];

/// One entropy value per flow, drawn when the flow begins.
#[derive(Clone, Debug)]
pub struct Ecmp {
    random: SplitMix64,
    ev: Ev,
    relabel: bool,
}

impl Balancer for Ecmp {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "ecmp",
        summary: "one path per flow, selected by a hash",
        source: "RFC 2992",
        profiles: &[
            ProfileInfo { name: "rfc2992", doc: "a flow keeps its path" },
            ProfileInfo { name: "prr", doc: "a timeout draws another path (Protective ReRoute)" },
        ],
        parameters: TABLE,
    };

    fn new(settings: &mut Settings) -> Result<Self, SettingError> {
        let relabel = settings.flag("relabel_on_timeout");
        Ok(Self { random: SplitMix64::new(0), ev: Ev::default(), relabel })
    }
}

impl PathPolicy for Ecmp {
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
        if self.relabel && event.kind == PathFeedback::Timeout {
            self.ev = draw(&mut self.random);
        }
    }

    fn sprays(&self) -> bool {
        false
    }
}

impl Ecmp {
    /// Returns `true` if a timeout changes the path.
    #[must_use]
    pub fn relabels(&self) -> bool {
        self.relabel
    }
}

/// Returns a random entropy value of 16 bits.
#[inline]
pub(super) fn draw(random: &mut SplitMix64) -> Ev {
    Ev::new(random.bits() as u16) // the lower bits
}
