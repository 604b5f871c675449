//! Algorithms that are known only when the program starts: boxed halves behind one type.
//!
//! A set of algorithms has one variant for all foreign algorithms. Each call then costs an indirect
//! call and each half a memory allocation.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::fmt::{self, Debug};
use core::marker::PhantomData;

use apus_units::Bytes;

use crate::{
    Algorithm, AlgorithmFactory, AlgorithmInfo, Configured, CongestionHeader, CreditLimit,
    Derivation, FieldLayout, FlowInfo, GrantPace, PortView, ProfilePackets, Receiver, ReplaySender,
    Sender, SettingError, Settings, SwitchFeedback, SwitchHalf, SwitchInfo, Telemetry, Tunable,
    Verdict,
};

/// An algorithm that is not part of the set that runs it.
pub trait ForeignAlgorithm: Send + Sync {
    /// Name, profiles and parameters.
    fn info(&self) -> &'static AlgorithmInfo;
    /// Rules that set parameters from the network ([`Algorithm::DERIVED`]).
    fn derived(&self) -> &'static [Derivation];
    /// Settings that a search varies ([`Algorithm::TUNED`]).
    fn tuned(&self) -> &'static [Tunable];
    /// Sizes of packets that belong to a profile ([`Algorithm::PACKETS`]).
    fn packets(&self) -> &'static [ProfilePackets];
    /// Layout of the algorithm's fields on packets, if it has any.
    fn fields(&self) -> Option<FieldLayout>;
    /// Reads the parameters ([`Algorithm::params`]).
    ///
    /// # Errors
    /// If a value is impossible, contradicts another or was set without effect.
    fn configure(&self, settings: &mut Settings) -> Result<Arc<dyn ForeignFactory>, SettingError>;
}

/// A foreign algorithm with its parameters ([`AlgorithmFactory`]).
pub trait ForeignFactory: Any + Debug + Send + Sync {
    /// Returns the sender half of a new flow.
    fn sender(&self, flow: &FlowInfo) -> BoxedSender;
    /// Returns the receiver half of a new flow.
    fn receiver(&self, flow: &FlowInfo) -> BoxedReceiver;
    /// Returns the switch half of one class of a port; `None` if it takes no part.
    fn switch(&self, port: &SwitchInfo) -> Option<BoxedSwitch>;
    /// Layout of the algorithm's fields on packets, if it has any.
    fn fields(&self) -> Option<FieldLayout>;
    /// Returns `true` if gaps between packets must be timed to a few nanoseconds.
    fn fine_timers(&self) -> bool;
    /// Returns the limit that ports impose on the algorithm's credits, if it is credit-based.
    fn credit_limit(&self) -> Option<CreditLimit>;
    /// Returns the pace at which the receiver halves of a host grant, if they take turns.
    fn grant_pace(&self, flow: &FlowInfo) -> Option<GrantPace>;
    /// Returns `true` if the algorithm reads the level of the receiver's buffer.
    fn reads_receiver_level(&self) -> bool;
    /// Returns a text that distinguishes implementations with the same name and parameters in stored results,
    /// such as a hash of the code. `None` if the program itself is the implementation.
    fn implementation(&self) -> Option<String> {
        None
    }
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

    fn packets(&self) -> &'static [ProfilePackets] {
        A::PACKETS
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
        BoxedSender::new(AlgorithmFactory::sender(self, flow))
    }

    fn receiver(&self, flow: &FlowInfo) -> BoxedReceiver {
        BoxedReceiver::new(AlgorithmFactory::receiver(self, flow))
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

    fn grant_pace(&self, flow: &FlowInfo) -> Option<GrantPace> {
        AlgorithmFactory::grant_pace(self, flow)
    }

    fn reads_receiver_level(&self) -> bool {
        AlgorithmFactory::reads_receiver_level(self)
    }
}

/// A half that can be cloned behind a pointer.
macro_rules! dynamic {
    ($($name:ident: $half:ident;)+) => {
        $(
            trait $name: $half + Debug + Send + Sync {
                fn boxed(&self) -> Box<dyn $name>;
            }

            impl<T: $half + Clone + Debug + Send + Sync + 'static> $name for T {
                fn boxed(&self) -> Box<dyn $name> {
                    Box::new(self.clone())
                }
            }
        )+
    };
}

dynamic! {
    DynSender: ReplaySender;
    DynReceiver: Receiver;
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
    fn is_plain(&self) -> bool;
    fn feedback(&self) -> SwitchFeedback;
    fn signals(&self) -> bool;
    fn acts_on_dequeue(&self) -> bool;
    fn on_capacity(&mut self, fraction: f64);
    fn reseed(&mut self, seed: u64);
}

macro_rules! to_switch_half {
    ($self:ident $name:ident ($($argument:ident),*)) => {
        SwitchHalf::$name($self, $($argument),*)
    };
}

impl<T: SwitchHalf> DynSwitch for T {
    fn boxed(&self) -> Box<dyn DynSwitch> {
        Box::new(self.clone())
    }

    crate::forward_switch!(to_switch_half);
}

/// The sender half of a foreign algorithm.
pub struct BoxedSender(Box<dyn DynSender>);

/// The receiver half of a foreign algorithm. Boxed twice: a pointer of one word keeps the flows of all
/// algorithms small.
pub struct BoxedReceiver(Box<Box<dyn DynReceiver>>);

impl BoxedSender {
    /// Boxes a sender half.
    #[must_use]
    pub fn new(half: impl ReplaySender + Clone + Debug + Send + Sync + 'static) -> Self {
        Self(Box::new(half))
    }
}

impl BoxedReceiver {
    /// Boxes a receiver half.
    #[must_use]
    pub fn new(half: impl Receiver + Clone + Debug + Send + Sync + 'static) -> Self {
        Self(Box::new(Box::new(half)))
    }
}

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

macro_rules! to_boxed {
    ($self:ident $name:ident $args:tt) => {
        $self.0.$name $args
    };
}

impl Sender for BoxedSender {
    crate::forward_sender!(to_boxed);
}

impl ReplaySender for BoxedSender {
    crate::forward_replay_sender!(to_boxed);
}

impl Receiver for BoxedReceiver {
    crate::forward_receiver!(to_boxed);
}

impl SwitchHalf for BoxedSwitch {
    crate::forward_switch!(to_boxed);
}
