//! Path policies: which of several equal paths the next packet of a flow takes.
//!
//! A policy complements the algorithm of a flow. The algorithm decides how much may be in flight. The policy
//! gives each packet an entropy value ([`Ev`]), from which the network chooses a path. It learns from
//! acknowledgements, marks, trims, losses and timeouts which values lead to good paths.

use alloc::boxed::Box;
use core::fmt::{self, Debug};
use core::marker::PhantomData;

use apus_units::{Span, Time};

use crate::{AlgorithmInfo, Derivation, SettingError, Settings};

/// Entropy value: the number in a packet's header that switches hash, such as a UDP source port.
///
/// Equal values of one flow mean the same path as long as the network does not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ev(u16);

impl Ev {
    /// Returns the entropy value with this number.
    #[inline]
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the number as an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of entropy values that a header field of 16 bits can hold.
pub const MAX_EVS: u32 = 1 << 16;

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFeedback {
    /// The packet arrived without an ECN mark.
    Good,
    /// The packet arrived with an ECN mark.
    Marked,
    /// A switch cut the packet to its header, before its last hop.
    Trimmed,
    /// The last switch cut the packet: all paths to the receiver share that port.
    TrimmedAtLastHop,
    /// The packet was declared lost without a timeout.
    Lost,
    /// The retransmission timeout of the packet expired.
    Timeout,
    /// A probe on this path was answered.
    ProbeAnswered,
}

/// A report on the path of one packet.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PathEvent {
    /// Time of the report, on the clock of the transport.
    pub now: Time,
    /// The entropy value that the packet carried.
    pub ev: Ev,
    /// The fate of the packet.
    pub kind: PathFeedback,
    /// Packets that the report acknowledges for the first time; the packet itself may not be among them.
    pub acked_packets: u32,
    /// Number of these packets that arrived with an ECN mark.
    pub marked_packets: u32,
    /// End-to-end RTT of the packet; zero unless it was acknowledged.
    pub rtt: Span,
    /// RTT minus the delay in the hosts (Swift §3.3); zero unless the packet was acknowledged.
    pub fabric_delay: Span,
    /// Window of the flow, in packets; infinite if it has a rate alone.
    pub cwnd: f64,
    /// Retransmission timeout of the flow.
    pub rto: Span,
}

impl PathEvent {
    /// Creates a report on one packet. The other fields are 0, the window one packet; set those that the
    /// policy reads.
    #[inline]
    #[must_use]
    pub const fn new(now: Time, ev: Ev, kind: PathFeedback) -> Self {
        Self {
            now,
            ev,
            kind,
            acked_packets: 0,
            marked_packets: 0,
            rtt: Span::ZERO,
            fabric_delay: Span::ZERO,
            cwnd: 1.0,
            rto: Span::ZERO,
        }
    }
}

/// Rule by which switches choose among the next hops of the shortest paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SwitchChoice {
    /// The port with the least load, at random among equals.
    LeastLoaded {
        /// Fractions of the port's buffer at which the load reaches the next level.
        levels: [f64; 3],
        /// Time between two readings of a port's load.
        period: Span,
    },
    /// Each port in turn.
    InTurn,
    /// Packets of a pair of hosts keep their port until no packet has passed for `gap`.
    Flowlet {
        /// Time without packets after which the port may change.
        gap: Span,
        /// Whether the next port is the one with the least load, instead of a random one.
        least_loaded: bool,
        /// Number of entries of a switch's table, a power of two. Pairs with the same hash share an entry.
        places: u32,
    },
}

/// The state of a path policy for one flow.
pub trait PathPolicy {
    /// Sets the seed of the flow's random numbers and resets the state. Called once, before any other method.
    fn reseed(&mut self, seed: u64);
    /// Returns the entropy value of the packet that leaves now; the window is `cwnd` packets.
    fn next(&mut self, now: Time, cwnd: f64) -> Ev;
    /// Processes a report on an earlier packet.
    fn feedback(&mut self, event: &PathEvent);
    /// Called when the flow has nothing in flight and nothing to send.
    #[inline]
    fn on_idle(&mut self, _now: Time) {}
    /// Returns how switches choose the next hop of the flow's data packets; `None` if the entropy value
    /// decides the path.
    fn at_switches(&self) -> Option<SwitchChoice> {
        None
    }
    /// Returns `true` if the policy reads ECN marks: the flow's packets may then be marked with any
    /// algorithm.
    fn reads_marks(&self) -> bool {
        false
    }
    /// Returns `true` if packets of one window may take different paths, and thus overtake each other in
    /// normal operation.
    fn sprays(&self) -> bool;
    /// Returns the number of entropy values that [`PathPolicy::next`] may return: those below it.
    fn values(&self) -> u32 {
        1 << u16::BITS
    }
}

