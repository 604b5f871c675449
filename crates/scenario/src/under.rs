//! Equal network and traffic with another algorithm, for comparisons.

use apus_algorithms::AlgorithmConfig;
use apus_algorithms::dctcp::switch::EcnMarker;
use apus_algorithms::dctcp::{MARKING_RULE, MARKING_SOURCE, marking_threshold};
use apus_cc::{NetworkInfo, SettingError};
use apus_units::Bytes;

use super::algorithm::{NamedAlgorithm, needs_marks};
use super::ecn::Marking;
use super::read::{Options, Scenario};
use super::setup::Setup;
use super::source::Source;
use apus_sim::measure::{NamedWorkload, SizeRange};

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
    /// The marking threshold, if the algorithm needs one and the scenario has none.
    pub marking: Option<MarkingRule>,
    /// `true` if the switches of the scenario mark and the switches of the run do not.
    pub unmarked: bool,
}

impl Setup {
    /// The facts of the network from which algorithms derive parameters; `None` if no two hosts can
    /// reach each other.
    #[must_use]
    pub fn network_info(&self) -> Option<NetworkInfo> {
        self.topology.network_info(self.sizes, &self.host.model)
    }

    /// Returns the algorithm `name` for this run. If the scenario has the algorithm in this profile
    /// (any, if `profile` is `None`) or under this label, its parameters are used, otherwise those
    /// of the profile and those that follow from the network.
    ///
    /// # Errors
    /// An unknown algorithm or profile, or several of that name.
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

    /// Returns this run with `config` for all of its traffic, and with marks if and only if the
    /// algorithm needs them. Every workload is measured separately.
    ///
    /// # Errors
    /// The reason why the algorithm cannot run there.
    pub fn under(&self, config: &AlgorithmConfig) -> Result<Under, String> {
        let mut setup = self.clone();
        let label = config.info().name.to_owned();
        setup.algorithms = vec![NamedAlgorithm { label, config: config.clone() }];
        for (index, workload) in setup.workloads.iter_mut().enumerate() {
            workload.algorithm = 0;
            let unnamed = || NamedWorkload { name: format!("workload-{index}"), deadline: None };
            workload.named.get_or_insert_with(unnamed);
        }
        if setup.measure.sizes.is_empty() {
            let range = |(from, to): (u64, Option<u64>)| SizeRange {
                from: Bytes::new(from),
                to: to.map(Bytes::new),
            };
            setup.measure.sizes = SIZES.map(range).into();
        }
        let (mut marking, mut unmarked) = (None, false);
        match (needs_marks(config), setup.topology.marks()) {
            (true, false) => {
                let network = self.network_info().ok_or("no two hosts can reach each other")?;
                let threshold = marking_threshold(&network);
                setup = setup.with_marking_threshold(threshold);
                marking =
                    Some(MarkingRule { threshold, rule: MARKING_RULE, source: MARKING_SOURCE });
            }
            (false, true) => {
                setup.topology.ecn = None;
                for class in &mut setup.topology.classes {
                    class.ecn = None;
                }
                unmarked = true;
            }
            _ => {}
        }
        setup.check_again()?;
        Ok(Under { setup, marking, unmarked })
    }

    /// Returns this run with switches that mark from `threshold` in all classes.
    #[must_use]
    pub fn with_marking_threshold(mut self, threshold: Bytes) -> Self {
        for class in &mut self.topology.classes {
            class.ecn = None;
        }
        self.topology.ecn = Some(Marking::Threshold(EcnMarker::new(threshold)));
        self
    }

    /// Returns this run with changed parameters of its only algorithm.
    ///
    /// # Errors
    /// See [`Registry::build_for`](apus_algorithms::Registry::build_for).
    pub fn with_changes(self, changes: &[(&str, &str)]) -> Result<Self, SettingError> {
        let label = self.algorithms[0].label.clone();
        self.with_parameters(&label, changes, &[])
    }

    /// Returns the errors that the reader would report.
    fn check_again(&self) -> Result<(), String> {
        let source = Source { name: self.name.clone(), text: self.to_toml() };
        let no_testbed = |name: &str| Err(format!("unknown testbed `{name}`"));
        let options = Options { registry: self.registry, ..Options::default() };
        let read = Scenario::read(&source, &no_testbed, &options);
        read.map(|_| ()).map_err(|error| error.to_string())
    }
}
