//! Contestants of a comparison: the scenario's run under each algorithm, with the algorithm's parameters.

use crate::registry;
use apus_algorithms::AlgorithmConfig;
use apus_cc::Origin;
use apus_scenario::{MarkingRule, Setup, Under};
use apus_units::suggestion;
use serde_json::{Value, json};

use super::table::Contestant;

/// Values of `--set`: settings of the scenario, and settings of one algorithm of the comparison. The latter begin with
/// the label of the algorithm (`hpcc.base_rtt=13us`).
pub(super) struct Changes<'a> {
    /// Settings of the scenario.
    pub(super) scenario: Vec<String>,
    /// Settings of one algorithm: its label, the parameter and the value.
    own: Vec<(&'a str, &'a str, &'a str)>,
}

impl<'a> Changes<'a> {
    /// Divides the settings into those of the scenario and those of one algorithm.
    pub(super) fn new(set: &'a [String], labels: &[String]) -> Self {
        let mut changes = Self { scenario: Vec::new(), own: Vec::new() };
        for text in set {
            let own = text.split_once('=').and_then(|(key, value)| {
                let (label, parameter) = key.trim().rsplit_once('.')?;
                let known = labels.iter().any(|known| known == label);
                known.then(|| (label, parameter, value.trim().trim_matches('"')))
            });
            match own {
                Some(own) => changes.own.push(own),
                None => changes.scenario.push(text.clone()),
            }
        }
        changes
    }

    fn of(&self, label: &str) -> Vec<(&'a str, &'a str)> {
        let own = self.own.iter().filter(|(of, ..)| *of == label);
        own.map(|(_, parameter, value)| (*parameter, *value)).collect()
    }
}

/// Returns an error if a setting names an algorithm of the scenario that is not compared.
pub(super) fn check_settings(
    setup: &Setup,
    labels: &[String],
    changes: &Changes<'_>,
) -> Result<(), String> {
    let bare = |label: &String| label.split(':').next().unwrap_or_default().to_owned();
    let named: Vec<String> = labels.iter().map(bare).collect();
    let takes_part = |label: &str, name: &str| named.iter().any(|n| n == label || n == name);
    for text in &changes.scenario {
        let key = text.split('=').next().unwrap_or_default().trim();
        let Some(rest) = key.strip_prefix("algorithm.") else { continue };
        let first = rest.split('.').next().unwrap_or_default();
        let of_label = |label: &str| !rest.contains('.') || label == first;
        let parameter = rest.rsplit('.').next().unwrap_or_default();
        let mut meant = setup.algorithms().filter(|(label, _)| of_label(label)).peekable();
        let known = meant.peek().is_some();
        if known && !meant.any(|(label, config)| takes_part(label, config.info().name)) {
            return Err(format!(
                "--set {text}: has no effect, as `--algorithms {}` leaves out the scenario's algorithm; \
                 begin the key with one of those instead, like `{}.{}`",
                labels.join(","),
                labels[0],
                parameter
            ));
        }
        let meant = || setup.algorithms().filter(|(label, _)| of_label(label));
        let is_meant = |label: &&String| {
            let bare = bare(label);
            meant().any(|(known, config)| known == bare || config.info().name == bare)
        };
        let is_own = |label: &String| {
            changes.own.iter().any(|(of, name, _)| of == label && *name == parameter)
        };
        let mut users = labels.iter().filter(is_meant).peekable();
        if let Some(&label) = users.peek()
            && users.all(is_own)
        {
            return Err(format!(
                "--set {text}: has no effect, because `--set {label}.{parameter}=...` sets the same \
                 parameter; remove one of them"
            ));
        }
    }
    Ok(())
}

/// Returns the run of `setup` under each algorithm of `labels`.
pub(super) fn contestants(
    setup: &Setup,
    labels: &[String],
    changes: &Changes<'_>,
    seeds: usize,
) -> Result<Vec<Contestant>, String> {
    let mut all: Vec<Contestant> = Vec::new();
    for label in labels {
        let fail = |why: String| format!("--algorithms {label}: {why}");
        if all.iter().any(|other| other.label == *label) {
            return Err(fail("is there twice; remove one".to_owned()));
        }
        let config = config(setup, label).map_err(fail)?;
        let own = changes.of(label);
        let config = if own.is_empty() {
            config
        } else {
            config.changed(&own, &[]).map_err(|error| format!("--set {label}: {error}"))?
        };
        let Under { setup: run, marking, unmarked } = setup.under(&config).map_err(fail)?;
        let mut notes = Vec::new();
        if unmarked {
            notes.push("switches do not mark".to_owned());
        }
        if let Some(other) = unused_profile(setup, &config) {
            notes.push(other);
        }
        all.push(Contestant {
            label: label.clone(),
            setup: run,
            notes,
            marking,
            summaries: vec![None; seeds],
            same: false,
            search: None,
        });
    }
    Ok(all)
}

