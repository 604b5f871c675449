//! Algorithms that are known only when the program starts: boxed halves behind one type.
//!
//! A set of algorithms has one variant for all foreign algorithms. Each call then costs an indirect
//! call and each half a memory allocation.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt::{self, Debug};
use core::marker::PhantomData;

use apus_units::{Bytes, Span, Time};

use crate::{
    AckEvent, Algorithm, AlgorithmFactory, AlgorithmInfo, Allowance, Backlog, Configured,
    CongestionHeader, CreditEvent, CreditLimit, DataEvent, Departure, Derivation, FieldLayout,
    Fields, FlowInfo, LossEvent, PacketSizeEvent, PortView, Receiver, ReceiverControl,
    ReplaySender, SendInfo, Sender, SenderControl, SettingError, Settings, SignalEvent, Snapshot,
    StateError, StateOverride, SwitchFeedback, SwitchHalf, SwitchInfo, Telemetry, TimeoutEvent,
    Tunable, Verdict,
};

/// An algorithm that is not part of the set that runs it.
pub trait ForeignAlgorithm: Send + Sync {
    /// Name, profiles and parameters.
    fn info(&self) -> &'static AlgorithmInfo;
    /// Rules that set parameters from the network ([`Algorithm::DERIVED`]).
    fn derived(&self) -> &'static [Derivation];
    /// Settings that a search varies ([`Algorithm::TUNED`]).
    fn tuned(&self) -> &'static [Tunable];
    /// Layout of the algorithm's fields on packets, if it has any.
    fn fields(&self) -> Option<FieldLayout>;
    /// Reads the parameters ([`Algorithm::params`]).
    ///
    /// # Errors
    /// If a value is impossible, contradicts another or was set without effect.
    fn configure(&self, settings: &mut Settings) -> Result<Arc<dyn ForeignFactory>, SettingError>;
}

/// A foreign algorithm with its parameters ([`AlgorithmFactory`]).
pub trait ForeignFactory: Debug + Send + Sync {
    /// Returns the sender half of a new flow.
    fn sender(&self, flow: &FlowInfo) -> BoxedSender;
    /// Returns the receiver half of a new flow.
    fn receiver(&self, flow: &FlowInfo) -> BoxedReceiver;
    /// Returns the switch half of one class of a port; `None` if it takes no part.
    fn switch(&self, port: &SwitchInfo) -> Option<BoxedSwitch>;
    /// Layout of the algorithm's fields on packets, if it has any.
    fn fields(&self) -> Option<FieldLayout>;
    /// Returns `true` if gaps between packets must be timed to some nanoseconds.
    fn fine_timers(&self) -> bool;
    /// The limit that ports set to the algorithm's credits, if it is credit-based.
    fn credit_limit(&self) -> Option<CreditLimit>;
    /// Returns `true` if the algorithm reads the level of the receiver's buffer.
    fn reads_receiver_level(&self) -> bool;
}

/// Returns an algorithm as a foreign one.
#[must_use]
pub const fn foreign<A: Algorithm>() -> &'static dyn ForeignAlgorithm {
    const { &Entry::<A>(PhantomData) }
}

struct Entry<A>(PhantomData<fn() -> A>);

impl<A: Algorithm> ForeignAlgorithm for Entry<A> {
    fn info(&self) -> &'static AlgorithmInfo {
        const { &A::INFO }
    }

    fn derived(&self) -> &'static [Derivation] {
        A::DERIVED
    }

    fn tuned(&self) -> &'static [Tunable] {
        A::TUNED
    }

    fn fields(&self) -> Option<FieldLayout> {
        A::FIELDS
    }

    fn configure(&self, settings: &mut Settings) -> Result<Arc<dyn ForeignFactory>, SettingError> {
        Ok(Arc::new(Configured::<A>::new(A::params(settings)?)))
    }
}

impl<A: Algorithm> ForeignFactory for Configured<A> {
    fn sender(&self, flow: &FlowInfo) -> BoxedSender {
        BoxedSender(Box::new(AlgorithmFactory::sender(self, flow)))
    }

    fn receiver(&self, flow: &FlowInfo) -> BoxedReceiver {
        BoxedReceiver(Box::new(Box::new(AlgorithmFactory::receiver(self, flow))))
    }

    fn switch(&self, port: &SwitchInfo) -> Option<BoxedSwitch> {
        Some(BoxedSwitch(Box::new(AlgorithmFactory::switch(self, port)?)))
    }

    fn fields(&self) -> Option<FieldLayout> {
        A::FIELDS
    }

    fn fine_timers(&self) -> bool {
        A::FINE_TIMERS
    }

    fn credit_limit(&self) -> Option<CreditLimit> {
        AlgorithmFactory::credit_limit(self)
    }

    fn reads_receiver_level(&self) -> bool {
        AlgorithmFactory::reads_receiver_level(self)
    }
}

trait DynSender: ReplaySender + Debug + Send + Sync {
    fn boxed(&self) -> Box<dyn DynSender>;
}

impl<T: ReplaySender + Clone + Debug + Send + Sync + 'static> DynSender for T {
    fn boxed(&self) -> Box<dyn DynSender> {
        Box::new(self.clone())
    }
}

trait DynReceiver: Receiver + Debug + Send + Sync {
    fn boxed(&self) -> Box<dyn DynReceiver>;
}

impl<T: Receiver + Clone + Debug + Send + Sync + 'static> DynReceiver for T {
    fn boxed(&self) -> Box<dyn DynReceiver> {
        Box::new(self.clone())
    }
}

