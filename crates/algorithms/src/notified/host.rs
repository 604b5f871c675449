//! The sender half of the study.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;

use apus_units::{Bytes, PacketNumber, Rate, Span, Time};

use super::params::{self, Params, Point, Reaction};
use super::switch::QueueReport;
use crate::bolt::BoltFields;
use crate::swift::Swift;
use apus_cc::{
    AckEvent, Acknowledging, Algorithm, AlgorithmInfo, Allowance, CongestionHeader, Derivation,
    FieldLayout, FlowInfo, LossEvent, Pacing, PacketSizeEvent, ProfileInfo, ReplaySender,
    RttEstimator, SendInfo, Sender, SettingError, Settings, SignalEvent, Snapshot, SwitchInfo,
    TimeoutEvent,
};

/// Number of packets over which the load is observed. An arrival is a whole packet, so the load between two
/// consecutive packets is 0 or 2.
const OBSERVED: u32 = 8;

/// Largest load that counts as a full link: two of the observed packets may arrive early.
const FULL: f64 = 1.25;

/// A sender that reacts to queue lengths reported by switches.
#[derive(Clone, Debug)]
pub struct Notified(Box<State>);

#[derive(Clone, Debug)]
struct State {
    params: Arc<Params>,
    control: Control,
    /// Reports that are not yet due, in order.
    reports: VecDeque<Report>,
    /// Number of the packet after the latest one sent.
    next: PacketNumber,
    /// Switches on the path, according to the latest acknowledgement.
    hops: u8,
    rtt: RttEstimator,
}

/// The queue that one packet met; the sender reacts to it at `at`.
#[derive(Clone, Copy, Debug)]
struct Report {
    at: Time,
    arrived: Time,
    queue: Bytes,
    link_rate: Rate,
    seq: PacketNumber,
    in_flight: u32,
}

#[derive(Clone, Debug)]
enum Control {
    Swift(Swift),
    Ideal(Ideal),
}

/// Computes the load from the growth of the queue between two packets.
#[derive(Clone, Debug)]
struct Ideal {
    cwnd: f64,
    since: Option<(Time, Bytes)>,
    observed: u32,
    /// Packets below this number were sent before the latest cut, with a larger window.
    ignored_before: PacketNumber,
}

impl Algorithm for Notified {
    type Params = Params;
    type Receiver = Acknowledging;
    type Switch = QueueReport;
    const INFO: AlgorithmInfo = AlgorithmInfo {
        name: "notified",
        summary: "reacts to queues that switches report, after a configured delay, to study the effect of this delay",
        source: "Arslan et al., Bolt, NSDI 2023, §2.1.1 and Fig. 10",
        profiles: &[ProfileInfo { name: params::STUDY, doc: "Bolt Fig. 2: Swift's reaction" }],
        parameters: params::TABLE,
    };
    const FIELDS: Option<FieldLayout> = Some(crate::bolt::LAYOUT);
    const DERIVED: &'static [Derivation] = params::DERIVED;

    fn params(settings: &mut Settings) -> Result<Params, SettingError> {
        Params::from_settings(settings)
    }

    fn new(params: Arc<Params>, info: &FlowInfo) -> Self {
        let control = match &params.reaction {
            Reaction::Swift(swift) => Control::Swift(Swift::new(Arc::clone(swift), info)),
            Reaction::Ideal => Control::Ideal(Ideal {
                cwnd: params.initial_cwnd,
                since: None,
                observed: 0,
                ignored_before: PacketNumber::new(0),
            }),
        };
        Self(Box::new(State {
            control,
            reports: VecDeque::new(),
            next: PacketNumber::new(0),
            hops: 0,
            rtt: RttEstimator::default(),
            params,
        }))
    }

    fn switch(_: &Arc<Params>, _: &SwitchInfo) -> QueueReport {
        QueueReport
    }

    fn receiver(_: &Arc<Params>, _: &FlowInfo) -> Acknowledging {
        Acknowledging
    }
}

