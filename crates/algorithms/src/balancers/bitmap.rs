//! UEC's bitmap: spraying that skips entropy values that met congestion.

use alloc::boxed::Box;
use alloc::vec;

use apus_cc::settings::ParamInfo;
use apus_cc::{
    AlgorithmInfo, Balancer, Ev, PathEvent, PathFeedback, PathPolicy, ProfileInfo, SettingError,
    Settings,
};
use apus_units::Time;

use super::EVS_POWER;
use super::rounds::Rounds;

pub(super) const TABLE: &[ParamInfo] =
    &[EVS_POWER.default("64", "uet-htsim 40ccb05, `-paths`; Ultra Ethernet: 64 to 256")];

/// Largest penalty: four bits (uet-htsim 40ccb05, `uec_mp.cpp`).
const MAX_PENALTY: u8 = 15;

/// A penalty per entropy value; a value with penalty p is skipped p times.
#[derive(Clone, Debug)]
pub struct Bitmap {
    rounds: Rounds,
    /// Two penalties of four bits per byte.
    penalties: Box<[u8]>,
    evs: u32,
}

impl Balancer for Bitmap {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "bitmap",
        summary: "oblivious spraying that skips recently congested paths",
        source: "Ultra Ethernet's reference simulator, uet-htsim 40ccb05, `uec_mp.cpp`",
        profiles: &[ProfileInfo { name: "uet", doc: "as in uet-htsim" }],
        parameters: TABLE,
    };

    fn new(settings: &mut Settings) -> Result<Self, SettingError> {
        Ok(Self::of(settings.count(EVS_POWER.name)))
    }
}

impl Bitmap {
    /// `evs` is a power of two from 1 to 65536.
    pub(super) fn of(evs: u32) -> Self {
        let penalties = vec![0; evs.div_ceil(2) as usize].into();
        Self { rounds: Rounds::new(evs), penalties, evs }
    }

    /// Returns the penalty of a value, 0 to 15.
    #[must_use]
    pub fn penalty(&self, ev: Ev) -> u8 {
        let index = self.rounds.index(ev);
        self.penalties[index / 2] >> (4 * (index % 2)) & MAX_PENALTY
    }

    fn set_penalty(&mut self, ev: Ev, penalty: u8) {
        let index = self.rounds.index(ev);
        let (byte, shift) = (&mut self.penalties[index / 2], 4 * (index % 2));
        *byte = (*byte & !(MAX_PENALTY << shift)) | penalty << shift;
    }
}

impl PathPolicy for Bitmap {
    fn values(&self) -> u32 {
        self.evs
    }

    fn reseed(&mut self, seed: u64) {
        self.rounds.reseed(seed);
        self.penalties.fill(0);
    }

    #[inline]
    fn next(&mut self, _: Time, _: f64) -> Ev {
        let mut ev = self.rounds.next();
        let penalty = self.penalty(ev);
        if penalty == 0 {
            return ev;
        }
        // Only the first value of a call loses a point, so that values recover over rounds.
        self.set_penalty(ev, penalty - 1);
        for _ in 0..self.evs {
            ev = self.rounds.next();
            if self.penalty(ev) == 0 {
                break;
            }
        }
        ev
    }

    #[inline]
    fn feedback(&mut self, event: &PathEvent) {
        let points = match event.kind {
            PathFeedback::Good | PathFeedback::ProbeAnswered => return,
            PathFeedback::Marked => 1,
            PathFeedback::Trimmed | PathFeedback::TrimmedAtLastHop => 4,
            // deviation: uet-htsim detects losses by timeouts only; a loss that is detected earlier counts the
            // same.
            PathFeedback::Lost | PathFeedback::Timeout => MAX_PENALTY,
        };
        let penalty = (self.penalty(event.ev) + points).min(MAX_PENALTY);
        self.set_penalty(event.ev, penalty);
    }

    fn reads_marks(&self) -> bool {
        true
    }

    fn sprays(&self) -> bool {
        true
    }
}