/// A path policy with its description and parameters. Its value is the prototype of the state of flows.
pub trait Balancer: PathPolicy + Clone + Debug + Send + Sync + Sized + 'static {
    /// Name, profiles and parameters.
    const INFO: AlgorithmInfo;
    /// Rules that set parameters from the network, in the order in which they apply.
    const DERIVED: &'static [Derivation] = &[];

    /// Reads the parameters, and reports settings that have no effect.
    ///
    /// # Errors
    /// If a value is impossible, contradicts another or was set without effect.
    fn new(settings: &mut Settings) -> Result<Self, SettingError>;
}

/// Forwards the methods of [`PathPolicy`] as [`forward_sender`](crate::forward_sender) does.
#[macro_export]
macro_rules! forward_path_policy {
    ($to:ident) => {
        $crate::forward_methods! { $to
            fn reseed(&mut self, seed: u64);
            fn next(&mut self, now: $crate::Time, cwnd: f64) -> $crate::Ev;
            fn feedback(&mut self, event: &$crate::PathEvent);
            fn on_idle(&mut self, now: $crate::Time);
            fn at_switches(&self) -> Option<$crate::SwitchChoice>;
            fn reads_marks(&self) -> bool;
            fn sprays(&self) -> bool;
            fn values(&self) -> u32;
        }
    };
}

/// A path policy that is not part of the set that runs it.
pub trait ForeignBalancer: Send + Sync {
    /// Returns name, profiles and parameters.
    fn info(&self) -> &'static AlgorithmInfo;
    /// Returns the rules that set parameters from the network ([`Balancer::DERIVED`]).
    fn derived(&self) -> &'static [Derivation];
    /// Reads the parameters ([`Balancer::new`]).
    ///
    /// # Errors
    /// If a value is impossible, contradicts another or was set without effect.
    fn configure(&self, settings: &mut Settings) -> Result<BoxedPath, SettingError>;
}

/// Returns a path policy as a foreign one.
#[must_use]
pub const fn foreign_balancer<B: Balancer>() -> &'static dyn ForeignBalancer {
    const { &Entry::<B>(PhantomData) }
}

struct Entry<B>(PhantomData<fn() -> B>);

impl<B: Balancer> ForeignBalancer for Entry<B> {
    fn info(&self) -> &'static AlgorithmInfo {
        const { &B::INFO }
    }

    fn derived(&self) -> &'static [Derivation] {
        B::DERIVED
    }

    fn configure(&self, settings: &mut Settings) -> Result<BoxedPath, SettingError> {
        B::new(settings).map(BoxedPath::new)
    }
}

trait DynPath: PathPolicy + Debug + Send + Sync {
    fn boxed(&self) -> Box<dyn DynPath>;
}

impl<T: PathPolicy + Clone + Debug + Send + Sync + 'static> DynPath for T {
    fn boxed(&self) -> Box<dyn DynPath> {
        Box::new(self.clone())
    }
}

/// The state of a foreign path policy. Each call costs an indirect call.
pub struct BoxedPath(Box<dyn DynPath>);

impl BoxedPath {
    /// Boxes a policy.
    #[must_use]
    pub fn new(policy: impl PathPolicy + Clone + Debug + Send + Sync + 'static) -> Self {
        Self(Box::new(policy))
    }
}

impl Clone for BoxedPath {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl Debug for BoxedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! to_boxed {
    ($self:ident $name:ident $args:tt) => {
        $self.0.$name $args
    };
}

impl PathPolicy for BoxedPath {
    forward_path_policy!(to_boxed);
}
