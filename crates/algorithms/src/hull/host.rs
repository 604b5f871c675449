//! HULL's sender half: DCTCP, and the pacer below it.

use alloc::sync::Arc;

use apus_units::{Span, Time};

use super::pacer::Pacer;
use super::params::{self, Params};
use super::switch::PhantomQueue;
use crate::dctcp::Dctcp;
use apus_cc::{
    AckEvent, Acknowledging, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, Derivation,
    FlowInfo, LossEvent, Pacing, PacketSizeEvent, ProfileInfo, ReplaySender, SendInfo, Sender,
    SettingError, Settings, Snapshot, StateError, StateOverride, SwitchInfo, TimeoutEvent, Tunable,
};

/// The sender half of HULL.
#[derive(Clone, Debug)]
pub struct Hull {
    params: Arc<Params>,
    dctcp: Dctcp,
    pacer: alloc::boxed::Box<Pacer>,
    /// Wire bytes of a full data packet.
    packet: f64,
    /// The newest time stated by an event.
    now: Time,
}

impl Algorithm for Hull {
    type Params = Params;
    type Receiver = Acknowledging;
    type Switch = PhantomQueue;
    const FINE_TIMERS: bool = true;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "hull",
        summary: "DCTCP with marks by phantom queues, which keep a part of each link unused, and with pacing",
        source: "Alizadeh et al., Less is More, NSDI 2012",
        profiles: &[ProfileInfo { name: params::PAPER, doc: "with the paper's constants" }],
        parameters: params::TABLE,
    };
    const DERIVED: &'static [Derivation] = params::DERIVED;
    const TUNED: &'static [Tunable] = params::TUNED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, flow: &FlowInfo) -> Self {
        Self {
            dctcp: Dctcp::new(Arc::clone(&params.dctcp), flow),
            pacer: Pacer::new(flow.line_rate, flow.seed).into(),
            packet: flow.packet.get() as f64,
            now: Time::ZERO,
            params,
        }
    }

    fn switch(params: &Arc<Params>, _: &SwitchInfo) -> PhantomQueue {
        PhantomQueue::new(params.phantom)
    }

    fn receiver(_: &Arc<Params>, _: &FlowInfo) -> Acknowledging {
        Acknowledging
    }
}

impl Sender for Hull {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.now = event.now;
        self.dctcp.on_ack(event);
        if let Some(pacer) = &self.params.pacer
            && event.marked_packets > 0
        {
            self.pacer.on_mark(pacer, event.now);
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        self.now = event.now;
        self.dctcp.on_loss(event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.now = event.now;
        self.dctcp.on_timeout(event);
    }

    fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
        self.now = info.now;
        self.dctcp.on_transmit(header, info);
        if let Some(pacer) = &self.params.pacer {
            // Bytes that the window would admit in addition to this packet, at most the bytes that the flow
            // has.
            let room = self.dctcp.allowance().packets().saturating_sub(info.in_flight + 1);
            let (room, pending) = (f64::from(room) * self.packet, info.pending.get() as f64);
            let backlog = if room < pending { room } else { pending };
            self.pacer.on_transmit(pacer, info.now, self.packet, backlog);
        }
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.dctcp.on_packet_size(event);
        self.packet = event.packet.get() as f64;
    }

    fn allowance(&self) -> Allowance {
        let window = self.dctcp.allowance().window;
        let pacing = self.pacer.rate(self.now).map_or(Pacing::AckClocked, Pacing::Rate);
        Allowance { window, pacing }
    }

    fn rto(&self) -> Span {
        self.dctcp.rto()
    }

    fn snapshot(&self) -> Snapshot {
        self.dctcp.snapshot()
    }
}

impl ReplaySender for Hull {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.dctcp.set_state(state)
    }
}
