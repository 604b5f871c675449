//! Registry of algorithms and path policies by name.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use apus_cc::{
    AlgorithmInfo, Derivation, ForeignAlgorithm, ForeignBalancer, ForeignFactory, NetworkInfo,
    Origin, Parameter, ProfilePackets, SettingError, Settings, Tunable,
};
use apus_units::suggestion;

use crate::set::{Params, Row, TABLE};

/// The algorithms and path policies that a program can run: those of this crate, and those that the program
/// adds.
#[derive(Clone, Copy, Default)]
pub struct Registry {
    foreign: &'static [&'static dyn ForeignAlgorithm],
    balancers: &'static [&'static dyn ForeignBalancer],
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.algorithms().map(|info| info.name)).finish()
    }
}

impl Registry {
    /// The algorithms of this crate.
    pub const BUILT_IN: Self = Self { foreign: &[], balancers: &[] };

    /// The algorithms of this crate and `foreign` ones.
    ///
    /// # Errors
    /// If two algorithms have one name or one identifier of fields, or if a layout of fields is invalid
    /// ([`FieldLayout::is_valid`](apus_cc::FieldLayout::is_valid)).
    pub fn with(foreign: &'static [&'static dyn ForeignAlgorithm]) -> Result<Self, SettingError> {
        let registry = Self { foreign, balancers: &[] };
        for (index, one) in foreign.iter().enumerate() {
            let (name, layout) = (one.info().name, one.fields());
            let before = || registry.rows().take(TABLE.len() + index);
            if before().any(|other| other.algorithm.info().name == name) {
                let message = format!("two algorithms are named `{name}`; choose another name");
                return Err(SettingError::of_name(message));
            }
            let Some(layout) = layout else { continue };
            if !layout.is_valid() {
                let message = format!(
                    "`{name}`: invalid layout of fields {layout:?}; the identifier must be 1 to 125, \
                     and at most {} bytes fit on a packet",
                    apus_cc::MAX_FIELD_BYTES
                );
                return Err(SettingError::of_name(message));
            }
            let same =
                |other: &Row| other.algorithm.fields().is_some_and(|one| one.id == layout.id);
            if let Some(other) = before().find(same) {
                let (other, id) = (other.algorithm.info().name, layout.id);
                let message = format!(
                    "`{name}`: the identifier {id} of its fields is that of `{other}`; choose one from \
                     {} upwards",
                    apus_cc::FIRST_FOREIGN_ID
                );
                return Err(SettingError::of_name(message));
            }
        }
        Ok(registry)
    }

    /// Returns these algorithms and another one, which replaces an earlier foreign one of the same name. A
    /// program that does not know its algorithms when it starts adds them one by one. Each call keeps a list
    /// until the program ends.
    ///
    /// # Errors
    /// As [`Registry::with`].
    pub fn and(self, algorithm: &'static dyn ForeignAlgorithm) -> Result<Self, SettingError> {
        let name = algorithm.info().name;
        let others = self.foreign.iter().copied().filter(|other| other.info().name != name);
        let all: Vec<_> = others.chain([algorithm]).collect();
        let with = Self::with(all.leak())?;
        Ok(Self { balancers: self.balancers, ..with })
    }

    /// These algorithms, and path policies in addition to those of this crate.
    ///
    /// # Errors
    /// If two policies have one name.
    pub fn with_balancers(
        self,
        balancers: &'static [&'static dyn ForeignBalancer],
    ) -> Result<Self, SettingError> {
        let names = || {
            let foreign = balancers.iter().map(|policy| policy.info().name);
            crate::balancers::all().map(|info| info.name).chain(foreign)
        };
        for (index, name) in names().enumerate() {
            if names().take(index).any(|other| other == name) {
                let message = format!("two balancers are named `{name}`; choose another name");
                return Err(SettingError::of_name(message));
            }
        }
        Ok(Self { balancers, ..self })
    }

    /// Returns the path policies that the program adds.
    #[must_use]
    pub fn foreign_balancers(self) -> &'static [&'static dyn ForeignBalancer] {
        self.balancers
    }

    /// Every path policy.
    pub fn balancers(self) -> impl Iterator<Item = &'static AlgorithmInfo> + Clone {
        crate::balancers::all().chain(self.balancers.iter().map(|policy| policy.info()))
    }

    fn rows(self) -> impl Iterator<Item = Row> + Clone {
        let foreign = self.foreign.iter().map(|&algorithm| Row { algorithm, read: None });
        TABLE.iter().copied().chain(foreign)
    }

    fn row(self, name: &str) -> Option<Row> {
        self.rows().find(|row| row.algorithm.info().name == name)
    }

    /// Every algorithm.
    pub fn algorithms(self) -> impl Iterator<Item = &'static AlgorithmInfo> + Clone {
        self.rows().map(|row| row.algorithm.info())
    }

    /// Returns the rules by which an algorithm's parameters follow from the network; none if the
    /// algorithm is unknown.
    #[must_use]
    pub fn derivations(self, name: &str) -> &'static [Derivation] {
        self.row(name).map_or(&[], |row| row.algorithm.derived())
    }

    /// Returns the sizes of packets that belong to a profile (the first one if `None`) of an algorithm.
    /// `None` if it has none, or if the algorithm or the profile is unknown.
    #[must_use]
    pub fn packets(self, name: &str, profile: Option<&str>) -> Option<&'static ProfilePackets> {
        let algorithm = self.row(name)?.algorithm;
        let profile = profile.unwrap_or(algorithm.info().profiles[0].name);
        algorithm.packets().iter().find(|packets| packets.profile == profile)
    }

    /// The settings of an algorithm that a search varies, by profile.
    #[must_use]
    pub fn tunables(self, name: &str) -> &'static [Tunable] {
        self.row(name).map_or(&[], |row| row.algorithm.tuned())
    }

    /// The setting of an algorithm that a search varies in a profile.
    #[must_use]
    pub fn tunable(self, name: &str, profile: &str) -> Option<&'static Tunable> {
        self.tunables(name).iter().find(|tunable| tunable.profiles.contains(&profile))
    }

    /// Builds an algorithm by name: the defaults of `profile` (its first one if `None`) overlaid with
    /// `settings`, pairs of parameter and value (`("base_target", "25us")`).
    ///
    /// # Errors
    /// An unknown algorithm, profile or parameter, a value of the wrong kind, out of range or in
    /// contradiction to another, or a setting that would have no effect.
    pub fn build(
        self,
        name: &str,
        profile: Option<&str>,
        settings: &[(&str, &str)],
    ) -> Result<AlgorithmConfig, SettingError> {
        self.build_for(name, profile, settings, None)
    }

    /// Builds an algorithm for a network, as [`Registry::build`] does: parameters that depend on the
    /// network and that `settings` does not set follow from the algorithm's rules
    /// ([`Registry::derivations`]) instead of the profile's defaults.
    ///
    /// # Errors
    /// See [`Registry::build`].
    pub fn build_for(
        self,
        name: &str,
        profile: Option<&str>,
        settings: &[(&str, &str)],
        network: Option<&NetworkInfo>,
    ) -> Result<AlgorithmConfig, SettingError> {
        let Some(Row { algorithm, read }) = self.row(name) else {
            let hint = suggestion(name, self.algorithms().map(|info| info.name));
            let message = format!("unknown algorithm `{name}`{hint}");
            return Err(SettingError::of_name(message));
        };
        let mut settings = Settings::read(algorithm.info(), profile, settings)?;
        if let Some(network) = network {
            settings.derive(algorithm.derived(), network)?;
        }
        let params = match read {
            Some(read) => read(&mut settings)?,
            None => Params::Foreign(algorithm.configure(&mut settings)?),
        };
        Ok(AlgorithmConfig(Arc::new(Shared {
            params,
            registry: self,
            info: algorithm.info(),
            profile: settings.profile(),
            parameters: settings.parameters(),
            network: network.copied(),
        })))
    }
}

