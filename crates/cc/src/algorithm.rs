//! An algorithm as a whole: its description, its parameters and its three halves.

use alloc::sync::Arc;
use core::fmt::Debug;

use crate::{
    AlgorithmInfo, BoxedPath, CreditLimit, Derivation, FieldLayout, FlowInfo, GrantPace,
    PathPolicy, ProfilePackets, Receiver, ReplaySender, Sender, SettingError, Settings, SwitchHalf,
    SwitchInfo, Tunable,
};

/// An algorithm, named by its sender half.
///
/// The associated items describe it to users and to the layers that run it.
pub trait Algorithm: ReplaySender + Clone + Debug + Send + Sync + Sized + 'static {
    /// The parameters, checked and shared by all flows that use them.
    type Params: Debug + Send + Sync + 'static;
    /// The receiver half; [`Acknowledging`](crate::Acknowledging) if the algorithm needs no special
    /// one.
    type Receiver: Receiver + Clone + Debug + Send + Sync + 'static;
    /// The switch half; [`Plain`](crate::Plain) if switches take no part.
    type Switch: SwitchHalf;
    /// Name, profiles and parameters.
    const INFO: AlgorithmInfo;
    /// Rules that set parameters from the network, in the order in which they apply.
    const DERIVED: &'static [Derivation] = &[];
    /// Settings that a search for the best operating point varies, at most one per profile.
    const TUNED: &'static [Tunable] = &[];
    /// Sizes of packets that belong to a profile, at most one per profile.
    const PACKETS: &'static [ProfilePackets] = &[];
    /// Layout of the algorithm's fields on packets, if it has any.
    const FIELDS: Option<FieldLayout> = None;
    /// Whether flows depend on gaps between packets or credits that are as short as the time of one packet on
    /// a fast link. A simulator then times them to a few nanoseconds.
    const FINE_TIMERS: bool = false;

    /// Reads the parameters, and reports settings that have no effect.
    ///
    /// # Errors
    /// If a value is impossible, contradicts another or was set without effect.
    fn params(settings: &mut Settings) -> Result<Self::Params, SettingError>;

    /// Returns the sender half of a new flow.
    fn new(params: Arc<Self::Params>, flow: &FlowInfo) -> Self;

    /// Returns the receiver half of a new flow.
    fn receiver(params: &Arc<Self::Params>, flow: &FlowInfo) -> Self::Receiver;

    /// Returns the switch half of one class of a port.
    fn switch(params: &Arc<Self::Params>, port: &SwitchInfo) -> Self::Switch;

    /// Returns the limit that ports impose on the algorithm's credits, if it is credit-based.
    #[must_use]
    fn credit_limit(_params: &Self::Params) -> Option<CreditLimit> {
        None
    }

    /// Returns the pace at which the receiver halves of a host take turns to grant, if they take turns
    /// ([`Receiver::turn`]).
    #[must_use]
    fn grant_pace(_params: &Self::Params, _flow: &FlowInfo) -> Option<GrantPace> {
        None
    }

    /// Returns `true` if the algorithm reads the level of the receiver's buffer
    /// ([`AckEvent::receiver_level`](crate::AckEvent)).
    #[must_use]
    fn reads_receiver_level(_params: &Self::Params) -> bool {
        false
    }
}

/// An algorithm with its parameters, from which the halves of flows and ports are made.
///
/// Transport, fabric and simulator are generic over this trait, so that every call to a half is
/// resolved when they are compiled. [`Configured`] is one algorithm; a set of algorithms implements
/// the trait with enumerations of their halves.
pub trait AlgorithmFactory: Clone + Debug + Send + Sync + 'static {
    /// Sender half.
    type Sender: Sender + Clone + Debug + Send + Sync + 'static;
    /// Receiver half.
    type Receiver: Receiver + Clone + Debug + Send + Sync + 'static;
    /// Switch half; the default one takes no part.
    type Switch: SwitchHalf + Default;
    /// Path policies that flows can use together with the algorithm.
    type Path: PathPolicy + Clone + Debug + Send + Sync + 'static;

    /// Returns the name of the algorithm ([`AlgorithmInfo::name`]).
    fn name(&self) -> &'static str;
    /// Returns the sender half of a new flow.
    fn sender(&self, flow: &FlowInfo) -> Self::Sender;
    /// Returns the receiver half of a new flow.
    fn receiver(&self, flow: &FlowInfo) -> Self::Receiver;
    /// Returns the switch half of one class of a port.
    fn switch(&self, port: &SwitchInfo) -> Self::Switch;
    /// Returns a half that acts as `half` and also marks packets as `marker` does. A port has the marker for
    /// every algorithm.
    fn beside(marker: Self::Switch, half: Self::Switch) -> Self::Switch;
    /// Returns the layout of the algorithm's fields on packets, if it has any.
    fn fields(&self) -> Option<FieldLayout>;
    /// Returns `true` if gaps between packets must be timed to a few nanoseconds
    /// ([`Algorithm::FINE_TIMERS`]).
    fn fine_timers(&self) -> bool;
    /// Returns the limit that ports impose on the algorithm's credits, if it is credit-based.
    fn credit_limit(&self) -> Option<CreditLimit>;
    /// Returns the pace at which the receiver halves of a host grant, if they take turns.
    fn grant_pace(&self, flow: &FlowInfo) -> Option<GrantPace>;
    /// Returns `true` if the algorithm reads the level of the receiver's buffer.
    fn reads_receiver_level(&self) -> bool;
}

/// An algorithm with its parameters.
#[derive(Debug)]
pub struct Configured<A: Algorithm>(Arc<A::Params>);

impl<A: Algorithm> Configured<A> {
    /// Creates the algorithm with these parameters. Does not compile if [`Algorithm::FIELDS`] is invalid.
    #[must_use]
    pub fn new(params: A::Params) -> Self {
        const {
            assert!(
                match A::FIELDS {
                    Some(layout) => layout.is_valid(),
                    None => true,
                },
                "FIELDS must have an identifier from 1 to 125 and at most MAX_FIELD_BYTES bytes"
            );
        }
        Self(Arc::new(params))
    }
}

impl<A: Algorithm> Clone for Configured<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: Algorithm> AlgorithmFactory for Configured<A> {
    type Sender = A;
    type Receiver = A::Receiver;
    type Switch = Option<A::Switch>;
    type Path = BoxedPath;

    fn name(&self) -> &'static str {
        A::INFO.name
    }

    fn sender(&self, flow: &FlowInfo) -> A {
        A::new(Arc::clone(&self.0), flow)
    }

    fn receiver(&self, flow: &FlowInfo) -> A::Receiver {
        A::receiver(&self.0, flow)
    }

    fn switch(&self, port: &SwitchInfo) -> Option<A::Switch> {
        Some(A::switch(&self.0, port)).filter(|half| !half.is_plain())
    }

    /// Returns `half` alone: with a single algorithm its own half replaces the marker.
    fn beside(_marker: Option<A::Switch>, half: Option<A::Switch>) -> Option<A::Switch> {
        half
    }

    fn fields(&self) -> Option<FieldLayout> {
        A::FIELDS
    }

    fn fine_timers(&self) -> bool {
        A::FINE_TIMERS
    }

    fn credit_limit(&self) -> Option<CreditLimit> {
        A::credit_limit(&self.0)
    }

    fn grant_pace(&self, flow: &FlowInfo) -> Option<GrantPace> {
        A::grant_pace(&self.0, flow)
    }

    fn reads_receiver_level(&self) -> bool {
        A::reads_receiver_level(&self.0)
    }
}
