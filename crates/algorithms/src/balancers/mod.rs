//! Path policies of hosts: `ecmp`, `plb`, `flowlet`, `oblivious`, `bitmap`, `reps` and `mixed`; and of
//! switches: `adaptive`, `round-robin` and `switch-flowlet`.
//!
//! Each policy is a file with its state, its parameters and their sources. A new policy is one file and
//! one line in the table at the end of this file.

mod bitmap;
mod ecmp;
mod flowlet;
mod mixed;
mod oblivious;
mod plb;
mod reps;
mod rounds;
mod switched;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use apus_cc::settings::{Limits, ParamInfo, count};
use apus_cc::{
    AlgorithmInfo, Balancer, BoxedPath, ForeignBalancer, MAX_EVS, NetworkInfo, Parameter,
    PathPolicy, SettingError, Settings, foreign_balancer, forward_path_policy,
};
use apus_units::suggestion;

pub use bitmap::Bitmap;
pub use ecmp::Ecmp;
pub use flowlet::Flowlet;
pub use mixed::Mixed;
pub use oblivious::Oblivious;
pub(crate) use plb::CongestedRounds;
pub use plb::Plb;
pub use reps::Reps;
pub use switched::{Adaptive, RoundRobin, SwitchFlowlet};

/// Limits of the number of entropy values: a header field holds 16 bits.
const EVS_LIMITS: Limits = Limits::new("from 1 to 65536", |n| (1.0..=MAX_EVS as f64).contains(&n));
/// As [`EVS_LIMITS`], for policies that permute the values by an exclusive or.
const POWER_LIMITS: Limits = Limits::new("a power of two from 1 to 65536", |n| {
    (1.0..=MAX_EVS as f64).contains(&n) && (n as u32).is_power_of_two()
});
/// The parameter `evs`, without a default.
const EVS: ParamInfo = count("evs", EVS_LIMITS, "number of entropy values of a flow");
/// The parameter `evs` of policies that need a power of two, without a default.
const EVS_POWER: ParamInfo = count("evs", POWER_LIMITS, "number of entropy values of a flow");

/// A row of the table of policies.
#[derive(Clone, Copy)]
struct Row {
    policy: &'static dyn ForeignBalancer,
    read: fn(&mut Settings) -> Result<BuiltInPath, SettingError>,
}

macro_rules! balancers {
    ($($(#[$doc:meta])* $variant:ident($policy:ty);)+) => {
        /// The path policies by kind, so that a call is resolved by one branch.
        #[derive(Clone, Debug)]
        pub enum BuiltInPath {
            $($(#[$doc])* $variant($policy),)+
            /// A policy of another crate.
            Foreign(BoxedPath),
        }

        static TABLE: &[Row] = &[$(Row {
            policy: foreign_balancer::<$policy>(),
            read: |settings| <$policy as Balancer>::new(settings).map(BuiltInPath::$variant),
        }),+];

        macro_rules! to_policy {
            ($self:ident $name:ident $args:tt) => {
                match $self {
                    $(Self::$variant(policy) => policy.$name $args,)+
                    Self::Foreign(policy) => policy.$name $args,
                }
            };
        }

        impl PathPolicy for BuiltInPath {
            forward_path_policy!(to_policy);
        }
    };
}

balancers! {
    /// One path per flow.
    Ecmp(Ecmp);
    /// Protective load balancing.
    Plb(Plb);
    /// A new path after a gap in the acknowledgements.
    Flowlet(Flowlet);
    /// A different path for every packet, without feedback.
    Oblivious(Oblivious);
    /// Oblivious spraying without recently congested paths.
    Bitmap(Bitmap);
    /// Recycled entropy values.
    Reps(Reps);
    /// Recycled entropy values, otherwise the bitmap.
    Mixed(Mixed);
    /// The port with the least load at each switch.
    Adaptive(Adaptive);
    /// The ports of each switch in turn.
    RoundRobin(RoundRobin);
    /// Another port of each switch after a gap between packets.
    SwitchFlowlet(SwitchFlowlet);
}

/// A path policy with its parameters: the prototype of the state of flows.
#[derive(Clone, Debug)]
pub struct BalancerConfig {
    info: &'static AlgorithmInfo,
    profile: &'static str,
    parameters: Vec<Parameter>,
    policy: BuiltInPath,
}

impl BalancerConfig {
    /// The policy's name, profiles and parameters.
    #[must_use]
    pub fn info(&self) -> &'static AlgorithmInfo {
        self.info
    }

    /// The profile that gave the defaults.
    #[must_use]
    pub fn profile(&self) -> &'static str {
        self.profile
    }

    /// Every parameter in force, with its value and the value's origin.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Returns the state of a flow that has not begun.
    #[must_use]
    pub fn policy(&self) -> &BuiltInPath {
        &self.policy
    }
}

/// Returns the descriptions of the policies of this crate.
pub fn all() -> impl Iterator<Item = &'static AlgorithmInfo> + Clone {
    TABLE.iter().map(|row| row.policy.info())
}

/// A path policy as a text states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words<'t> {
    /// Name of the policy.
    pub name: &'t str,
    /// Its profile, if one is stated.
    pub profile: Option<&'t str>,
    /// Parameters and their values.
    pub settings: Vec<(&'t str, &'t str)>,
}

/// Reads a name with parameters as `key=value` after it, like "reps profile=uet freeze=200us".
///
/// # Errors
/// If a word after the name is not `key=value`.
pub fn parse(text: &str) -> Result<Words<'_>, String> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let (mut profile, mut settings) = (None, Vec::new());
    for word in words {
        match word.split_once('=') {
            Some(("profile", value)) => profile = Some(value),
            Some(setting) => settings.push(setting),
            None => {
                return Err(format!(
                    "has \"{word}\" behind the name; write a parameter as `key=value`"
                ));
            }
        }
    }
    Ok(Words { name, profile, settings })
}

/// Builds a path policy of this crate or of `foreign` ones by name: the defaults of `profile` (its first
/// one if `None`) overlaid with `settings`, pairs of parameter and value. Parameters that depend on the
/// network follow from it by the policy's rules.
///
/// # Errors
/// An unknown policy, profile or parameter, a value of the wrong kind, out of range or in contradiction to
/// another, or a setting that would have no effect.
pub fn build(
    name: &str,
    profile: Option<&str>,
    settings: &[(&str, &str)],
    network: Option<&NetworkInfo>,
    foreign: &[&'static dyn ForeignBalancer],
) -> Result<BalancerConfig, SettingError> {
    let row = TABLE.iter().find(|row| row.policy.info().name == name);
    let outside = foreign.iter().copied().find(|policy| policy.info().name == name);
    let Some(policy) = row.map(|row| row.policy).or(outside) else {
        let names = all().chain(foreign.iter().map(|policy| policy.info()));
        let hint = suggestion(name, names.map(|info| info.name));
        let message: String = format!("unknown balancer `{name}`{hint}");
        return Err(SettingError::of_name(message));
    };
    let mut settings = Settings::read(policy.info(), profile, settings)?;
    if let Some(network) = network {
        settings.derive(policy.derived(), network)?;
    }
    let built = match row {
        Some(row) => (row.read)(&mut settings)?,
        None => BuiltInPath::Foreign(policy.configure(&mut settings)?),
    };
    Ok(BalancerConfig {
        info: policy.info(),
        profile: settings.profile(),
        parameters: settings.parameters(),
        policy: built,
    })
}
