//! Everything that defines a run, read and checked: what a plan is made from.

use apus_cc::expresspass::CreditLimit;
use apus_cc::registry::{AlgorithmConfig, build};
use apus_cc::{SettingError, suggestion};
use apus_fabric::TopologyError;
use apus_transport::EndpointConfig;
use apus_units::{ClassId, Span};

use super::algorithm::{self, NamedAlgorithm, needs_marks};
use super::fault::FaultSpec;
use super::host::{
    DEFAULT_SIZES, FINE_TIMERS_LOG2_PS, HostSpec, TIMER_GRANULARITY, read_host, read_packets,
    read_transport,
};
use super::measure::{self, Measure};
use super::section::Section;
use super::source::{Place, Problems};
use super::topology::TopologySpec;
use super::tree::Table;
use super::workload::{Demand, Frame, Workload};
use super::{connections, effective, fault, record};
use crate::PacketSizes;
use crate::credits;
use crate::host_model::Nic;
use crate::measure::{Measures, NamedWorkload};
use crate::plan::Plan;
use crate::record::Record;

/// The keys of a run; a scenario has others besides, which say what is done with its runs.
pub(super) const KEYS: &[&str] = &[
    "duration",
    "warmup",
    "seed",
    "topology",
    "packets",
    "host",
    "transport",
    "algorithm",
    "workload",
    "fault",
    "measure",
    "record",
];

/// Largest seed: results are JSON, whose numbers are exact up to here.
pub(super) const MAX_SEED: u64 = 1 << 53;
/// Most connections of a run.
const MAX_CONNECTIONS: u64 = 1_000_000;
/// Longest run: times as picoseconds in 64 bits hold 213 of these.
const MAX_DURATION: Span = Span::from_secs(86_400);

/// The settings of one run, checked and with every default resolved.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(super) name: String,
    pub(super) duration: Span,
    pub(super) warmup: Span,
    pub(super) seed: u64,
    pub(super) topology: TopologySpec,
    pub(super) sizes: PacketSizes,
    pub(super) host: HostSpec,
    pub(super) endpoint: EndpointConfig,
    pub(super) algorithms: Vec<NamedAlgorithm>,
    pub(super) workloads: Vec<Workload>,
    pub(super) faults: Vec<FaultSpec>,
    pub(super) measure: Measure,
    pub(super) record: Option<Record>,
    /// Whether the run is to be recorded.
    pub(super) recorded: bool,
}

