//! RCCC's sender half: sends while it has credit.

use alloc::boxed::Box;
use alloc::sync::Arc;

use apus_units::{Bytes, Rate, Span, Time};

use super::params::{self, Params};
use super::receiver::RcccReceiver;
use super::{LAYOUT, UNIT, ahead, to_fields};
use crate::nscc::Nscc;
use apus_cc::{
    AckEvent, Algorithm, AlgorithmInfo, Allowance, Backlog, CongestionHeader, Departure,
    Derivation, Ecn, FieldLayout, FlowInfo, GrantPace, LossEvent, Pacing, PacketSizeEvent, Plain,
    ProfileInfo, Regulation, ReplaySender, SendInfo, Sender, SenderControl, SettingError, Settings,
    Snapshot, SwitchInfo, TimeoutEvent, TrimEvent,
};

/// Minimum bytes whose transmission time a turn takes, also without a grant (uet-htsim 40ccb05, `doNextEvent`).
const LEAST_TURN: Bytes = Bytes::new(1024);

/// Values of uet-htsim 40ccb05, `oversubscribed_cc.cpp`; its period is a base RTT.
const REGULATION: Regulation = Regulation {
    period: Span::from_us(12),
    weight: 0.5,
    target: 0.3,
    decrease: 0.5,
    increase: 0.01,
    least: 0.01,
};

/// The sender half of RCCC (uet-htsim 40ccb05, `UecSrc` with `_receiver_based_cc`).
#[derive(Clone, Debug)]
pub struct Rccc(Box<State>);

#[derive(Clone, Debug)]
struct State {
    params: Arc<Params>,
    window: Option<Box<Nscc>>,
    /// Wire bytes of a full packet and of its headers, and its payload bytes.
    packet: u64,
    header: u64,
    payload: u64,
    line_rate: Rate,
    /// Maximum credit in bytes (`_configured_maxwnd`).
    most: i64,
    /// Bytes that may be sent; the last packet may make the credit negative.
    credit: i64,
    /// Units granted (`_pull`).
    granted: u32,
    /// Whether the credit is the first one, which no receiver granted; it is void once the receiver answers.
    is_speculating: bool,
    has_data: bool,
    was_idle: bool,
    request_due: bool,
    requested_at: Option<Time>,
    /// Time at which the last packet left or the last packet of the peer arrived.
    active_at: Time,
}

impl Algorithm for Rccc {
    type Params = Params;
    type Receiver = Box<RcccReceiver>;
    type Switch = Plain;
    const FIELDS: Option<FieldLayout> = Some(LAYOUT);
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "rccc",
        summary: "sends only with credit from the receiver, which grants credit to its flows in turn, slightly below its line rate",
        source: "uet-htsim 40ccb05, after the Ultra Ethernet Specification 1.0 (2025) §3.6.14",
        profiles: &[
            ProfileInfo { name: params::CREDITS, doc: "only credits" },
            ProfileInfo { name: params::BOTH, doc: "credits and the congestion window of NSCC" },
        ],
        parameters: params::TABLE,
    };
    const DERIVED: &'static [Derivation] = params::DERIVED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, flow: &FlowInfo) -> Self {
        let window = params.window.as_ref();
        let mut half = State {
            window: window.map(|window| Box::new(Nscc::new(Arc::clone(window), flow))),
            packet: flow.packet.get().max(1),
            header: flow.packet.get().saturating_sub(flow.payload.get()),
            payload: flow.payload.get().max(1),
            line_rate: flow.line_rate,
            most: 0,
            credit: 0,
            granted: 0,
            is_speculating: true,
            has_data: false,
            was_idle: false,
            request_due: false,
            requested_at: None,
            active_at: Time::ZERO,
            params,
        };
        half.most = half.most_of(flow);
        half.credit = half.most;
        Self(Box::new(half))
    }

    fn receiver(params: &Arc<Params>, flow: &FlowInfo) -> Box<RcccReceiver> {
        Box::new(RcccReceiver::new(params, flow))
    }

    fn switch(_: &Arc<Params>, _: &SwitchInfo) -> Plain {
        Plain
    }

    fn grant_pace(params: &Params, flow: &FlowInfo) -> Option<GrantPace> {
        let rate = flow.line_rate.as_bps() as f64 * params.pace;
        let regulation = Regulation { period: params.network_rtt, ..REGULATION };
        Some(GrantPace {
            rate: Rate::from_bps((rate as u64).max(1)),
            least: LEAST_TURN,
            // deviation: uet-htsim's pacer is never late. Here a late pacer makes up at once for at most the
            // bytes that senders may have in flight.
            most_late: params.network_rtt,
            regulation: params.regulated.then_some(regulation),
        })
    }
}

impl State {
    fn most_of(&self, flow: &FlowInfo) -> i64 {
        i64::try_from(self.params.most(flow)).unwrap_or(i64::MAX)
    }

    /// Records that the receiver knows the flow: the rest of the first credit is void (`stopSpeculating`).
    fn hear(&mut self, now: Time) {
        self.active_at = now;
        if self.is_speculating {
            self.is_speculating = false;
            self.credit = self.credit.min(0);
        }
    }

    fn wants_request(&self) -> bool {
        self.request_due || self.was_idle
    }

    fn may_request_at(&self) -> Time {
        self.requested_at.map_or(Time::ZERO, |at| at.saturating_add(self.params.network_rtt))
    }

    /// Returns the window in packets that applies while there is credit.
    fn limit(&self) -> f64 {
        let most = self.most as f64 / self.packet as f64;
        self.window.as_ref().map_or(most, |window| window.allowance().window)
    }

