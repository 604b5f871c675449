//! The port of one direction, in virtual time: a buffer, a link, and the switch half of an algorithm.

use apus_cc::{
    ClassView, CongestionHeader, Ecn, FieldLayout, PortView, Signal, SwitchHalf, Verdict,
};
use apus_units::{Bytes, ClassId, Rate, Ring, Span, Time};
use apus_wire::SIGNAL_BYTES;

use super::counters::{Cause, PortCounters};
use super::datagram::Datagram;

/// A signal that the switch half of a port has made.
pub(super) struct Made {
    pub(super) at: Time,
    /// Client and traffic class of the packet to whose source the signal goes.
    pub(super) client: u32,
    pub(super) tos: u8,
    pub(super) bytes: [u8; SIGNAL_BYTES],
}

/// A port with one traffic class. Packets are served one by one, in the order of their arrival.
///
/// The port knows the time only from its callers. It is exact even if the callers are late: each event between two
/// calls happens at its own time.
pub(super) struct Port<W> {
    rate: Rate,
    /// Maximum number of wire bytes in the port.
    limit: u64,
    /// Propagation delay of the link.
    delay: Span,
    half: W,
    layout: Option<FieldLayout>,
    /// Time up to which all events have been handled.
    now: Time,
    waiting: Ring<Datagram>,
    /// The packet in service, and when its last bit leaves.
    served: Option<(Time, Datagram)>,
    /// Packets on the link, with the times at which they reach its end.
    link: Ring<(Time, Datagram)>,
    /// Wire bytes in the port, including the packet in service.
    queued: u64,
    /// Wire bytes that have left.
    left: u64,
    /// Time up to which the integral of the queue is known.
    integrated: Time,
    pub(super) counters: PortCounters,
    pub(super) signals: Vec<Made>,
}

impl<W: SwitchHalf> Port<W> {
    pub(super) fn new(
        (rate, buffer, delay): (Rate, Bytes, Span),
        half: W,
        layout: Option<FieldLayout>,
    ) -> Self {
        Self {
            rate,
            limit: buffer.get(),
            delay,
            half,
            layout,
            now: Time::ZERO,
            waiting: Ring::default(),
            served: None,
            link: Ring::default(),
            queued: 0,
            left: 0,
            integrated: Time::ZERO,
            counters: PortCounters::default(),
            signals: Vec::new(),
        }
    }

    /// Handles the arrival of a datagram. Arrivals are handled in order: a time before that of the port counts as the
    /// time of the port. Returns the datagram if it is dropped.
    pub(super) fn offer(&mut self, now: Time, mut datagram: Datagram) -> Result<(), Datagram> {
        self.advance(now);
        let bytes = Bytes::new(datagram.wire_bytes.into());
        if self.queued + bytes.get() > self.limit {
            self.half.on_refused(bytes);
            self.counters.drop_one(Cause::Buffer);
            return Err(datagram);
        }
        if !self.half.is_plain() {
            let waiting =
                self.queued - self.served.as_ref().map_or(0, |(_, it)| it.wire_bytes.into());
            let mut header = datagram.header(self.layout);
            let before = header;
            let view = view(self.now, self.rate, [self.queued, waiting, self.left]);
            let classes = [ClassView { bytes: view.queue_bytes, weight: 1, priority: 0 }];
            let view = PortView { classes: &classes, ..view };
            let verdict = self.half.on_enqueue(&mut header, bytes, &view);
            if verdict == Verdict::Drop {
                self.counters.drop_one(Cause::SwitchHalf);
                return Err(datagram);
            }
            self.write(&mut datagram, &before, &header);
            self.obey(self.now, verdict, &mut datagram);
        }
        self.integrate(self.now);
        self.queued += bytes.get();
        self.counters.max_queue = self.counters.max_queue.max(Bytes::new(self.queued));
        if self.served.is_none() {
            self.serve(self.now, datagram);
        } else {
            self.waiting.push_back(datagram);
        }
        Ok(())
    }

    /// Handles all events until `now`.
    pub(super) fn advance(&mut self, now: Time) {
        while let Some((departs, datagram)) = self.served.take_if(|(departs, _)| *departs <= now) {
            self.integrate(departs);
            self.queued -= u64::from(datagram.wire_bytes);
            self.left += u64::from(datagram.wire_bytes);
            self.link.push_back((departs + self.delay, datagram));
            if let Some(next) = self.waiting.pop_front() {
                self.serve(departs, next);
            }
        }
        self.now = self.now.max(now);
    }

