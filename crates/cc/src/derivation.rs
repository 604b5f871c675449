//! Parameters that depend on the network: the properties of the network that an algorithm may use,
//! and the rules of its publication that set the parameters.

use alloc::format;
use alloc::string::String;

use apus_units::{Bytes, Rate, Span};

use crate::Settings;

/// Properties of a network that rules use. All except `line_rate`, `packet` and `trims` describe the path with
/// the longest unloaded RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkInfo {
    /// End-to-end RTT of a full data packet and its acknowledgement without any queue: links,
    /// switches, and the time that both hosts spend on the two packets.
    pub base_rtt: Span,
    /// The part of `base_rtt` between the NICs, with the hosts' mean jitter: the fabric delay (Swift
    /// §3.3) without queues.
    pub fabric_rtt: Span,
    /// Largest time by which the hosts' jitter raises the fabric delay above `fabric_rtt`.
    pub fabric_jitter: Span,
    /// Switches on the forward path.
    pub hops: u8,
    /// Rate of the fastest host link.
    pub line_rate: Rate,
    /// Smallest link rate on the longest path.
    pub path_rate: Rate,
    /// Wire bytes of a full data packet.
    pub packet: Bytes,
    /// Whether any port trims packets that do not fit into its queue, instead of dropping them.
    pub trims: bool,
}

impl NetworkInfo {
    /// Returns the bandwidth-delay product in wire bytes: `line_rate` times `base_rtt`.
    #[must_use]
    pub fn bdp(&self) -> Bytes {
        self.line_rate.bytes_in(self.base_rtt)
    }

    /// Returns the bandwidth-delay product in full packets, not rounded.
    #[must_use]
    pub fn bdp_packets(&self) -> f64 {
        self.bdp().get() as f64 / (self.packet.get().max(1)) as f64
    }
}

/// A rule that sets a parameter from the network unless the user sets it.
#[derive(Clone, Copy, Debug)]
pub struct Derivation {
    /// The parameter.
    pub parameter: &'static str,
    /// The profiles in which the rule holds.
    pub profiles: &'static [&'static str],
    /// The rule as a formula in words.
    pub rule: &'static str,
    /// Source of the rule (`HPCC §5.1`), or `deviation:` and the reason.
    pub source: &'static str,
    /// Computes the value, written as a user would write it. The settings hold the user's values,
    /// the values that earlier rules of the table derived, and the defaults.
    pub value: fn(&NetworkInfo, &Settings) -> String,
}

/// The origin of a parameter's value.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// The profile's default.
    Default,
    /// A rule, from the network.
    Derived(&'static Derivation),
    /// The user.
    Set,
}

impl Origin {
    /// Returns `default`, `derived` or `set`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Derived(_) => "derived",
            Self::Set => "set",
        }
    }
}

/// A parameter in force.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: &'static str,
    /// The value, as a user would write it.
    pub value: String,
    /// The origin of the value.
    pub origin: Origin,
}

/// Returns a number of packets, rounded up, as a user would write it.
#[must_use]
pub fn whole(packets: f64) -> String {
    format!("{}", libm::ceil(packets) as u64)
}
