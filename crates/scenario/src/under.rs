//! Runs with another algorithm in the same network with the same traffic, for comparisons.

use std::path::PathBuf;

use apus_algorithms::AlgorithmConfig;
use apus_algorithms::dctcp::{MARKING_RULE, MARKING_SOURCE, marking_threshold};
use apus_cc::{NetworkInfo, PathPolicy, SettingError};
use apus_units::Bytes;

use super::algorithm::{NamedAlgorithm, needs_marks};
use super::read::{Options, Scenario};
use super::section::{Setting, list_of};
use super::setup::Setup;
use super::source::Source;
use super::tree::{Entry, Table, Value};
use super::workload::{Repeat, Workload};
use apus_sim::measure::SizeRange;
use apus_sim::switch_halves::gives_marks;

/// Ranges of op sizes in a comparison, unless the scenario has its own: the classes of
/// ExpressPass's figures (10 kB, 100 kB, 1 MB).
const SIZES: [(u64, Option<u64>); 4] =
    [(0, Some(10_000)), (10_000, Some(100_000)), (100_000, Some(1_000_000)), (1_000_000, None)];

/// A marking threshold that a comparison sets.
#[derive(Clone, Copy, Debug)]
pub struct MarkingRule {
    /// The queue length from which switches mark.
    pub threshold: Bytes,
    /// The rule in words.
    pub rule: &'static str,
    /// Source of the rule.
    pub source: &'static str,
}

/// A run under one algorithm.
#[derive(Clone, Debug)]
pub struct Under {
    /// The run.
    pub setup: Setup,
    /// The marking threshold, if the algorithm or a path policy needs one and the scenario has none.
    pub marking: Option<MarkingRule>,
    /// `true` if the switches of the scenario mark and the switches of the run do not.
    pub unmarked: bool,
}

impl Setup {
    /// Returns the properties of the network from which algorithms derive parameters; `None` if no two hosts
    /// can reach each other.
    #[must_use]
    pub fn network_info(&self) -> Option<NetworkInfo> {
        self.topology.network_info(
            self.sizes,
            &self.host,
            self.workloads.iter().any(|load| load.spread.is_some()),
        )
    }

    /// Returns the algorithm `name` for this run. If the scenario has the algorithm in this profile (any, if
    /// `profile` is `None`) or under this label, its parameters are used; otherwise those of the profile, and
    /// those that follow from the network.
    ///
    /// # Errors
    /// An unknown algorithm or profile, or several algorithms of that name.
    pub fn rival(&self, name: &str, profile: Option<&str>) -> Result<AlgorithmConfig, String> {
        let fits = |config: &AlgorithmConfig| profile.is_none_or(|p| p == config.profile());
        let labelled = self.algorithms.iter().find(|named| named.label == name);
        if let Some(named) = labelled.filter(|named| fits(&named.config)) {
            return Ok(named.config.clone());
        }
        let same =
            |named: &&NamedAlgorithm| named.config.info().name == name && fits(&named.config);
        let found: Vec<&NamedAlgorithm> = self.algorithms.iter().filter(same).collect();
        let parameters =
            |named: &NamedAlgorithm| (named.config.profile(), named.config.effective());
        match found[..] {
            [] => {}
            [first, ref others @ ..] => {
                if others.iter().all(|other| parameters(other) == parameters(first)) {
                    return Ok(first.config.clone());
                }
                let labels: Vec<&str> = found.iter().map(|named| named.label.as_str()).collect();
                let labels = labels.join(", ");
                return Err(format!(
                    "the scenario has several with different parameters; choose one by its label ({labels})"
                ));
            }
        }
        let network = self.network_info();
        let built = self.registry.build_for(name, profile, &[], network.as_ref());
        built.map_err(|error| error.message)
    }

    /// Returns `true` if a path policy reads marks.
    fn policies_read_marks(&self) -> bool {
        let policies = self.workloads.iter().filter_map(|workload| workload.spread.as_ref());
        policies.map(|spread| &spread.policy).any(PathPolicy::reads_marks)
    }

