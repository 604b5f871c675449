//! Packet spraying without feedback, in three forms.

use apus_cc::settings::{ParamInfo, choice};
use apus_cc::{
    AlgorithmInfo, Balancer, Ev, PathEvent, PathPolicy, ProfileInfo, SettingError, Settings,
};
use apus_units::Time;
use apus_units::random::SplitMix64;

use super::rounds::Rounds;
use super::{EVS, EVS_POWER};

const RANDOM: &str = "random";
const PERMUTED: &str = "permuted";
const IN_TURN: &str = "round-robin";

const TABLE: &[ParamInfo] = &[
    EVS_POWER.default("64", "uet-htsim 40ccb05, `-paths`"),
    choice(
        "form",
        &[PERMUTED, RANDOM, IN_TURN],
        "\"permuted\": each value once per round, in a new order in each \
        round. \"random\": an independent draw per packet. \"round-robin\": in ascending order",
    )
    .default("permuted", "uet-htsim 40ccb05, `uec_mp.cpp`; \"random\" is OPS of REPS §5"),
];

#[derive(Clone, Debug)]
enum Form {
    Random(SplitMix64),
    Permuted(Rounds),
    InTurn(u32),
}

/// Gives every packet another entropy value.
#[derive(Clone, Debug)]
pub struct Oblivious {
    evs: u32,
    form: Form,
}

impl Balancer for Oblivious {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "oblivious",
        summary: "every packet takes another path, regardless of the load",
        source: "Dixit et al., On the Impact of Packet Spraying in Data Center Networks, INFOCOM 2013",
        profiles: &[ProfileInfo { name: "uet", doc: "as in uet-htsim" }],
        parameters: TABLE,
    };

    fn new(settings: &mut Settings) -> Result<Self, SettingError> {
        let evs = settings.count(EVS.name);
        let form = match settings.choice("form") {
            RANDOM => Form::Random(SplitMix64::new(0)),
            PERMUTED => Form::Permuted(Rounds::new(evs)),
            _ => Form::InTurn(0),
        };
        Ok(Self { evs, form })
    }
}

impl PathPolicy for Oblivious {
    fn values(&self) -> u32 {
        self.evs
    }

    fn reseed(&mut self, seed: u64) {
        match &mut self.form {
            Form::Random(random) => *random = SplitMix64::new(seed),
            Form::Permuted(rounds) => rounds.reseed(seed),
            Form::InTurn(next) => *next = SplitMix64::new(seed).below(u64::from(self.evs)) as u32,
        }
    }

    #[inline]
    fn next(&mut self, _: Time, _: f64) -> Ev {
        match &mut self.form {
            Form::Random(random) => Ev::new(random.below(u64::from(self.evs)) as u16),
            Form::Permuted(rounds) => rounds.next(),
            Form::InTurn(next) => {
                let ev = Ev::new(*next as u16); // below `evs`
                *next = (*next + 1) % self.evs;
                ev
            }
        }
    }

    #[inline]
    fn feedback(&mut self, _: &PathEvent) {}

    fn sprays(&self) -> bool {
        true
    }
}
