//! All settings of a run, read and checked. A plan is made from them.

use std::sync::Arc;

use apus_algorithms::{AlgorithmConfig, Registry};
use apus_cc::SettingError;
use apus_transport::EndpointConfig;
use apus_units::{Bytes, Span};

use super::algorithm::NamedAlgorithm;
use super::fault::FaultSpec;
use super::measure::Measure;
use super::memory;
use super::parts;
use super::topology::TopologySpec;
use super::tree::Table;
use super::workload::{Demand, Workload, first_message, named_workloads, trace_ops};
use apus_sim::PacketSizes;
use apus_sim::host_model::HostModel;
use apus_sim::measure::NamedWorkload;
use apus_sim::plan::Rerouting;
use apus_sim::record::{Around, Record, Trace};

/// Maximum number of events of flows around ops. Rationale: about 600 MB, and more than a page can show.
const MOST_EVENTS: u64 = 2_000_000;

/// The settings of one run, checked and with every default resolved.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(super) name: String,
    pub(super) duration: Span,
    pub(super) warmup: Span,
    pub(super) drain: Span,
    pub(super) ends_with_ops: bool,
    pub(super) seed: u64,
    pub(super) topology: TopologySpec,
    pub(super) sizes: PacketSizes,
    pub(super) host: HostModel,
    pub(super) endpoint: EndpointConfig,
    /// The registry from which other algorithms can be chosen.
    pub(super) registry: Registry,
    pub(super) algorithms: Vec<NamedAlgorithm>,
    pub(super) workloads: Vec<Workload>,
    pub(super) faults: Vec<FaultSpec>,
    pub(super) rerouting: Rerouting,
    pub(super) measure: Measure,
    pub(super) record: Option<Record>,
    pub(super) trace: Trace,
    /// The settings as a scenario writes them, except name, seed and algorithms.
    pub(super) effective: Arc<Table>,
    /// Whether the run is to be recorded.
    pub(super) recorded: bool,
}

impl Setup {
    /// Returns the name of the run: the name of the scenario, and that of the variant if the run belongs to
    /// one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the seed of all random number streams.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the simulated time to the end of the measured phase.
    #[must_use]
    pub fn duration(&self) -> Span {
        self.duration
    }

    /// Returns the longest simulated time after [`duration`](Self::duration) in which ops can end.
    #[must_use]
    pub fn drain(&self) -> Span {
        self.drain
    }

    /// Returns the simulated time from the start that is not measured.
    #[must_use]
    pub fn warmup(&self) -> Span {
        self.warmup
    }

    /// Returns an estimate of the memory of the run on one thread.
    #[must_use]
    pub fn estimated_memory(&self) -> Bytes {
        memory::estimate(&self.topology, &self.workloads)
    }

    /// Returns `true` if all flows always have data to send, from their start to their stop.
    #[must_use]
    pub fn is_closed_loop(&self) -> bool {
        self.workloads.iter().all(|workload| matches!(workload.demand, Demand::Closed(_)))
    }

    /// Returns `true` if all its workloads are traces, so that its summary has a makespan.
    #[must_use]
    pub fn has_makespan(&self) -> bool {
        trace_ops(&self.workloads).is_some()
    }

    /// Sets the seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the name.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets whether the run is recorded: its summary then has tables.
    #[must_use]
    pub fn recorded(mut self, recorded: bool) -> Self {
        self.recorded = recorded;
        self
    }

    /// Returns the recorded run with all of its ops, however many `[record]` keeps.
    #[must_use]
    pub fn with_all_ops(mut self) -> Self {
        self.recorded = true;
        self.record = self.record().map(|record| Record { ops: u64::MAX, ..record });
        self
    }

    /// Returns the names of the metrics of its parts: workloads, jobs, groups of ports and others.
    #[must_use]
    pub fn part_metrics(&self) -> Vec<String> {
        parts::names(&self.effective).metrics()
    }

    /// Returns the algorithms of the run with the labels by which workloads name them.
    pub fn algorithms(&self) -> impl Iterator<Item = (&str, &AlgorithmConfig)> {
        self.algorithms.iter().map(|named| (named.label.as_str(), &named.config))
    }

    /// Returns the names of the workloads that are measured separately.
    pub fn workload_names(&self) -> impl Iterator<Item = &str> {
        let named = self.workloads.iter().filter_map(|workload| workload.named.as_ref());
        named.map(|named| named.name.as_str())
    }

    /// Returns the names of the jobs, in the order of their results.
    pub fn job_names(&self) -> impl Iterator<Item = &str> {
        let jobs = self.workloads.iter().filter(|workload| workload.is_job());
        jobs.map(|job| job.label.as_str())
    }

    /// Returns the ranges of sizes whose slowdown is measured separately, as a scenario writes
    /// them.
    pub fn sizes(&self) -> impl Iterator<Item = String> {
        self.measure.sizes.iter().map(ToString::to_string)
    }

    /// Returns this run with changed parameters of the algorithm `label`. Other settings of the file stay,
    /// except the parameters of `dropped`; parameters that depend on the network are derived again.
    ///
    /// # Errors
    /// See [`build`](apus_algorithms::registry::build): a value that is impossible, contradicts
    /// another or has no effect.
    pub fn with_parameters(
        mut self,
        label: &str,
        changes: &[(&str, &str)],
        dropped: &[&str],
    ) -> Result<Self, SettingError> {
        for named in self.algorithms.iter_mut().filter(|named| named.label == label) {
            named.config = named.config.changed(changes, dropped)?;
        }
        Ok(self)
    }

    /// Returns the settings of the recording, if there is one.
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        // Samples begin when the first flow starts.
        let idle = first_message(&self.workloads).unwrap_or(Span::ZERO);
        let sampled = self.duration.saturating_sub(idle);
        let record = || self.record.unwrap_or_else(|| Record::of_duration(sampled));
        self.recorded.then(record)
    }

    /// Returns sentences about the elements of the scenario's files that the run leaves out.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        let jobs = self.workloads.iter().filter_map(|workload| match &workload.demand {
            Demand::Job(job) => Some(job),
            _ => None,
        });
        let of_jobs = jobs.flat_map(|job| &job.skipped).map(String::as_str);
        self.topology.left_out().into_iter().chain(of_jobs)
    }

    /// Returns the packets and events that a recorded run traces.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the run with the same seed and events that records the events around these ops, and samples of
    /// their flows at the same times as in the recorded run.
    #[must_use]
    pub fn around(mut self, ops: Vec<Around>) -> Self {
        self.recorded = true;
        let same = self.record().map(|record| record.interval);
        let interval = same.unwrap_or(self.duration).max(Span::from_ps(1));
        self.record = Some(Record { interval, flows: 0, ports: 0, ops: 0, nics: false });
        self.trace = Trace { events: MOST_EVENTS, around: ops, ..Trace::default() };
        self
    }

    /// Returns the node number of each host in the HPCC simulator's topology.txt, if the topology is from one.
    #[must_use]
    pub fn host_numbers(&self) -> Option<&[u32]> {
        self.topology.host_numbers()
    }

    /// Returns the workloads that are measured separately; workloads of equal name are measured together.
    pub(super) fn named_workloads(&self) -> Vec<NamedWorkload> {
        named_workloads(&self.workloads)
    }
}
