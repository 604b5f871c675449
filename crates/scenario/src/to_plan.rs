//! Makes a plan from a setup.

use crate::set::{ConnectionPlan, Plan};
use apus_algorithms::AlgorithmConfig;
use apus_cc::{AlgorithmFactory, CreditLimit};
use apus_fabric::{PortKind, TopologyError};
use apus_units::ClassId;

use super::connections::{self, Expanded};
use super::fault::plan_faults;
use super::halves;
use super::measure::Measure;
use super::setup::Setup;
use super::workload::trace_ops;
use apus_sim::PlanError;
use apus_sim::credits;
use apus_sim::host_model::Nic;
use apus_sim::live::Live;
use apus_sim::measure::Measures;

impl Setup {
    /// Returns the plan to simulate.
    ///
    /// # Errors
    /// If the topology cannot be built; the reader checks this beforehand.
    pub fn plan(&self) -> Result<Plan, TopologyError> {
        Ok(self.plan_with_external()?.0)
    }

    /// Returns the simulation that an external program drives.
    ///
    /// # Errors
    /// If the scenario does not have exactly one workload of kind `external`, or its network cannot be built.
    pub fn live(&self) -> Result<Live<AlgorithmConfig>, PlanError> {
        let (plan, like) = self.plan_with_external().map_err(PlanError::Topology)?;
        Live::new(plan, like.ok_or(PlanError::NotExternal)?)
    }

    /// Returns the plan, and a template of the connections of an external program, if there is such a job.
    fn plan_with_external(&self) -> Result<(Plan, Option<ConnectionPlan>), TopologyError> {
        let mut topology = self.topology.build()?;
        let end = self.duration.saturating_add(self.drain);
        let faults = plan_faults(&self.faults, &topology, self.seed, end);
        for fault in &faults {
            let link = &mut topology.links[fault.port.index() / 2];
            let port = if fault.port.get().is_multiple_of(2) { &mut link.ab } else { &mut link.ba };
            port.variable = true;
        }
        let queues = self.host.nic == Nic::Queue;
        if queues {
            topology = self.topology.with_nic_classes(topology);
        }
        halves::place(self, &mut topology);
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
        let Expanded { connections, demands, jobs, streamed, further } = connections::expand(self);
        let mut plan = Plan {
            credits,
            pfc: self.topology.pfc.clone(),
            instant_signals: self.topology.instant_signals,
            topology,
            faults,
            rerouting: self.rerouting,
            least_ports: PortKind::Fifo,
            sizes: self.sizes,
            host: self.host,
            endpoint: self.endpoint,
            ack_class: self.topology.ack_class.map(ClassId::new),
            connections,
            jobs: Vec::new(),
            demands,
            duration: self.duration,
            warmup: self.warmup,
            streamed,
            further,
            trace_ops: trace_ops(&self.workloads),
            ends_with_ops: self.ends_with_ops,
            drain: self.drain,
            sample_interval: self.measure.fair_share.map(|share| share.interval),
            fair_share_after: self.measure.fair_share.map(|share| share.after),
            measures: self.measures(),
            seed: self.seed,
        };
        let mut jobs = jobs.into_iter();
        let mut external = None;
        for (index, _) in self.workloads.iter().enumerate().filter(|(_, load)| load.is_job()) {
            let Some((job, like)) = jobs.next() else { break };
            let first = plan.connections.len();
            if job.is_external {
                external = Some(like.clone());
            }
            // The reader has placed all ranks on hosts with networks.
            let added = plan.add_job(job, &like);
            debug_assert!(added.is_ok(), "{added:?}");
            plan.demands[index].connections = first..plan.connections.len();
        }
        Ok((plan, external))
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
            groups: groups.cloned().collect(),
            classes: classes.map(|class| class.name.clone()).collect(),
            comparisons: ports.iter().flat_map(|ports| ports.comparisons.clone()).collect(),
            series: series.clone(),
        }
    }

    /// Returns the limit of ports to credits, if any algorithm is credit-based.
    fn credit_limit(&self) -> Option<CreditLimit> {
        self.algorithms.iter().find_map(|named| named.config.credit_limit())
    }
}