impl Ideal {
    /// Computes the new window. Between two packets the queue grew by the arrivals that exceeded the capacity
    /// of the link: the load is 1 plus this growth over the capacity. The window divided by the load is the
    /// flow's share of the link. That window empties the queue within an RTT, since nothing is sent until the
    /// packets in flight fit into it. Reports about packets that left before the cut are ignored.
    fn react(&mut self, report: &Report, newest: PacketNumber) {
        if report.seq < self.ignored_before {
            return;
        }
        let Some((at, queue)) = self.since else {
            self.since = Some((report.arrived, report.queue));
            return;
        };
        self.observed += 1;
        if self.observed < OBSERVED {
            return;
        }
        self.observed = 0;
        self.since = Some((report.arrived, report.queue));
        let grown = report.queue.get() as f64 - queue.get() as f64;
        let took = report.link_rate.as_bps() as f64 * report.arrived.since(at).as_secs_f64() / 8.0;
        let load = 1.0 + grown / took;
        if load > FULL {
            let cwnd = self.cwnd / load;
            self.cwnd = if cwnd > 1.0 { cwnd } else { 1.0 };
            self.ignored_before = newest;
            self.since = None;
        }
    }
}

impl State {
    fn react(&mut self, report: &Report) {
        let queueing = report.link_rate.serialization_time(report.queue);
        let rtt = self.params.base_rtt.saturating_add(queueing);
        match &mut self.control {
            Control::Swift(swift) => {
                let mut event = AckEvent::new(report.at, rtt);
                event.hops = self.hops;
                event.acked_seq = report.seq;
                event.next_seq = report.seq;
                event.in_flight = report.in_flight;
                swift.on_ack(&event);
            }
            Control::Ideal(ideal) => ideal.react(report, self.next),
        }
    }
}

impl Sender for Notified {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.0.hops = event.hops;
        self.0.rtt.update(&self.0.params.rto, event.rtt);
    }

    fn on_signal(&mut self, event: &SignalEvent) {
        let state = &mut *self.0;
        let queueing = match state.params.point {
            Point::Arrival => Span::ZERO,
            Point::Departure => event.link_rate.serialization_time(event.queue),
        };
        let at = event.now.saturating_add(queueing.saturating_add(state.params.delay));
        // Reports stay in order: a packet that arrived later also leaves later, and pending reports are kept.
        let at = state.reports.back().map_or(at, |last| at.max(last.at));
        let report = Report {
            at,
            arrived: event.now,
            queue: event.queue,
            link_rate: event.link_rate,
            seq: event.seq,
            in_flight: event.in_flight,
        };
        if at > event.now {
            state.reports.push_back(report);
        } else {
            state.react(&report);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.0.reports.front().map(|report| report.at)
    }

    fn on_timer(&mut self, now: Time) {
        while let Some(report) = self.0.reports.pop_front_if(|report| report.at <= now) {
            self.0.react(&report);
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        if let Control::Swift(swift) = &mut self.0.control {
            swift.on_loss(event);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        match &mut self.0.control {
            Control::Swift(swift) => swift.on_timeout(event),
            Control::Ideal(ideal) => ideal.cwnd = 1.0,
        }
    }

    fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
        self.0.next = PacketNumber::new(info.seq.get() + 1);
        let sent = crate::bolt::stamp(info.now);
        header.fields = BoltFields::new(0, sent).fields();
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        match &mut self.0.control {
            Control::Swift(swift) => swift.on_packet_size(event),
            Control::Ideal(ideal) => ideal.cwnd = event.scaled(ideal.cwnd).max(1.0),
        }
    }

    fn allowance(&self) -> Allowance {
        match &self.0.control {
            Control::Swift(swift) => swift.allowance(),
            Control::Ideal(ideal) => Allowance { window: ideal.cwnd, pacing: Pacing::AckClocked },
        }
    }

    fn rto(&self) -> Span {
        self.0.rtt.rto(&self.0.params.rto, Span::ZERO)
    }

    fn snapshot(&self) -> Snapshot {
        let smoothed_rtt = self.0.rtt.smoothed();
        match &self.0.control {
            Control::Swift(swift) => Snapshot { smoothed_rtt, ..swift.snapshot() },
            Control::Ideal(ideal) => {
                Snapshot { cwnd: ideal.cwnd, smoothed_rtt, ..Snapshot::default() }
            }
        }
    }
}

impl ReplaySender for Notified {}