/// [`SwitchHalf`] without the parts that a trait object cannot have.
trait DynSwitch: Debug + Send + Sync {
    fn boxed(&self) -> Box<dyn DynSwitch>;
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict;
    fn on_refused(&mut self, bytes: Bytes);
    fn on_dequeue(
        &mut self,
        header: &mut CongestionHeader,
        telemetry: Option<&mut Telemetry>,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict;
    fn feedback(&self) -> SwitchFeedback;
    fn signals(&self) -> bool;
    fn acts_on_dequeue(&self) -> bool;
    fn reseed(&mut self, seed: u64);
}

impl<T: SwitchHalf> DynSwitch for T {
    fn boxed(&self) -> Box<dyn DynSwitch> {
        Box::new(self.clone())
    }

    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        SwitchHalf::on_enqueue(self, header, bytes, view)
    }

    fn on_refused(&mut self, bytes: Bytes) {
        SwitchHalf::on_refused(self, bytes);
    }

    fn on_dequeue(
        &mut self,
        header: &mut CongestionHeader,
        telemetry: Option<&mut Telemetry>,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        SwitchHalf::on_dequeue(self, header, telemetry, bytes, view)
    }

    fn feedback(&self) -> SwitchFeedback {
        SwitchHalf::feedback(self)
    }

    fn signals(&self) -> bool {
        SwitchHalf::signals(self)
    }

    fn acts_on_dequeue(&self) -> bool {
        SwitchHalf::acts_on_dequeue(self)
    }

    fn reseed(&mut self, seed: u64) {
        SwitchHalf::reseed(self, seed);
    }
}

/// The sender half of a foreign algorithm.
pub struct BoxedSender(Box<dyn DynSender>);

/// The receiver half of a foreign algorithm. Boxed twice: a pointer of one word keeps the flows of all
/// algorithms small.
pub struct BoxedReceiver(Box<Box<dyn DynReceiver>>);

/// The switch half of a foreign algorithm.
pub struct BoxedSwitch(Box<dyn DynSwitch>);

macro_rules! boxed {
    ($($name:ident)+) => {
        $(
            impl Clone for $name {
                fn clone(&self) -> Self {
                    Self(self.0.boxed())
                }
            }

            impl Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.fmt(f)
                }
            }
        )+
    };
}

boxed!(BoxedSender BoxedSwitch);

impl Clone for BoxedReceiver {
    fn clone(&self) -> Self {
        Self(Box::new((**self.0).boxed()))
    }
}

impl Debug for BoxedReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Sender for BoxedSender {
    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.0.on_ack(event);
    }

    fn on_loss(&mut self, event: &LossEvent) {
        self.0.on_loss(event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.0.on_timeout(event);
    }

    fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
        self.0.on_transmit(header, info);
    }

    fn allowance(&self) -> Allowance {
        self.0.allowance()
    }

    fn departure(&mut self, now: Time, in_flight: u32) -> Departure {
        self.0.departure(now, in_flight)
    }

    fn on_idle(&mut self, now: Time) {
        self.0.on_idle(now);
    }

    fn rto(&self) -> Span {
        self.0.rto()
    }

    fn on_credit(&mut self, event: &CreditEvent) {
        self.0.on_credit(event);
    }

    fn on_signal(&mut self, event: &SignalEvent) {
        self.0.on_signal(event);
    }

    fn on_notification(&mut self, now: Time) {
        self.0.on_notification(now);
    }

    fn on_packet_size(&mut self, event: &PacketSizeEvent) {
        self.0.on_packet_size(event);
    }

    fn poll_control(&mut self, now: Time, backlog: &Backlog) -> Option<SenderControl> {
        self.0.poll_control(now, backlog)
    }

    fn next_timer(&self) -> Option<Time> {
        self.0.next_timer()
    }

    fn on_timer(&mut self, now: Time) {
        self.0.on_timer(now);
    }

    fn path_label(&self) -> u32 {
        self.0.path_label()
    }

    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }
}

impl ReplaySender for BoxedSender {
    fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
        self.0.set_state(state)
    }

    fn set_latest_rtt(&mut self, rtt: Span) {
        self.0.set_latest_rtt(rtt);
    }

    fn target_delay(&self, hops: u8) -> Option<Span> {
        self.0.target_delay(hops)
    }
}

impl Receiver for BoxedReceiver {
    fn on_data(&mut self, event: &DataEvent) -> bool {
        self.0.on_data(event)
    }

    fn echo(&self) -> Fields {
        self.0.echo()
    }

    fn sends_control(&self) -> bool {
        self.0.sends_control()
    }

    fn on_credit_request(&mut self, now: Time) {
        self.0.on_credit_request(now);
    }

    fn on_credit_stop(&mut self, now: Time) {
        self.0.on_credit_stop(now);
    }

    fn next_control(&self) -> Time {
        self.0.next_control()
    }

    fn poll_control(&mut self, now: Time) -> Option<ReceiverControl> {
        self.0.poll_control(now)
    }
}

impl SwitchHalf for BoxedSwitch {
    fn on_enqueue(
        &mut self,
        header: &mut CongestionHeader,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        self.0.on_enqueue(header, bytes, view)
    }

    fn on_refused(&mut self, bytes: Bytes) {
        self.0.on_refused(bytes);
    }

    fn on_dequeue(
        &mut self,
        header: &mut CongestionHeader,
        telemetry: Option<&mut Telemetry>,
        bytes: Bytes,
        view: &PortView<'_>,
    ) -> Verdict {
        self.0.on_dequeue(header, telemetry, bytes, view)
    }

    fn feedback(&self) -> SwitchFeedback {
        self.0.feedback()
    }

    fn signals(&self) -> bool {
        self.0.signals()
    }

    fn acts_on_dequeue(&self) -> bool {
        self.0.acts_on_dequeue()
    }

    fn reseed(&mut self, seed: u64) {
        self.0.reseed(seed);
    }
}
