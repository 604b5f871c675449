//! Policies of switches: each switch selects the next hop of a flow's packets.

use apus_cc::settings::{Limits, POSITIVE, ParamInfo, choice, count, time};
use apus_cc::{
    AlgorithmInfo, Balancer, Ev, PathEvent, PathPolicy, ProfileInfo, SettingError, Settings,
    SwitchChoice,
};
use apus_units::Time;

use super::ecmp::draw;
use apus_units::random::SplitMix64;

/// Fractions of a port's buffer at which its load reaches the next level (uet-htsim 40ccb05,
/// `quantized_queuesize`: 5, 10 and 20 % of the buffer).
const LEVELS: [f64; 3] = [0.05, 0.1, 0.2];

/// The state of a flow whose packets follow switches. Its acknowledgements, and packets too small for the
/// switches' rule, keep one path.
#[derive(Clone, Debug)]
struct AtSwitches {
    ev: Ev,
    choice: SwitchChoice,
}

macro_rules! switched {
    ($($(#[$doc:meta])* $name:ident: $info:expr, $read:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(AtSwitches);

        impl Balancer for $name {
            const INFO: AlgorithmInfo = $info;

            fn new(settings: &mut Settings) -> Result<Self, SettingError> {
                let read: fn(&mut Settings) -> SwitchChoice = $read;
                Ok(Self(AtSwitches { ev: Ev::default(), choice: read(settings) }))
            }
        }

        impl PathPolicy for $name {
            fn reseed(&mut self, seed: u64) {
                self.0.ev = draw(&mut SplitMix64::new(seed));
            }

            #[inline]
            fn next(&mut self, _: Time, _: f64) -> Ev {
                self.0.ev
            }

            #[inline]
            fn feedback(&mut self, _: &PathEvent) {}

            fn at_switches(&self) -> Option<SwitchChoice> {
                Some(self.0.choice)
            }

            fn sprays(&self) -> bool {
                true
            }
        }
    )+};
}

const ADAPTIVE_TABLE: &[ParamInfo] = &[time(
    "period",
    POSITIVE,
    "minimum time between two updates of the load of a port in a switch",
)
.default("100ns", "uet-htsim 40ccb05, `_update_period`")];

/// Limits of the number of entries of a table.
const PLACES: Limits = Limits::new("a power of two from 1 to 65536", |n| {
    (1.0..=65_536.0).contains(&n) && (n as u32).is_power_of_two()
});

const FLOWLET_TABLE: &[ParamInfo] = &[
    time("gap", POSITIVE, "time without packets after which a pair of hosts may get another port")
        .default("100us", "conweave-ns3: LetFlow and CONGA at 100 Gb/s"),
    choice("next", &["random", "least-loaded"], "choice of the port after a gap: at random, or among the ports with the least load")
        .default("random", "unverified: Vanini et al., Let It Flow, NSDI 2017"),
    count(
        "places",
        PLACES,
        "number of entries in the table of a switch; pairs of hosts with the same hash share an entry",
    )
    .default(
        "4096",
        "deviation: unverified: LetFlow has 64 K entries; 4096 suffice for 4096 pairs, and take less memory",
    ),
];

switched! {
    /// Each switch with a choice takes the port with the least load.
    Adaptive: AlgorithmInfo {
        name: "adaptive",
        summary: "each switch sends each packet to a port with the least load; the load has four levels",
        source: "Ultra Ethernet's reference simulator, uet-htsim 40ccb05, `adaptive_route`",
        profiles: &[ProfileInfo { name: "uet", doc: "as in uet-htsim" }],
        parameters: ADAPTIVE_TABLE,
    }, |settings| SwitchChoice::LeastLoaded { levels: LEVELS, period: settings.time("period") };
    /// Each switch with a choice takes its ports in turn.
    RoundRobin: AlgorithmInfo {
        name: "round-robin",
        summary: "each switch sends packets to its ports in turn",
        source: "Ultra Ethernet's reference simulator, uet-htsim 40ccb05, strategy `rr`",
        profiles: &[ProfileInfo { name: "uet", doc: "as in uet-htsim, without its permutation of the ports in \
            each round" }],
        parameters: &[],
    }, |_| SwitchChoice::InTurn;
    /// Each switch with a choice takes another port after a gap.
    SwitchFlowlet: AlgorithmInfo {
        name: "switch-flowlet",
        summary: "each switch keeps the port of a pair of hosts until the pair has sent nothing for some time",
        source: "unverified: Vanini et al., Let It Flow: Resilient Asymmetric Load Balancing with Flowlet \
            Switching, NSDI 2017",
        profiles: &[ProfileInfo { name: "letflow", doc: "another random port after a gap" }],
        parameters: FLOWLET_TABLE,
    }, |settings| SwitchChoice::Flowlet {
        gap: settings.time("gap"),
        least_loaded: settings.choice("next") == "least-loaded",
        places: settings.count("places"),
    };
}