impl Setup {
    /// Name of the run: that of the scenario, and of its variant if it is one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What fixes everything random.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Simulated time in all.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.duration
    }

    /// Simulated time that is not measured, from the start.
    #[must_use]
    pub fn warmup(&self) -> Span {
        self.warmup
    }

    /// Whether its flows always have something to send, from their start to their stop.
    #[must_use]
    pub fn is_closed_loop(&self) -> bool {
        self.workloads.iter().all(|workload| matches!(workload.demand, Demand::Closed(_)))
    }

    /// The same run with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The same run under another name.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// The same run, recorded or not: its summary then has tables.
    #[must_use]
    pub fn recorded(mut self, recorded: bool) -> Self {
        self.recorded = recorded;
        self
    }

    /// The algorithms of the run, by the labels that workloads name them by.
    pub fn algorithms(&self) -> impl Iterator<Item = (&str, &AlgorithmConfig)> {
        self.algorithms.iter().map(|named| (named.label.as_str(), &named.config))
    }

    /// The workloads that are measured by themselves, by name.
    pub fn workload_names(&self) -> impl Iterator<Item = &str> {
        let named = self.workloads.iter().filter_map(|workload| workload.named.as_ref());
        named.map(|named| named.name.as_str())
    }

    /// The ranges of sizes whose slowdown is measured apart, as a scenario writes them.
    pub fn sizes(&self) -> impl Iterator<Item = String> {
        self.measure.sizes.iter().map(ToString::to_string)
    }

    /// The same run with parameters of the algorithm `label` changed: the others keep their values,
    /// but for those of `dropped`, which get the profile's defaults.
    ///
    /// # Errors
    /// As [`build`]: a value that is impossible, contradicts another or has no effect.
    pub fn with_parameters(
        mut self,
        label: &str,
        changes: &[(&str, &str)],
        dropped: &[&str],
    ) -> Result<Self, SettingError> {
        for named in self.algorithms.iter_mut().filter(|named| named.label == label) {
            let old = named.config.effective();
            let kept = old.iter().map(|(name, value)| (*name, value.as_str()));
            let kept = kept.filter(|(name, _)| {
                !dropped.contains(name) && changes.iter().all(|(changed, _)| changed != name)
            });
            let settings: Vec<(&str, &str)> = kept.chain(changes.iter().copied()).collect();
            let (name, profile) = (named.config.info().name, named.config.profile());
            named.config = build(name, Some(profile), &settings)?;
        }
        Ok(self)
    }

    /// What to record of the run, if anything.
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        let record = || self.record.unwrap_or_else(|| Record::of_duration(self.duration));
        self.recorded.then(record)
    }

    /// The node number of each host in the HPCC simulator's topology.txt, if it is from one.
    #[must_use]
    pub fn host_numbers(&self) -> Option<&[u32]> {
        self.topology.host_numbers()
    }

    /// What to simulate.
    ///
    /// # Errors
    /// If the topology cannot be built, which the reader is there to find out before.
    pub fn plan(&self) -> Result<Plan, TopologyError> {
        let faults: Vec<_> = self.faults.iter().flat_map(FaultSpec::plan).collect();
        let mut topology = self.topology.build()?;
        for fault in &faults {
            let link = &mut topology.links[fault.port.index() / 2];
            let port = if fault.port.get().is_multiple_of(2) { &mut link.ab } else { &mut link.ba };
            port.variable = true;
        }
        let queues = self.host.model.nic == Nic::Queue;
        if queues {
            topology = self.topology.with_nic_classes(topology);
        }
        super::halves::place(self, &mut topology);
        let credits = self.credit_limit();
        if let Some(limit) = credits {
            credits::divide_ports(&mut topology, limit, &self.sizes);
        }
        if self.topology.pfc.is_some() {
            if !queues {
                topology = self.topology.with_nic_classes(topology);
            }
            topology = topology.with_pausable_ports();
        }
        Ok(Plan {
            credits,
            pfc: self.topology.pfc.clone(),
            instant_signals: self.topology.instant_signals,
            topology,
            faults,
            force_class_ports: false,
            sizes: self.sizes,
            host: self.host.model,
            endpoint: self.endpoint,
            ack_class: self.topology.ack_class.map(ClassId::new),
            connections: connections::expand(self),
            duration: self.duration,
            warmup: self.warmup,
            sample_interval: self.measure.fair_share.map(|share| share.interval),
            fair_share_after: self.measure.fair_share.map(|share| share.after),
            measures: self.measures(),
            seed: self.seed,
        })
    }

    fn measures(&self) -> Measures {
        let Measure { sizes, ports, series, .. } = &self.measure;
        let groups = ports.iter().flat_map(|ports| &ports.groups);
        let classes = self.topology.classes.iter();
        Measures {
            workloads: self.named_workloads(),
            sizes: sizes.clone(),
            window: ports.as_ref().map(|ports| ports.window),
            queue_interval: ports.as_ref().map(|ports| ports.queue_interval),
            groups: groups.map(|group| group.group.clone()).collect(),
            classes: classes.map(|class| class.name.clone()).collect(),
            comparisons: ports.iter().flat_map(|ports| ports.comparisons.clone()).collect(),
            series: series.clone(),
        }
    }

    /// The workloads that are measured by themselves: those of one name together.
    pub(super) fn named_workloads(&self) -> Vec<NamedWorkload> {
        named_workloads(&self.workloads)
    }

    /// What ports do to credits, if any algorithm lives on them.
    fn credit_limit(&self) -> Option<CreditLimit> {
        self.algorithms.iter().find_map(|named| named.config.credit_limit())
    }

    /// The scenario that says all of this and nothing else: it reads back to the same plan.
    #[must_use]
    pub fn to_toml(&self) -> String {
        effective::render(self)
    }

    /// Reads a run from the root of a scenario; problems go to `problems`.
    pub(super) fn read(
        name: String,
        table: &Table,
        place: Place,
        problems: &Problems,
    ) -> Option<Self> {
        let root = Section::new(table, "", place, problems);
        let duration = read_duration(&root);
        let warmup = read_warmup(&root, duration);
        let seed = read_seed(&root);
        let sizes = read_packets(root.section("packets"));
        let packet = sizes.map_or(1, |s| u64::from((s.payload + s.header).max(s.control)));
        let topology = match root.section("topology") {
            Some(section) => TopologySpec::read(section, packet),
            None => {
                if root.node("topology").is_none() {
                    root.missing("topology", "a table like `[topology]` with `kind = \"star\"`");
                }
                None
            }
        };
        let host = read_host(root.section("host"));
        let mut endpoint =
            read_transport(root.section("transport"), &sizes.unwrap_or(DEFAULT_SIZES));
        let algorithms = algorithm::read(&root, problems);
        let timed = root.section("transport").is_some_and(|s| s.node(TIMER_GRANULARITY).is_some());
        let fine = |named: &NamedAlgorithm| named.config.fine_timers();
        if !timed && algorithms.iter().flatten().any(fine) {
            endpoint.timer_granularity_log2_ps = FINE_TIMERS_LOG2_PS;
        }
        if let (Some(topology), Some(duration)) = (&topology, duration) {
            check_delays(&root, topology, duration);
        }
        let tables = root.sections("workload");
        if tables.is_empty() && root.node("workload").is_none() {
            root.missing("workload", "one table or more `[[workload]]` with `kind` and `size`");
        }
        // What a workload must fit is only known if the rest could be read.
        let (duration, topology, algorithms) = (duration?, topology?, algorithms?);
        let labels = algorithms.iter().map(|named| named.label.as_str()).collect();
        let frame = Frame {
            hosts: topology.hosts().max(2),
            duration,
            max_ops: endpoint.max_ops,
            algorithms: labels,
            topology: &topology,
        };
        let workloads: Vec<Option<Vec<Workload>>> =
            tables.into_iter().map(|table| Workload::read(table, &frame)).collect();
        let workloads: Vec<Vec<Workload>> = workloads.into_iter().collect::<Option<_>>()?;
        let workloads: Vec<Workload> = workloads.into_iter().flatten().collect();
        let names_links = root.node("fault").is_some() || root.node("measure").is_some();
        let built = if names_links { topology.build().ok() } else { None };
        let faults = fault::read_faults(&root, built.as_ref(), duration);
        let named = named_workloads(&workloads).into_iter().map(|named| named.name);
        let parts = measure::Parts {
            named: named.collect(),
            flows: workloads.iter().map(Workload::connections).sum(),
            duration,
            warmup: warmup.unwrap_or(Span::ZERO),
            topology: built.as_ref(),
            classes: &topology.classes,
        };
        let measure = measure::read(&root, &parts);
        check_names(&root, &workloads);
        let record = record::read(&root, duration);
        check_classes(&root, &topology, &workloads);
        let shares = measure.as_ref().is_some_and(|measure| measure.fair_share.is_some());
        if shares && workloads.iter().any(|w| !matches!(w.demand, Demand::Closed(_))) {
            let message = "compares rates with fair shares, which only closed loops have; remove it, \
                           or the workloads of other kinds";
            root.problem("measure.interval", message);
        }
        if topology.pfc.is_some() && algorithms.iter().any(|a| a.config.credit_limit().is_some()) {
            let message = "pauses ports that an algorithm of credits divides itself, and bounds the \
                           queues of; remove `pfc`";
            root.problem("topology", message);
        }
        if shares && workloads.iter().any(Workload::reroutes) {
            let message = "compares rates with fair shares of the paths that flows begin with, but one \
                           is rerouted; remove one of the two";
            root.problem("measure.interval", message);
        }
        check_connections(&root, &workloads);
        if !workloads.is_empty() {
            check_algorithms(&root, &algorithms, &workloads, &topology);
            super::halves::check(&root, &topology, &algorithms, &workloads);
        }
        Some(Self {
            name,
            duration,
            warmup: warmup?,
            seed: seed?,
            topology,
            sizes: sizes?,
            host: host?,
            endpoint,
            algorithms,
            workloads,
            faults: faults?,
            measure: measure?,
            record,
            recorded: false,
        })
    }
}

