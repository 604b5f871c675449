//! Bolt's switch half (Bolt Alg. 1, 3 and 4).

use apus_units::{Bytes, Time};

use super::header::BoltFields;
use super::params::Params;
use apus_cc::{
    CongestionHeader, PortView, Signal, SwitchFeedback, SwitchHalf, SwitchInfo, Verdict,
};
use apus_units::random::SplitMix64;

/// The state of one class of an egress port: Bolt keeps it per queue (§4.1, App. B).
#[derive(Clone, Debug)]
pub struct BoltPort {
    /// `CC_THRESH` (Alg. 1 l. 4).
    threshold: Bytes,
    /// Bytes to subtract from the bytes queued in the port when measuring the queue.
    uncounted: Bytes,
    /// Wire bytes of a full packet.
    mtu: f64,
    pru: bool,
    sm: bool,
    sm_counts_all: bool,
    sm_weighted: bool,
    /// A packet loses INC if no token is available.
    clears_inc: bool,
    pru_cap: u32,
    src_probability: f64,
    /// Random numbers for `src_probability`.
    random: SplitMix64,
    /// `pru_token` (Alg. 1), packets.
    pru_token: u32,
    /// `sm_token` (Alg. 3), bytes; negative while packets queue up.
    sm_token: f64,
    /// `last_sm_time` (Alg. 3).
    last_sm_time: Time,
}

impl BoltPort {
    /// Creates a port without tokens.
    #[must_use]
    pub fn new(params: &Params, info: &SwitchInfo) -> Self {
        let mtu = info.packet.get() as f64;
        Self {
            threshold: Bytes::new((params.cc_threshold * mtu) as u64),
            uncounted: Bytes::new((params.uncounted_packets * mtu) as u64),
            mtu,
            pru: params.pru,
            sm: params.sm,
            sm_counts_all: params.sm_counts_all,
            sm_weighted: params.sm_weighted,
            clears_inc: params.sm || !info.nic,
            pru_cap: if params.pru_cap == 0 { u32::MAX } else { params.pru_cap },
            src_probability: params.src_probability,
            random: SplitMix64::new(info.seed),
            pru_token: 0,
            sm_token: 0.0,
            last_sm_time: Time::ZERO,
        }
    }

    /// PRU tokens (Alg. 1), packets.
    #[must_use]
    pub fn pru_token(&self) -> u32 {
        self.pru_token
    }

    /// SM token (Alg. 3), bytes.
    #[must_use]
    pub fn sm_token(&self) -> f64 {
        self.sm_token
    }

    /// Alg. 3, and Alg. 4 where several classes share the port by weight: the supply is the class's
    /// share of the link among the classes of its priority that have packets.
    #[inline]
    fn calculate_supply_token(&mut self, bytes: Bytes, view: &PortView<'_>) {
        // Bits per second times picoseconds, in bytes.
        const SCALE: f64 = 8e12;
        let inter_arrival = view.now.since(self.last_sm_time).as_ps_f64();
        self.last_sm_time = view.now;
        let mut supply = view.link_rate.as_bps() as f64 * inter_arrival / SCALE;
        if view.classes.len() > 1 && self.sm_weighted {
            supply *= share(view);
        }
        let demand = bytes.get() as f64;
        let token = self.sm_token + supply - demand;
        self.sm_token = if token < self.mtu { token } else { self.mtu };
    }

    /// Alg. 1 l. 3-19 for a packet with Bolt's fields.
    #[inline]
    fn decide(&mut self, packet: &mut BoltFields, bytes: Bytes, view: &PortView<'_>) -> Verdict {
        self.calculate_supply_token(bytes, view); // l. 3
        let queue = view.class_waiting.saturating_sub(self.uncounted);
        if queue >= self.threshold {
            // l. 4-10
            packet.clear(BoltFields::INC);
            if packet.has(BoltFields::DEC) || !self.draws_src(packet.has(BoltFields::FAVOURED)) {
                return Verdict::Forward;
            }
            packet.set(BoltFields::DEC);
            return Verdict::Signal(Signal {
                queue,
                link_rate: view.link_rate,
                sent: packet.sent(),
            });
        }
        if packet.has(BoltFields::LAST) {
            // l. 11-12. INC does not change: no line of Algorithm 1 clears it on a packet of a last
            // window.
            if !packet.has(BoltFields::FIRST) && self.pru {
                self.pru_token = self.pru_token.saturating_add(1).min(self.pru_cap);
            }
        } else if packet.has(BoltFields::INC) {
            // l. 13-19
            if self.pru_token > 0 {
                self.pru_token -= 1;
            } else if self.sm && self.sm_token >= self.mtu {
                self.sm_token -= self.mtu;
            } else if self.clears_inc {
                packet.clear(BoltFields::INC);
            }
        }
        Verdict::Forward
    }

    /// Returns `true` if the SRC that is due is sent (App. B.2).
    fn draws_src(&mut self, favoured: bool) -> bool {
        !favoured || self.src_probability >= 1.0 || self.random.uniform() < self.src_probability
    }
}

/// Alg. 4 l. 4-8: `w_i / w_effective`. A class of strictly higher priority has no weight here. This class does
/// not see the demand of that class, but queues because of it.
fn share(view: &PortView<'_>) -> f64 {
    let own = view.class.index();
    let Some(mine) = view.classes.get(own) else { return 1.0 };
    let mut effective = 0;
    for (index, class) in view.classes.iter().enumerate() {
        if class.priority == mine.priority && (index == own || class.bytes > Bytes::ZERO) {
            effective += class.weight;
        }
    }
    f64::from(mine.weight) / f64::from(effective)
}

impl SwitchHalf for BoltPort {
    /// Alg. 1 `BoltIngress`.
    #[inline]
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        let Some(mut packet) = BoltFields::of(&header.fields) else {
            // l. 2. With `sm_counts_all`, bytes of packets without Bolt's fields count as demand too.
            if self.sm_counts_all {
                self.calculate_supply_token(bytes, view);
            }
            return Verdict::Forward;
        };
        let verdict = self.decide(&mut packet, bytes, view);
        header.fields = packet.fields();
        verdict
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchFeedback::Signals
    }

    fn signals(&self) -> bool {
        true
    }
}
