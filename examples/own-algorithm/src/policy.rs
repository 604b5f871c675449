//! A path policy, `second-chance`: a flow keeps its entropy value until two packets in a row are marked, trimmed or lost.

use apus_cc::settings::{AT_LEAST_1, ParamInfo, count};
use apus_cc::{
    AlgorithmInfo, Balancer, Ev, PathEvent, PathFeedback, PathPolicy, ProfileInfo, SettingError,
    Settings, Time,
};
use apus_units::random::SplitMix64;

const PARAMETERS: &[ParamInfo] = &[count("patience", AT_LEAST_1, "bad packets in a row")
    .default("2", "deviation: no source; the example's name")];

/// The state of one flow.
#[derive(Clone, Debug)]
pub(crate) struct SecondChance {
    patience: u32,
    random: SplitMix64,
    ev: Ev,
    bad: u32,
}

impl Balancer for SecondChance {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "second-chance",
        summary: "another path after several bad packets in a row",
        source: "none; the example of docs/adding-a-path-policy.md",
        profiles: &[ProfileInfo { name: "example", doc: "the only one" }],
        parameters: PARAMETERS,
    };
    fn new(settings: &mut Settings) -> Result<Self, SettingError> {
        let patience = settings.count("patience");
        Ok(Self { patience, random: SplitMix64::new(0), ev: Ev::default(), bad: 0 })
    }
}

impl PathPolicy for SecondChance {
    fn reseed(&mut self, seed: u64) {
        self.random = SplitMix64::new(seed);
        self.ev = Ev::new(self.random.bits() as u16);
    }
    fn next(&mut self, _: Time, _: f64) -> Ev {
        self.ev
    }
    fn feedback(&mut self, event: &PathEvent) {
        if event.ev != self.ev {
            return; // about an earlier path
        }
        self.bad = match event.kind {
            PathFeedback::Good => 0,
            PathFeedback::ProbeAnswered => return,
            _ => self.bad + 1,
        };
        if self.bad >= self.patience {
            (self.bad, self.ev) = (0, Ev::new(self.random.bits() as u16));
        }
    }
    fn sprays(&self) -> bool {
        false
    }
}