    fn admits(&self, in_flight: u32) -> bool {
        let window = self.window.as_ref().map(|window| window.allowance());
        self.credit > 0 && window.is_none_or(|window| window.admits(in_flight))
    }

    /// Returns the count up to which the sender requests credit (`computePullTarget`).
    fn target(&self, info: &SendInfo) -> u32 {
        let pending = info.pending.get();
        let new = pending + pending.div_ceil(self.payload) * self.header;
        let all = new.saturating_add(u64::from(info.resends) * self.packet);
        let mut wanted = i64::try_from(all).unwrap_or(i64::MAX);
        let packet = i64::try_from(self.packet).unwrap_or(i64::MAX);
        if let Some(window) = &self.window {
            let cwnd = (window.allowance().window * self.packet as f64) as i64;
            wanted = wanted.min(cwnd.saturating_add(packet));
        }
        wanted = wanted.min(self.most) - self.credit;
        if self.is_speculating && pending > 0 {
            // Short transfers request a packet, whatever credit they have.
            wanted = wanted.max(packet);
        }
        let wanted = wanted.max(0) / i64::from(info.ready_flows.max(1));
        let units = wanted.unsigned_abs().div_ceil(UNIT);
        self.granted.wrapping_add(u32::try_from(units).unwrap_or(i32::MAX as u32))
    }
}

macro_rules! to_state {
    ($self:ident $name:ident $args:tt) => {
        $self.0.$name $args
    };
}

impl Sender for Rccc {
    apus_cc::forward_sender!(to_state);
}

impl Sender for State {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.hear(event.now);
        if let Some(window) = &mut self.window {
            window.on_ack(event);
        }
    }

    fn on_loss(&mut self, _: &LossEvent) {}

    fn on_trim(&mut self, event: &TrimEvent) {
        self.hear(event.now);
        if let Some(window) = &mut self.window {
            // unverified: UE Specification 1.0 §3.6.13.5 (p. 393): the receiver's credits handle its own port.
            if event.last_hop { window.on_trim_at_last_hop(event) } else { window.on_trim(event) }
        }
    }

    /// deviation: uet-htsim retransmits the oldest packet with the credit that it has. Here all packets of the
    /// timeout wait for credit, which a request asks for.
    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.hear(event.now);
        if let Some(window) = &mut self.window {
            window.on_timeout(event);
        }
        self.request_due = true;
    }

    fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
        if info.payload > Bytes::ZERO {
            let bytes = info.payload.get() + self.header;
            self.credit = self.credit.saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
            self.active_at = info.now;
        }
        header.fields = to_fields(self.target(info));
        if self.window.is_some() || self.params.regulated {
            header.ecn = Ecn::Capable;
        }
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.packet = event.packet.get().max(1);
        self.payload = event.payload.get().max(1);
        self.header = self.packet.saturating_sub(self.payload);
        let (payload, packet, line_rate) = (event.payload, event.packet, self.line_rate);
        let flow = FlowInfo { line_rate, payload, packet, ..FlowInfo::default() };
        self.most = self.most_of(&flow);
        if let Some(window) = &mut self.window {
            window.on_packet_size(event);
        }
    }

    /// Without credit the window is one packet, so that the last packet with credit requests an
    /// acknowledgement.
    fn allowance(&self) -> Allowance {
        let window = if self.credit > 0 { self.limit() } else { 1.0 };
        Allowance { window, pacing: Pacing::Own { gap: Span::ZERO } }
    }

    fn departure(&mut self, _: Time, in_flight: u32) -> Departure {
        if self.admits(in_flight) { Departure::Now } else { Departure::Blocked }
    }

    fn on_idle(&mut self, _: Time) {
        self.was_idle = true;
    }

    fn rto(&self) -> Span {
        self.params.rto
    }

    /// `handlePull`.
    fn on_grant(&mut self, now: Time, total: u32) {
        self.hear(now);
        let more = ahead(total, self.granted);
        if more > 0 {
            let bytes = i64::from(more).saturating_mul(UNIT as i64);
            self.credit = self.credit.saturating_add(bytes).min(self.most);
            self.granted = total;
        }
    }

    fn poll_control(&mut self, now: Time, backlog: &Backlog) -> Option<SenderControl> {
        self.has_data = backlog.packets > 0;
        if !self.has_data || self.credit > 0 {
            self.request_due = false;
            self.was_idle &= !self.has_data;
            return None;
        }
        // `sendRTS`: once per RTT. deviation: in uet-htsim a request that is due earlier is not sent; here it
        // waits for its time.
        if !self.wants_request() || now < self.may_request_at() {
            return None;
        }
        (self.request_due, self.was_idle) = (false, false);
        self.requested_at = Some(now);
        Some(SenderControl::CreditRequest)
    }

    /// A sender with data and without credit requests credit after a timeout. deviation: uet-htsim does so only
    /// if a packet was lost, but grants may be lost too.
    fn next_timer(&self) -> Option<Time> {
        let waits = self.has_data && self.credit <= 0;
        waits.then(|| {
            if self.wants_request() {
                return self.may_request_at();
            }
            let since = self.requested_at.map_or(self.active_at, |at| at.max(self.active_at));
            since.saturating_add(self.params.rto)
        })
    }

    fn on_timer(&mut self, now: Time) {
        if self.next_timer().is_some_and(|at| at <= now) && !self.wants_request() {
            self.active_at = now;
            self.request_due = true;
        }
    }

    fn snapshot(&self) -> Snapshot {
        let inner = self.window.as_ref().map(|window| window.snapshot()).unwrap_or_default();
        Snapshot { cwnd: self.limit(), ..inner }
    }
}

impl ReplaySender for Rccc {}
