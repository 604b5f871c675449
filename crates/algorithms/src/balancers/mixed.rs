//! Ultra Ethernet's mixed policy: recycled entropy values, otherwise the bitmap.

use alloc::collections::VecDeque;

use apus_cc::{
    AlgorithmInfo, Balancer, Ev, PathEvent, PathFeedback, PathPolicy, ProfileInfo, SettingError,
    Settings,
};
use apus_units::Time;

use super::EVS_POWER;
use super::bitmap::{Bitmap, TABLE};

/// Maximum number of values that wait to be used again. deviation: uet-htsim has no limit. Values beyond the
/// number of packets in a window are stale, and the largest range of packet numbers is 16384.
const MAX_RECYCLED: usize = 16384;

/// Reuses the values of packets that arrived without a mark, the oldest first.
#[derive(Clone, Debug)]
pub struct Mixed {
    recycled: VecDeque<Ev>,
    bitmap: Bitmap,
}

impl Balancer for Mixed {
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "mixed",
        summary: "reuses the entropy values of unmarked packets, or, if there are none, uses those of `bitmap`",
        source: "Ultra Ethernet's reference simulator, uet-htsim 40ccb05, `uec_mp.cpp`",
        profiles: &[ProfileInfo { name: "uet", doc: "as in uet-htsim" }],
        parameters: TABLE,
    };

    fn new(settings: &mut Settings) -> Result<Self, SettingError> {
        let bitmap = Bitmap::of(settings.count(EVS_POWER.name));
        Ok(Self { recycled: VecDeque::new(), bitmap })
    }
}

impl PathPolicy for Mixed {
    fn values(&self) -> u32 {
        self.bitmap.values()
    }

    fn reseed(&mut self, seed: u64) {
        self.recycled.clear();
        self.bitmap.reseed(seed);
    }

    #[inline]
    fn next(&mut self, now: Time, cwnd: f64) -> Ev {
        self.recycled.pop_front().unwrap_or_else(|| self.bitmap.next(now, cwnd))
    }

    #[inline]
    fn feedback(&mut self, event: &PathEvent) {
        if event.kind == PathFeedback::Good {
            if self.recycled.len() == MAX_RECYCLED {
                self.recycled.pop_front();
            }
            self.recycled.push_back(event.ev);
        }
        self.bitmap.feedback(event);
    }

    fn reads_marks(&self) -> bool {
        true
    }

    fn sprays(&self) -> bool {
        true
    }
}
