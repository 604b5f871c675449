//! The set of algorithms: their halves by kind, so that a call is resolved by one branch.
//!
//! A new algorithm is one folder with a sender half that implements [`Algorithm`], and one line in the
//! table at the end of this file. Algorithms from outside share the variant `Foreign`.

use alloc::sync::Arc;

use apus_cc::{
    AckEvent, Algorithm, AlgorithmInfo, Allowance, Backlog, BoxedReceiver, BoxedSender,
    BoxedSwitch, CongestionHeader, CreditEvent, CreditLimit, DataEvent, Departure, Derivation,
    FieldLayout, Fields, FlowInfo, ForeignFactory, LossEvent, PacketSizeEvent, PortView, Receiver,
    ReceiverControl, ReplaySender, SendInfo, Sender, SenderControl, SettingError, Settings,
    SignalEvent, Snapshot, StateError, StateOverride, SwitchFeedback, SwitchHalf, SwitchInfo,
    Telemetry, TimeoutEvent, Tunable, Verdict,
};
use apus_units::{Bytes, Span, Time};

use crate::dcqcn::switch::RampMarker;
use crate::dctcp::switch::EcnMarker;

/// A row of the table of algorithms.
pub(crate) struct Row {
    pub(crate) info: &'static AlgorithmInfo,
    pub(crate) derived: &'static [Derivation],
    pub(crate) tuned: &'static [Tunable],
    pub(crate) fields: Option<FieldLayout>,
    /// Reads the algorithm's parameters.
    pub(crate) read: fn(&mut Settings) -> Result<Params, SettingError>,
}

macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident($sender:ty);)+) => {
        /// The sender halves by kind.
        #[derive(Clone, Debug)]
        pub enum BuiltInSender {
            $($(#[$doc])* $variant($sender),)+
            /// An algorithm from outside.
            Foreign(BoxedSender),
        }

        /// The receiver halves by kind.
        #[derive(Clone, Debug)]
        pub enum BuiltInReceiver {
            $($(#[$doc])* $variant(<$sender as Algorithm>::Receiver),)+
            /// An algorithm from outside.
            Foreign(BoxedReceiver),
        }

        /// The switch halves by kind.
        #[derive(Clone, Debug, Default)]
        pub enum BuiltInSwitch {
            /// A switch that takes no part.
            #[default]
            Plain,
            /// Marks above a threshold, for any algorithm.
            Ecn(EcnMarker),
            /// Marks with a probability that grows with the queue, for any algorithm.
            Ramp(RampMarker),
            $($(#[$doc])* $variant(<$sender as Algorithm>::Switch),)+
            /// An algorithm from outside.
            Foreign(BoxedSwitch),
        }

        pub(crate) static TABLE: &[Row] = &[$(Row {
            info: const { &<$sender as Algorithm>::INFO },
            derived: <$sender as Algorithm>::DERIVED,
            tuned: <$sender as Algorithm>::TUNED,
            fields: <$sender as Algorithm>::FIELDS,
            read: |settings| {
                <$sender as Algorithm>::params(settings).map(Arc::new).map(Params::$variant)
            },
        }),+];

        /// The parameters of an algorithm, shared by its flows.
        #[derive(Clone, Debug)]
        pub(crate) enum Params {
            $($variant(Arc<<$sender as Algorithm>::Params>),)+
            Foreign(Arc<dyn ForeignFactory>),
        }

        impl Params {
            pub(crate) fn sender(&self, flow: &FlowInfo) -> BuiltInSender {
                match self {
                    $(Self::$variant(params) => {
                        let params = Arc::clone(params);
                        BuiltInSender::$variant(<$sender as Algorithm>::new(params, flow))
                    })+
                    Self::Foreign(factory) => BuiltInSender::Foreign(factory.sender(flow)),
                }
            }

            pub(crate) fn receiver(&self, flow: &FlowInfo) -> BuiltInReceiver {
                match self {
                    $(Self::$variant(params) => {
                        BuiltInReceiver::$variant(<$sender as Algorithm>::receiver(params, flow))
                    })+
                    Self::Foreign(factory) => BuiltInReceiver::Foreign(factory.receiver(flow)),
                }
            }

            pub(crate) fn switch(&self, port: &SwitchInfo) -> BuiltInSwitch {
                match self {
                    $(Self::$variant(params) => {
                        let half = <$sender as Algorithm>::switch(params, port);
                        if half.is_plain() {
                            BuiltInSwitch::Plain
                        } else {
                            BuiltInSwitch::$variant(half)
                        }
                    })+
                    Self::Foreign(factory) => {
                        factory.switch(port).map_or(BuiltInSwitch::Plain, BuiltInSwitch::Foreign)
                    }
                }
            }

            pub(crate) fn fields(&self) -> Option<FieldLayout> {
                match self {
                    $(Self::$variant(_) => <$sender as Algorithm>::FIELDS,)+
                    Self::Foreign(factory) => factory.fields(),
                }
            }

            pub(crate) fn fine_timers(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <$sender as Algorithm>::FINE_TIMERS,)+
                    Self::Foreign(factory) => factory.fine_timers(),
                }
            }

            pub(crate) fn credit_limit(&self) -> Option<CreditLimit> {
                match self {
                    $(Self::$variant(params) => <$sender as Algorithm>::credit_limit(params),)+
                    Self::Foreign(factory) => factory.credit_limit(),
                }
            }

            pub(crate) fn reads_receiver_level(&self) -> bool {
                match self {
                    $(Self::$variant(params) => {
                        <$sender as Algorithm>::reads_receiver_level(params)
                    })+
                    Self::Foreign(factory) => factory.reads_receiver_level(),
                }
            }
        }

        impl Sender for BuiltInSender {
            #[inline]
            fn on_ack(&mut self, event: &AckEvent<'_>) {
                match self {
                    $(Self::$variant(half) => half.on_ack(event),)+
                    Self::Foreign(half) => half.on_ack(event),
                }
            }

            #[inline]
            fn on_loss(&mut self, event: &LossEvent) {
                match self {
                    $(Self::$variant(half) => half.on_loss(event),)+
                    Self::Foreign(half) => half.on_loss(event),
                }
            }

            #[inline]
            fn on_timeout(&mut self, event: &TimeoutEvent) {
                match self {
                    $(Self::$variant(half) => half.on_timeout(event),)+
                    Self::Foreign(half) => half.on_timeout(event),
                }
            }

            #[inline]
            fn on_transmit(&mut self, header: &mut CongestionHeader, info: &SendInfo) {
                match self {
                    $(Self::$variant(half) => half.on_transmit(header, info),)+
                    Self::Foreign(half) => half.on_transmit(header, info),
                }
            }

            #[inline]
            fn allowance(&self) -> Allowance {
                match self {
                    $(Self::$variant(half) => half.allowance(),)+
                    Self::Foreign(half) => half.allowance(),
                }
            }

            #[inline]
            fn departure(&mut self, now: Time, in_flight: u32) -> Departure {
                match self {
                    $(Self::$variant(half) => half.departure(now, in_flight),)+
                    Self::Foreign(half) => half.departure(now, in_flight),
                }
            }

            #[inline]
            fn on_idle(&mut self, now: Time) {
                match self {
                    $(Self::$variant(half) => half.on_idle(now),)+
                    Self::Foreign(half) => half.on_idle(now),
                }
            }

            #[inline]
            fn rto(&self) -> Span {
                match self {
                    $(Self::$variant(half) => half.rto(),)+
                    Self::Foreign(half) => half.rto(),
                }
            }

            #[inline]
            fn next_timer(&self) -> Option<Time> {
                match self {
                    $(Self::$variant(half) => half.next_timer(),)+
                    Self::Foreign(half) => half.next_timer(),
                }
            }

            #[inline]
            fn on_timer(&mut self, now: Time) {
                match self {
                    $(Self::$variant(half) => half.on_timer(now),)+
                    Self::Foreign(half) => half.on_timer(now),
                }
            }

            #[inline]
            fn on_credit(&mut self, event: &CreditEvent) {
                match self {
                    $(Self::$variant(half) => half.on_credit(event),)+
                    Self::Foreign(half) => half.on_credit(event),
                }
            }

            #[inline]
            fn on_signal(&mut self, event: &SignalEvent) {
                match self {
                    $(Self::$variant(half) => half.on_signal(event),)+
                    Self::Foreign(half) => half.on_signal(event),
                }
            }

            #[inline]
            fn on_notification(&mut self, now: Time) {
                match self {
                    $(Self::$variant(half) => half.on_notification(now),)+
                    Self::Foreign(half) => half.on_notification(now),
                }
            }

            fn on_packet_size(&mut self, event: &PacketSizeEvent) {
                match self {
                    $(Self::$variant(half) => half.on_packet_size(event),)+
                    Self::Foreign(half) => half.on_packet_size(event),
                }
            }

            #[inline]
            fn poll_control(&mut self, now: Time, backlog: &Backlog) -> Option<SenderControl> {
                match self {
                    $(Self::$variant(half) => half.poll_control(now, backlog),)+
                    Self::Foreign(half) => half.poll_control(now, backlog),
                }
            }

            #[inline]
            fn path_label(&self) -> u32 {
                match self {
                    $(Self::$variant(half) => half.path_label(),)+
                    Self::Foreign(half) => half.path_label(),
                }
            }

            fn snapshot(&self) -> Snapshot {
                match self {
                    $(Self::$variant(half) => half.snapshot(),)+
                    Self::Foreign(half) => half.snapshot(),
                }
            }
        }

        impl ReplaySender for BuiltInSender {
            fn set_state(&mut self, state: &StateOverride) -> Result<(), StateError> {
                match self {
                    $(Self::$variant(half) => half.set_state(state),)+
                    Self::Foreign(half) => half.set_state(state),
                }
            }

            fn set_latest_rtt(&mut self, rtt: Span) {
                match self {
                    $(Self::$variant(half) => half.set_latest_rtt(rtt),)+
                    Self::Foreign(half) => half.set_latest_rtt(rtt),
                }
            }

            fn target_delay(&self, hops: u8) -> Option<Span> {
                match self {
                    $(Self::$variant(half) => half.target_delay(hops),)+
                    Self::Foreign(half) => half.target_delay(hops),
                }
            }
        }

        impl Receiver for BuiltInReceiver {
            #[inline]
            fn on_data(&mut self, event: &DataEvent) -> bool {
                match self {
                    $(Self::$variant(half) => half.on_data(event),)+
                    Self::Foreign(half) => half.on_data(event),
                }
            }

            #[inline]
            fn echo(&self) -> Fields {
                match self {
                    $(Self::$variant(half) => half.echo(),)+
                    Self::Foreign(half) => half.echo(),
                }
            }

            fn sends_control(&self) -> bool {
                match self {
                    $(Self::$variant(half) => half.sends_control(),)+
                    Self::Foreign(half) => half.sends_control(),
                }
            }

            fn on_credit_request(&mut self, now: Time) {
                match self {
                    $(Self::$variant(half) => half.on_credit_request(now),)+
                    Self::Foreign(half) => half.on_credit_request(now),
                }
            }

            fn on_credit_stop(&mut self, now: Time) {
                match self {
                    $(Self::$variant(half) => half.on_credit_stop(now),)+
                    Self::Foreign(half) => half.on_credit_stop(now),
                }
            }

            #[inline]
            fn next_control(&self) -> Time {
                match self {
                    $(Self::$variant(half) => half.next_control(),)+
                    Self::Foreign(half) => half.next_control(),
                }
            }

            fn poll_control(&mut self, now: Time) -> Option<ReceiverControl> {
                match self {
                    $(Self::$variant(half) => half.poll_control(now),)+
                    Self::Foreign(half) => half.poll_control(now),
                }
            }
        }

        impl SwitchHalf for BuiltInSwitch {
            #[inline]
            fn on_enqueue(
                &mut self,
                header: &mut CongestionHeader,
                bytes: Bytes,
                view: &PortView<'_>,
            ) -> Verdict {
                match self {
                    Self::Plain => Verdict::Forward,
                    Self::Ecn(half) => half.on_enqueue(header, bytes, view),
                    Self::Ramp(half) => half.on_enqueue(header, bytes, view),
                    $(Self::$variant(half) => half.on_enqueue(header, bytes, view),)+
                    Self::Foreign(half) => half.on_enqueue(header, bytes, view),
                }
            }

            fn on_refused(&mut self, bytes: Bytes) {
                match self {
                    Self::Plain => {}
                    Self::Ecn(half) => half.on_refused(bytes),
                    Self::Ramp(half) => half.on_refused(bytes),
                    $(Self::$variant(half) => half.on_refused(bytes),)+
                    Self::Foreign(half) => half.on_refused(bytes),
                }
            }

            #[inline]
            fn on_dequeue(
                &mut self,
                header: &mut CongestionHeader,
                telemetry: Option<&mut Telemetry>,
                bytes: Bytes,
                view: &PortView<'_>,
            ) -> Verdict {
                match self {
                    Self::Plain => Verdict::Forward,
                    Self::Ecn(half) => half.on_dequeue(header, telemetry, bytes, view),
                    Self::Ramp(half) => half.on_dequeue(header, telemetry, bytes, view),
                    $(Self::$variant(half) => half.on_dequeue(header, telemetry, bytes, view),)+
                    Self::Foreign(half) => half.on_dequeue(header, telemetry, bytes, view),
                }
            }

            #[inline]
            fn is_plain(&self) -> bool {
                matches!(self, Self::Plain)
            }

            fn feedback(&self) -> SwitchFeedback {
                match self {
                    Self::Plain => SwitchFeedback::Nothing,
                    Self::Ecn(half) => half.feedback(),
                    Self::Ramp(half) => half.feedback(),
                    $(Self::$variant(half) => half.feedback(),)+
                    Self::Foreign(half) => half.feedback(),
                }
            }

            fn signals(&self) -> bool {
                match self {
                    Self::Plain => false,
                    Self::Ecn(half) => half.signals(),
                    Self::Ramp(half) => half.signals(),
                    $(Self::$variant(half) => half.signals(),)+
                    Self::Foreign(half) => half.signals(),
                }
            }

            fn acts_on_dequeue(&self) -> bool {
                match self {
                    Self::Plain => false,
                    Self::Ecn(half) => half.acts_on_dequeue(),
                    Self::Ramp(half) => half.acts_on_dequeue(),
                    $(Self::$variant(half) => half.acts_on_dequeue(),)+
                    Self::Foreign(half) => half.acts_on_dequeue(),
                }
            }

            fn reseed(&mut self, seed: u64) {
                match self {
                    Self::Plain => {}
                    Self::Ecn(half) => half.reseed(seed),
                    Self::Ramp(half) => half.reseed(seed),
                    $(Self::$variant(half) => half.reseed(seed),)+
                    Self::Foreign(half) => half.reseed(seed),
                }
            }
        }
    };
}

algorithms! {
    /// Swift, as in the paper or as in Falcon.
    Swift(crate::swift::Swift);
    /// DCTCP, as in RFC 8257 or with GCN's faster response.
    Dctcp(crate::dctcp::Dctcp);
    /// Bolt: SRC, PRU and SM.
    Bolt(crate::bolt::Bolt);
    /// HPCC, by in-network telemetry.
    Hpcc(crate::hpcc::Hpcc);
    /// ExpressPass: credits.
    ExpressPass(crate::expresspass::ExpressPass);
    /// CUBIC.
    Cubic(crate::cubic::Cubic);
    /// TIMELY, as in its paper or patched.
    Timely(crate::timely::Timely);
    /// DX, by queueing delay.
    Dx(crate::dx::Dx);
    /// DCQCN, by notifications of marks.
    Dcqcn(crate::dcqcn::Dcqcn);
    /// RCP: the rate of the ports.
    Rcp(crate::rcp::Rcp);
    /// HULL: phantom queues.
    Hull(crate::hull::Hull);
    /// The cost of notification delay.
    Notified(crate::notified::Notified);
    /// A constant window or rate.
    Constant(crate::constant::Constant);
}