    /// Returns this run with `config` for all of its traffic, and with marks if and only if the
    /// algorithm or a path policy needs them. Every workload is measured separately.
    ///
    /// # Errors
    /// The reason why the algorithm cannot run in this scenario.
    pub fn under(&self, config: &AlgorithmConfig) -> Result<Under, String> {
        let mut settings = Table::clone(&self.effective);
        let first = |workload: &&Workload| matches!(workload.repeat, Repeat::First(_));
        let labels: Vec<&str> =
            self.workloads.iter().filter(first).map(|one| &*one.label).collect();
        for (workload, name) in settings.tables_mut("workload").zip(labels) {
            let name = Value::Text(name.to_owned());
            workload.entries.entry("name".to_owned()).or_insert_with(|| Entry::of(name));
            let label = Value::Text(config.info().name.to_owned());
            workload.put("algorithm", label);
        }
        if self.measure.sizes.is_empty() {
            let range = |(from, to): (u64, Option<u64>)| SizeRange {
                from: Bytes::new(from),
                to: to.map(Bytes::new),
            };
            settings.put("measure.sizes", list_of(&SIZES.map(range)));
        }
        let (mut marking, mut unmarked) = (None, false);
        let by_policy = self.policies_read_marks() && !gives_marks(config);
        match (needs_marks(config) || by_policy, self.topology.marks()) {
            (true, false) => {
                let network = self.network_info().ok_or("no two hosts can reach each other")?;
                let threshold = marking_threshold(&network);
                mark_from(&mut settings, Some(threshold));
                marking =
                    Some(MarkingRule { threshold, rule: MARKING_RULE, source: MARKING_SOURCE });
            }
            (false, true) => {
                mark_from(&mut settings, None);
                unmarked = true;
            }
            (true, true) | (false, false) => {}
        }
        let label = config.info().name.to_owned();
        let algorithms = vec![NamedAlgorithm { label, config: config.clone() }];
        let setup = Self { algorithms, ..self.clone() }.read_again(&settings)?;
        Ok(Under { setup, marking, unmarked })
    }

    /// Returns this run with switches that mark from `threshold` in all classes.
    ///
    /// # Errors
    /// The reason why the switches cannot mark.
    pub fn with_marking_threshold(&self, threshold: Bytes) -> Result<Self, String> {
        let mut settings = Table::clone(&self.effective);
        mark_from(&mut settings, Some(threshold));
        self.read_again(&settings)
    }

    /// Returns this run with changed parameters of its only algorithm.
    ///
    /// # Errors
    /// See [`Registry::build_for`](apus_algorithms::Registry::build_for).
    pub fn with_changes(self, changes: &[(&str, &str)]) -> Result<Self, SettingError> {
        let label = self.algorithms[0].label.clone();
        self.with_parameters(&label, changes, &[])
    }

    /// Reads the run with `settings` in place of its own.
    fn read_again(&self, settings: &Table) -> Result<Self, String> {
        let source = Source { name: self.name.clone(), text: self.write_toml(settings, false) };
        let no_testbed = |name: &str| Err(format!("unknown testbed `{name}`"));
        // Files of streamed traces already have absolute names.
        let folder = Some(PathBuf::new());
        let options = Options { registry: self.registry, folder, ..Options::default() };
        let read = Scenario::read(&source, &no_testbed, &options);
        let mut setup = read.map_err(|error| error.to_string())?.runs.remove(0).setup;
        // A text does not state which parameters follow from the network, and how the file of the topology
        // numbers the hosts.
        setup.algorithms.clone_from(&self.algorithms);
        setup.topology.shape = self.topology.shape.clone();
        Ok(setup.recorded(self.recorded))
    }
}

/// Makes switches mark from `threshold` in all classes, or not at all.
fn mark_from(settings: &mut Table, threshold: Option<Bytes>) {
    let Some(Value::Table(topology)) = settings.value_mut("topology") else { return };
    topology.entries.remove("ecn");
    topology.tables_mut("class").for_each(|class| drop(class.entries.remove("ecn")));
    if let Some(threshold) = threshold {
        topology.put("ecn.threshold", threshold.value());
    }
}