/// Builds an algorithm of this crate by name ([`Registry::build`]).
///
/// # Errors
/// See [`Registry::build`].
pub fn build(
    name: &str,
    profile: Option<&str>,
    settings: &[(&str, &str)],
) -> Result<AlgorithmConfig, SettingError> {
    Registry::BUILT_IN.build(name, profile, settings)
}

/// An algorithm of a registry with its parameters. Cheap to clone.
#[derive(Clone)]
pub struct AlgorithmConfig(Arc<Shared>);

/// Shows the parameters without their origins, since origins do not affect behaviour.
impl fmt::Debug for AlgorithmConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, profile) = (self.info().name, self.profile());
        f.debug_tuple("AlgorithmConfig").field(&name).field(&profile).field(&self.0.params).finish()
    }
}

/// The configuration is one word, because each of a million connections has a reference to it.
struct Shared {
    params: Params,
    registry: Registry,
    info: &'static AlgorithmInfo,
    profile: &'static str,
    parameters: Vec<Parameter>,
    network: Option<NetworkInfo>,
}

impl AlgorithmConfig {
    pub(crate) fn params(&self) -> &Params {
        &self.0.params
    }

    /// The algorithm's name, profiles and parameters.
    #[must_use]
    pub fn info(&self) -> &'static AlgorithmInfo {
        self.0.info
    }

    /// The algorithm with its parameters, if it is a foreign one.
    #[must_use]
    pub fn foreign(&self) -> Option<&dyn ForeignFactory> {
        match &self.0.params {
            Params::Foreign(factory) => Some(&**factory),
            _ => None,
        }
    }

    /// The profile that gave the defaults.
    #[must_use]
    pub fn profile(&self) -> &'static str {
        self.0.profile
    }

    /// Every parameter in force with its value, in a form that [`Registry::build`] reads back.
    #[must_use]
    pub fn effective(&self) -> Vec<(&'static str, String)> {
        self.parameters().iter().map(|one| (one.name, one.value.clone())).collect()
    }

    /// Every parameter in force, with its value and the value's origin.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.0.parameters
    }

    /// The network from which parameters were derived, if any parameter depends on it.
    #[must_use]
    pub fn network(&self) -> Option<&NetworkInfo> {
        self.0.network.as_ref()
    }

    /// Returns this algorithm with `changes`. Other parameters set by the user stay, except those in `dropped`;
    /// derived parameters are derived again.
    ///
    /// # Errors
    /// See [`Registry::build`].
    pub fn changed(
        &self,
        changes: &[(&str, &str)],
        dropped: &[&str],
    ) -> Result<Self, SettingError> {
        let set = self.parameters().iter().filter(|one| matches!(one.origin, Origin::Set));
        let kept = set.map(|one| (one.name, one.value.as_str())).filter(|(name, _)| {
            !dropped.contains(name) && changes.iter().all(|(changed, _)| changed != name)
        });
        let settings: Vec<(&str, &str)> = kept.chain(changes.iter().copied()).collect();
        self.0.registry.build_for(self.info().name, Some(self.profile()), &settings, self.network())
    }
}