/// Returns the algorithm of a label: an algorithm of the scenario by its label, or any algorithm by its name,
/// optionally with a profile after a colon.
fn config(setup: &Setup, label: &str) -> Result<AlgorithmConfig, String> {
    let (name, profile) = match label.split_once(':') {
        Some((name, profile)) => (name, Some(profile)),
        None => (label, None),
    };
    let labels = setup.algorithms().map(|(label, _)| label);
    let mut known: Vec<&str> = registry().algorithms().map(|info| info.name).collect();
    known.extend(labels.filter(|label| registry().algorithms().all(|info| info.name != *label)));
    if !known.contains(&name) {
        let hint = suggestion(name, known.into_iter());
        return Err(format!("unknown algorithm `{name}`{hint}"));
    }
    setup.rival(name, profile)
}

/// Reports parameters of the scenario that belong to another profile of the algorithm and are not used.
fn unused_profile(setup: &Setup, config: &AlgorithmConfig) -> Option<String> {
    let (name, profile) = (config.info().name, config.profile());
    let same: Vec<&AlgorithmConfig> =
        setup.algorithms().map(|(_, own)| own).filter(|own| own.info().name == name).collect();
    if same.iter().any(|own| own.profile() == profile) {
        return None;
    }
    let other = same.first()?;
    let set = other.parameters().iter().any(|one| matches!(one.origin, Origin::Set));
    let other = other.profile();
    set.then(|| format!("the scenario's parameters are those of the profile `{other}`: not used"))
}

/// A parameter that is derived from the network or set by the user, for a table.
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) origin: &'static str,
    pub(super) rule: Option<(&'static str, &'static str)>,
}

/// The setting with the marking threshold.
pub(super) const THRESHOLD: &str = "topology.ecn.threshold";

impl Contestant {
    /// Returns the threshold at which switches mark: the tuned value, or the value of the rule.
    fn marking_threshold(&self, marking: &MarkingRule) -> String {
        let search = self.search.as_ref().filter(|search| search.setting() == Some(THRESHOLD));
        let tuned = search.and_then(|search| search.found());
        tuned.map_or_else(|| marking.threshold.to_string(), str::to_owned)
    }

    /// Returns the differences between this algorithm's run and the scenario.
    pub(super) fn changes(&self) -> Vec<String> {
        let marking = self.marking.iter();
        let marking =
            marking.map(|one| format!("switches mark from {} on", self.marking_threshold(one)));
        marking.chain(self.notes.iter().cloned()).collect()
    }

    /// Returns the algorithm's parameters that differ from the defaults of its profile, and the marking threshold that
    /// the comparison sets.
    pub(super) fn shown(&self) -> Vec<Shown> {
        let tuned =
            self.search.as_ref().and_then(|search| Some((search.setting()?, search.found()?)));
        let is_tuned = |name: &str| tuned.is_some_and(|(setting, _)| setting == name);
        let marking = self.marking.iter().map(|marking| {
            let tuned = is_tuned(THRESHOLD);
            Shown {
                name: THRESHOLD.to_owned(),
                value: self.marking_threshold(marking),
                origin: if tuned { "tuned" } else { "derived" },
                rule: (!tuned).then_some((marking.rule, marking.source)),
            }
        });
        let configs = self.setup.algorithms().map(|(_, config)| config);
        let parameters = configs.flat_map(AlgorithmConfig::parameters).map(|one| Shown {
            name: one.name.to_owned(),
            value: one.value.clone(),
            origin: if is_tuned(one.name) { "tuned" } else { one.origin.word() },
            rule: match one.origin {
                Origin::Derived(rule) => Some((rule.rule, rule.source)),
                Origin::Default | Origin::Set => None,
            },
        });
        marking.chain(parameters.filter(|one| one.origin != "default")).collect()
    }

    /// Returns every effective parameter.
    pub(super) fn parameters_json(&self) -> Value {
        let shown = self.shown();
        let configs = self.setup.algorithms().map(|(_, config)| config);
        let defaults = configs.flat_map(AlgorithmConfig::parameters);
        let defaults = defaults.filter(|one| matches!(one.origin, Origin::Default));
        let all = shown.iter().map(|one| {
            let (rule, source) = one.rule.unzip();
            json!({
                "name": one.name, "value": one.value, "origin": one.origin,
                "rule": rule, "source": source,
            })
        });
        let defaults = defaults
            .map(|one| json!({ "name": one.name, "value": one.value, "origin": "default" }));
        all.chain(defaults).collect()
    }
}