    /// Returns the time of the next event with an external effect: a datagram reaches the end of the link, or the
    /// switch half may signal.
    pub(super) fn next_event(&self) -> Option<Time> {
        let arrives = self.link.front().map(|(arrives, _)| *arrives);
        let departs = self.served.as_ref().map(|(departs, _)| *departs);
        if self.half.signals() && self.half.acts_on_dequeue() {
            return arrives.into_iter().chain(departs).min();
        }
        arrives.or_else(|| departs.map(|departs| departs + self.delay))
    }

    /// Returns when the next departed datagram reaches the end of the link.
    pub(super) fn next_arrival(&self) -> Option<Time> {
        self.link.front().map(|(arrives, _)| *arrives)
    }

    /// Takes the next datagram from the link.
    pub(super) fn pop(&mut self) -> Option<(Time, Datagram)> {
        self.link.pop_front()
    }

    /// Returns the counters since the last call.
    pub(super) fn take_counters(&mut self, now: Time) -> PortCounters {
        self.advance(now);
        self.integrate(self.now);
        let fresh = PortCounters { max_queue: Bytes::new(self.queued), ..PortCounters::default() };
        std::mem::replace(&mut self.counters, fresh)
    }

    fn integrate(&mut self, now: Time) {
        let span = now.since(self.integrated).as_ps();
        self.counters.byte_time += u128::from(span) * u128::from(self.queued);
        self.integrated = now;
    }

    /// Begins the service of a datagram that is counted as queued.
    fn serve(&mut self, now: Time, mut datagram: Datagram) {
        if self.half.acts_on_dequeue() {
            self.show_leaving(now, &mut datagram);
        }
        let time = self.rate.serialization_time(Bytes::new(datagram.wire_bytes.into()));
        self.served = Some((now + time, datagram));
    }

    fn show_leaving(&mut self, now: Time, datagram: &mut Datagram) {
        let bytes = Bytes::new(datagram.wire_bytes.into());
        let behind = self.queued - bytes.get();
        let mut header = datagram.header(self.layout);
        let mut telemetry = datagram.telemetry();
        let before = (header, telemetry);
        let view = view(now, self.rate, [behind, behind, self.left]);
        let classes = [ClassView { bytes: view.queue_bytes, weight: 1, priority: 0 }];
        let view = PortView { classes: &classes, ..view };
        let own = header.fields.carries_telemetry().then_some(&mut telemetry);
        let verdict = self.half.on_dequeue(&mut header, own, bytes, &view);
        if telemetry != before.1 {
            datagram.write_hop(&before.1, &telemetry);
            self.counters.written += 1;
        }
        self.write(datagram, &before.0, &header);
        if verdict != Verdict::Drop {
            self.obey(now, verdict, datagram);
        }
    }

    fn write(&mut self, datagram: &mut Datagram, old: &CongestionHeader, new: &CongestionHeader) {
        if new != old {
            let written = datagram.write(new, self.layout);
            self.counters.marked += u64::from(new.ecn == Ecn::Congested && old.ecn != new.ecn);
            self.counters.written += u64::from(written);
        }
    }

    fn obey(&mut self, at: Time, verdict: Verdict, datagram: &mut Datagram) {
        if let Verdict::Signal(signal) = verdict {
            self.signal(at, &signal, datagram);
        }
    }

    #[cold]
    fn signal(&mut self, at: Time, signal: &Signal, datagram: &mut Datagram) {
        if let Some(bytes) = datagram.signal(signal) {
            self.counters.signals += 1;
            let (client, tos) = (datagram.client, datagram.tos);
            self.signals.push(Made { at, client, tos, bytes });
        }
    }
}

/// Returns the view of the port for a switch half, except its traffic class. The numbers are the bytes in the port, the
/// waiting bytes and the bytes that have left.
fn view(now: Time, link_rate: Rate, [queued, waiting, left]: [u64; 3]) -> PortView<'static> {
    PortView {
        now,
        link_rate,
        class: ClassId::new(0),
        class_bytes: Bytes::new(queued),
        queue_bytes: Bytes::new(queued),
        class_waiting: Bytes::new(waiting),
        sent: Bytes::new(left),
        classes: &[],
    }
}
