//! The set of algorithms: their halves by kind, so that one branch resolves a call.
//!
//! A new algorithm is one folder with a sender half that implements [`Algorithm`], and one line in the
//! table at the end of this file. Algorithms of other crates share the variant `Foreign`.

use alloc::boxed::Box;
use alloc::sync::Arc;

use apus_cc::{
    Algorithm, AlgorithmFactory, BoxedReceiver, BoxedSender, BoxedSwitch, Configured, CreditLimit,
    FieldLayout, FlowInfo, ForeignAlgorithm, GrantPace, Plain, Receiver, ReplaySender, Sender,
    SettingError, Settings, SwitchHalf, SwitchInfo, foreign, forward_receiver,
    forward_replay_sender, forward_sender, forward_switch,
};

use crate::dcqcn::switch::RampMarker;
use crate::dctcp::switch::EcnMarker;
use crate::marking::Marking;
use crate::registry::AlgorithmConfig;

/// Reads the parameters of an algorithm of this crate.
type Read = fn(&mut Settings) -> Result<Params, SettingError>;

/// A row of the table of algorithms.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) algorithm: &'static dyn ForeignAlgorithm,
    /// `None` for an algorithm of another crate.
    pub(crate) read: Option<Read>,
}

macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident($sender:ty);)+) => {
        /// The sender halves by kind.
        #[derive(Clone, Debug)]
        pub enum BuiltInSender {
            $($(#[$doc])* $variant($sender),)+
            /// An algorithm of another crate.
            Foreign(BoxedSender),
        }

        /// The receiver halves by kind.
        #[derive(Clone, Debug)]
        pub enum BuiltInReceiver {
            $($(#[$doc])* $variant(<$sender as Algorithm>::Receiver),)+
            /// An algorithm of another crate.
            Foreign(BoxedReceiver),
        }

        /// The switch halves by kind.
        #[derive(Clone, Debug, Default)]
        pub enum BuiltInSwitch {
            /// A switch without a switch half.
            #[default]
            Plain,
            /// Marks above a threshold, for any algorithm.
            Ecn(EcnMarker),
            /// Marks with a probability that grows with the queue, for any algorithm.
            Ramp(RampMarker),
            /// One of these two markers, combined with the half of an algorithm.
            Marking(Box<Marking>),
            $($(#[$doc])* $variant(<$sender as Algorithm>::Switch),)+
            /// An algorithm of another crate.
            Foreign(BoxedSwitch),
        }

        pub(crate) static TABLE: &[Row] = &[$(Row {
            algorithm: foreign::<$sender>(),
            read: Some(|settings| {
                <$sender as Algorithm>::params(settings).map(Configured::new).map(Params::$variant)
            }),
        }),+];

        /// The parameters of an algorithm, shared by its flows.
        #[derive(Clone, Debug)]
        pub(crate) enum Params {
            $($variant(Configured<$sender>),)+
            Foreign(Arc<dyn apus_cc::ForeignFactory>),
        }

        macro_rules! to_params {
            ($self:ident $name:ident $args:tt) => {
                match $self.params() {
                    $(Params::$variant(params) => params.$name $args,)+
                    Params::Foreign(params) => params.$name $args,
                }
            };
        }

        impl AlgorithmFactory for AlgorithmConfig {
            type Sender = BuiltInSender;
            type Receiver = BuiltInReceiver;
            type Switch = BuiltInSwitch;
            type Path = crate::balancers::BuiltInPath;

            fn name(&self) -> &'static str {
                self.info().name
            }

            fn sender(&self, flow: &FlowInfo) -> BuiltInSender {
                match self.params() {
                    $(Params::$variant(half) => BuiltInSender::$variant(half.sender(flow)),)+
                    Params::Foreign(half) => BuiltInSender::Foreign(half.sender(flow)),
                }
            }

            fn receiver(&self, flow: &FlowInfo) -> BuiltInReceiver {
                match self.params() {
                    $(Params::$variant(half) => BuiltInReceiver::$variant(half.receiver(flow)),)+
                    Params::Foreign(half) => BuiltInReceiver::Foreign(half.receiver(flow)),
                }
            }

            fn switch(&self, port: &SwitchInfo) -> BuiltInSwitch {
                let half = match self.params() {
                    $(Params::$variant(half) => half.switch(port).map(BuiltInSwitch::$variant),)+
                    Params::Foreign(half) => half.switch(port).map(BuiltInSwitch::Foreign),
                };
                half.unwrap_or_default()
            }

            fn beside(marker: BuiltInSwitch, half: BuiltInSwitch) -> BuiltInSwitch {
                BuiltInSwitch::Marking(Box::new(Marking::new(marker, half)))
            }

            fn fields(&self) -> Option<FieldLayout> {
                to_params!(self fields ())
            }

            fn fine_timers(&self) -> bool {
                to_params!(self fine_timers ())
            }

            fn credit_limit(&self) -> Option<CreditLimit> {
                to_params!(self credit_limit ())
            }

            fn grant_pace(&self, flow: &FlowInfo) -> Option<GrantPace> {
                to_params!(self grant_pace (flow))
            }

            fn reads_receiver_level(&self) -> bool {
                to_params!(self reads_receiver_level ())
            }
        }

        macro_rules! to_half {
            ($self:ident $name:ident $args:tt) => {
                match $self {
                    $(Self::$variant(half) => half.$name $args,)+
                    Self::Foreign(half) => half.$name $args,
                }
            };
        }

        impl Sender for BuiltInSender {
            forward_sender!(to_half);
        }

        impl ReplaySender for BuiltInSender {
            forward_replay_sender!(to_half);
        }

        impl Receiver for BuiltInReceiver {
            forward_receiver!(to_half);
        }

        macro_rules! to_switch_half {
            ($self:ident $name:ident $args:tt) => {
                match $self {
                    Self::Plain => Plain.$name $args,
                    Self::Ecn(half) => half.$name $args,
                    Self::Ramp(half) => half.$name $args,
                    Self::Marking(half) => half.$name $args,
                    $(Self::$variant(half) => half.$name $args,)+
                    Self::Foreign(half) => half.$name $args,
                }
            };
        }

        impl SwitchHalf for BuiltInSwitch {
            forward_switch!(to_switch_half);
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
    /// HPCC, with in-network telemetry.
    Hpcc(crate::hpcc::Hpcc);
    /// ExpressPass, with credits.
    ExpressPass(crate::expresspass::ExpressPass);
    /// CUBIC.
    Cubic(crate::cubic::Cubic);
    /// TIMELY, as in its paper or patched.
    Timely(crate::timely::Timely);
    /// DX, with the queueing delay.
    Dx(crate::dx::Dx);
    /// DCQCN, with notifications of marks.
    Dcqcn(crate::dcqcn::Dcqcn);
    /// RCP, with the rates of the ports.
    Rcp(crate::rcp::Rcp);
    /// HULL, with phantom queues.
    Hull(crate::hull::Hull);
    /// Study of the cost of notification delay.
    Notified(crate::notified::Notified);
    /// NSCC of Ultra Ethernet, and MNSCC.
    Nscc(crate::nscc::Nscc);
    /// MSwift and LSwift: Swift for packets on several paths.
    MSwift(crate::mswift::MSwift);
    /// RCCC of Ultra Ethernet, with credits of the receiver.
    Rccc(crate::rccc::Rccc);
    /// A constant window or rate.
    Constant(crate::constant::Constant);
}