/// Names of workloads, each once.
fn named_workloads(workloads: &[Workload]) -> Vec<NamedWorkload> {
    let mut all: Vec<NamedWorkload> = Vec::new();
    for named in workloads.iter().filter_map(|workload| workload.named.as_ref()) {
        if all.iter().all(|other| other.name != named.name) {
            all.push(named.clone());
        }
    }
    all
}

/// Notes every key at the root of a scenario that is none.
pub(super) fn check_keys(
    root: &Section<'_>,
    others: &[&'static str],
    problems: &Problems,
    table: &Table,
) {
    let known = || KEYS.iter().chain(others).copied();
    for key in root.keys().filter(|key| !known().any(|known| known == *key)) {
        if let Some(entry) = table.entries.get(key) {
            let hint = suggestion(key, known());
            problems.add(entry.key, format!("unknown key `{key}`{hint}"));
        }
    }
}

fn read_duration(root: &Section<'_>) -> Option<Span> {
    let duration = root.require("duration")?;
    let holds = !Span::is_zero(duration) && duration <= MAX_DURATION;
    let must = format_args!("must be above 0 and at most {MAX_DURATION}, but it is {duration}");
    root.check(holds, "duration", must);
    holds.then_some(duration)
}

fn read_warmup(root: &Section<'_>, duration: Option<Span>) -> Option<Span> {
    let warmup = match root.node("warmup") {
        Some(_) => root.get("warmup")?,
        None => Span::ZERO,
    };
    if let Some(duration) = duration {
        let message =
            format_args!("is {warmup}, but the run ends at {duration}: nothing is measured");
        root.check(warmup < duration, "warmup", message);
    }
    Some(warmup)
}

fn read_seed(root: &Section<'_>) -> Option<u64> {
    let seed = match root.node("seed") {
        Some(_) => root.get("seed")?,
        None => 1,
    };
    root.check(seed <= MAX_SEED, "seed", format_args!("must be at most {MAX_SEED}"));
    Some(seed)
}

fn check_delays(root: &Section<'_>, topology: &TopologySpec, duration: Span) {
    for links in topology.links() {
        let delay = links.delay.saturating_add(topology.pipeline_latency);
        let message = format_args!("has links of {delay}, but the run ends at {duration}");
        root.check(delay < duration, "topology", message);
    }
}

/// Workloads of one name are measured together, and so by one deadline.
fn check_names(root: &Section<'_>, workloads: &[Workload]) {
    let named: Vec<&NamedWorkload> = workloads.iter().filter_map(|w| w.named.as_ref()).collect();
    for (index, one) in named.iter().enumerate() {
        let differs = |other: &&&NamedWorkload| other.name == one.name && other != &one;
        let message = format_args!(
            "has several with the name `{}`, which are measured together, but with different \
             deadlines; rename one",
            one.name
        );
        root.check(!named[..index].iter().any(|other| differs(&other)), "workload", message);
    }
}

fn check_connections(root: &Section<'_>, workloads: &[Workload]) {
    let connections: u64 = workloads.iter().map(Workload::connections).sum();
    let message =
        format_args!("opens {connections} connections, but a run has at most {MAX_CONNECTIONS}");
    root.check(connections <= MAX_CONNECTIONS, "workload", message);
}

/// A class that nothing travels in is a mistake.
fn check_classes(root: &Section<'_>, topology: &TopologySpec, workloads: &[Workload]) {
    for (index, class) in (0..).zip(&topology.classes) {
        let used = workloads.iter().any(|workload| workload.class == index)
            || topology.ack_class == Some(index);
        let message = format_args!("has a class `{}`, which nothing uses; remove it", class.name);
        root.check(used, "topology", message);
    }
}

/// Algorithms and marks without effect.
fn check_algorithms(
    root: &Section<'_>,
    algorithms: &[NamedAlgorithm],
    workloads: &[Workload],
    topology: &TopologySpec,
) {
    for (index, named) in algorithms.iter().enumerate() {
        let used = workloads.iter().any(|workload| workload.algorithm == index);
        let message =
            format!("has `{}`, which no workload uses; remove it or name it", named.label);
        root.check(used, "algorithm", message);
    }
    let limits: Vec<_> = algorithms.iter().filter_map(|a| a.config.credit_limit()).collect();
    if limits.windows(2).any(|pair| pair[0] != pair[1]) {
        root.problem("algorithm", "has two limits of credits, but a port has one; make them equal");
    }
    if !limits.is_empty() && !topology.classes.is_empty() {
        let message = "has classes, but an algorithm that lives on credits divides every port into \
                       credits and data itself; remove them";
        root.problem("topology", message);
    }
    let name = |named: &NamedAlgorithm| named.config.info().name;
    let marked = algorithms.iter().find(|named| needs_marks(&named.config));
    match (marked, topology.marks()) {
        (Some(named), false) => root.problem(
            "topology",
            format_args!(
                "marks no packet, but `{}` lives on marks; add ecn = {{ threshold = \"100kB\" }}",
                name(named)
            ),
        ),
        (None, true) => root.problem(
            "topology",
            format_args!(
                "has `ecn`, which has no effect: no algorithm here looks at its marks, as `dctcp` \
                 does; remove it"
            ),
        ),
        _ => {}
    }
}
