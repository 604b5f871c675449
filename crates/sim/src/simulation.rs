//! A run: the event loop and its measurements.

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use apus_cc::AlgorithmFactory;
use apus_fabric::{Network, Node, PortCounters};
use apus_units::{PortId, Span, Time};
use apus_wire::Header;

use crate::build::{PlanError, build_network};
use crate::columns::note_lost;
use crate::credits::{BoundError, DataBounds, data_counters};
use crate::detours::Detours;
use crate::error::RunError;
use crate::fairness::FairShare;
use crate::faults::Faults;
use crate::measure::{GroupQueues, PortWindows, SeriesSampler, WorkloadMetrics};
use crate::metrics::Metrics;
use crate::offered::OfferedLoad;
use crate::part::Part;
use crate::partition::Partition;
use crate::plan::{Plan, step_length};
use crate::record::{CloseUp, FlowTracer, Record, Recorder, Sampler, Tap, Trace, spread};
use crate::reroutes::Reroutes;
use crate::stalls::Stalls;
use crate::summary::{Cost, Summary};
use crate::team::Team;
use crate::tempo::Tempo;
use crate::watch::{Watch, Watcher};
use drain::DrainEnd;
use further::Further;

mod checks;
mod drain;
mod further;
mod last_op;
mod stops;
mod sum_up;

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time so far.
    pub simulated: Span,
    /// Simulated time at the end.
    pub duration: Span,
    /// Events so far.
    pub events: u64,
    /// Operations of jobs that are done, and their total number; `None` without jobs.
    pub operations: Option<(u64, u64)>,
}

/// A run before its start.
pub struct Simulation<F: AlgorithmFactory> {
    parts: Vec<Part<F>>,
    partition: Partition,
    lookahead: Span,
    tempo: Tempo,
    fair_share: FairShare,
    sampler: Option<Sampler>,
    faults: Faults,
    reroutes: Reroutes,
    detours: Detours,
    /// Available from the end of the warm-up.
    port_windows: Option<PortWindows>,
    group_queues: Option<GroupQueues>,
    series: Option<SeriesSampler>,
    offered: OfferedLoad,
    stalls: Stalls,
    /// Ops that are read while the run proceeds.
    streamed: Option<Further>,
    /// Bounds of the data queues of a run with credits, if there are any.
    data_bounds: Option<DataBounds>,
    plan: Plan<F>,
    watch: Watch,
    /// Real time in which it was built.
    setup: Duration,
}

/// Reason why a stretch of a run ended.
enum Reached {
    /// The end of the stretch.
    End,
    /// The end of the step in which the measured phase ends with the last op.
    LastOp,
    /// The run was ended for this reason.
    Stop(String),
}

impl Reached {
    /// Returns the reason why the run was ended, if it was.
    fn why(self) -> Option<String> {
        match self {
            Self::Stop(why) => Some(why),
            Self::End | Self::LastOp => None,
        }
    }
}

impl<F: AlgorithmFactory> Simulation<F> {
    /// Builds the network, the hosts and their flows, for one thread.
    ///
    /// # Errors
    /// If the topology is invalid or the two hosts of a connection cannot reach each other.
    pub fn new(plan: &Plan<F>) -> Result<Self, PlanError> {
        Self::with_threads(plan, 1)
    }

    /// Builds the simulation for up to `threads` threads: fewer if there are fewer hosts, and one if the
    /// network cannot be divided, because a link between parts has no delay or [`Plan::has_one_part`] returns
    /// `true`. The results do not depend on the number of threads.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn with_threads(plan: &Plan<F>, threads: u32) -> Result<Self, PlanError> {
        Self::of(plan.clone(), threads)
    }

    /// Builds the simulation and takes the plan instead of copying it. Rationale: a copy of the connections
    /// of a large plan doubles their memory.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn of(own: Plan<F>, threads: u32) -> Result<Self, PlanError> {
        let started = Instant::now();
        let plan = &own;
        if let Some(job) = plan.jobs.iter().find(|job| job.is_external) {
            return Err(PlanError::External(job.name.clone()));
        }
        for job in &plan.jobs {
            job.check_model(plan.host.loggops.as_ref()).map_err(PlanError::Job)?;
        }
        let network = build_network(plan)?;
        let partition = Partition::new(&network, if plan.has_one_part() { 1 } else { threads });
        let lookahead = partition.lookahead(&network);
        let mut parts = build_parts(plan, &partition, network)?;
        if let Some(parameters) = &plan.host.loggops {
            parts[0].model_jobs(plan, parameters).map_err(PlanError::Job)?;
        }
        WorkloadMetrics::attach(plan, &mut parts).map_err(PlanError::Route)?;
        let offered = OfferedLoad::new(plan, &mut parts[0].world.network)?;
        let network = &parts[0].world.network;
        let fair_share = FairShare::new(plan, network);
        let series = SeriesSampler::new(plan, |port| network.rate(port));
        let data_bounds = match plan.credits {
            Some(_) => match DataBounds::new(plan, network) {
                Ok(bounds) => Some(bounds),
                Err(BoundError::Route(error)) => return Err(PlanError::Route(error)),
                Err(BoundError::Cycle | BoundError::Engine | BoundError::Changes) => None,
            },
            None => None,
        };
        Ok(Self {
            parts,
            lookahead,
            tempo: Tempo::new(partition.parts()),
            fair_share,
            sampler: None,
            faults: Faults::new(&plan.faults, plan.seed),
            reroutes: Reroutes::new(plan),
            detours: Detours::new(plan),
            port_windows: None,
            group_queues: None,
            series,
            offered,
            stalls: Stalls::new(plan),
            streamed: None,
            data_bounds,
            plan: own,
            watch: Watch::default(),
            setup: started.elapsed(),
            partition,
        })
    }

    /// Records the run. Recording does not change the results; it adds tables to the summary.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn record(mut self, record: Record) -> Result<Self, PlanError> {
        self.sampler = Some(Sampler::new(&self.plan, record, &self.parts)?);
        for part in &mut self.parts {
            let recorder = Recorder::new(self.plan.connections.len(), record.ops);
            part.world.recorder = Some(Box::new(recorder));
        }
        Ok(self)
    }

    /// Traces packets at ports and events of flows of a recorded run. A traced run has one thread; its
    /// results do not change.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn trace(mut self, trace: &Trace) -> Result<Self, PlanError> {
        let Some(sampler) = &mut self.sampler else { return Ok(self) };
        if trace.is_empty() {
            return Ok(self);
        }
        if self.parts.len() > 1 {
            let record = sampler.record();
            return Self::of(self.plan, 1)?.record(record)?.trace(trace);
        }
        let connections = self.plan.connections.len();
        let close_up = match &trace.around[..] {
            [] => None,
            around => Some(CloseUp::new(&self.plan, &mut self.parts[0].world.network, around)?),
        };
        let evenly = spread(trace.flows as usize, connections).map(|index| index as u32);
        let chosen: BTreeSet<u32> = match close_up {
            Some(_) => trace.around.iter().map(|op| op.connection).collect(),
            None => evenly.collect(),
        };
        if close_up.is_some() {
            sampler.watch_only(chosen.iter().copied());
        }
        let sender = |index: u32| self.plan.connections[index as usize].data_ends().0;
        let flows: Vec<_> = chosen.into_iter().map(|index| (index, sender(index))).collect();
        for part in &mut self.parts {
            let ports = part.world.network.ports().count();
            part.use_queue();
            part.tap = Some(Box::new(Tap::new(trace, ports)));
            part.close_up.clone_from(&close_up);
            if let Some(recorder) = &mut part.world.recorder
                && !flows.is_empty()
            {
                let tracer = FlowTracer::new(flows.iter().copied(), trace.events);
                let tracer = tracer.around(&trace.around);
                recorder.tracer = Some(Box::new(tracer));
                part.world.observes_sent = true;
            }
        }
        Ok(self)
    }

    /// Always runs window by window, for tests that compare results. This has no effect on a network whose
    /// nodes affect each other without delay.
    #[doc(hidden)]
    #[must_use]
    pub fn in_windows(mut self) -> Self {
        self.parts.iter_mut().for_each(Part::use_windows);
        self
    }

    /// Alternates between running the parts on their own threads and in turns on one thread, window by
    /// window, for tests that compare results.
    #[doc(hidden)]
    #[must_use]
    pub fn alternating(mut self) -> Self {
        self.tempo.alternate();
        self
    }

    /// Allows `watch` to end the run early.
    #[must_use]
    pub fn watched_by(mut self, watch: &Watch) -> Self {
        self.watch = watch.clone();
        self
    }

    /// Runs to the end and returns the summary. If the run was ended early, the summary has the results so
    /// far and gives the reason.
    ///
    /// # Errors
    /// If packets were not conserved: no number of such a run is valid.
    pub fn run(
        mut self,
        name: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Summary, RunError> {
        let started = Instant::now();
        let end = Time::ZERO + self.plan.duration;
        let warmup = Time::ZERO + self.plan.warmup;
        let mut team = Team::new(self.partition.parts(), self.lookahead, self.tempo.clone())
            .map_err(|error| RunError::new(format!("the system starts no thread: {error}")))?;
        let mut watcher = Watcher::new(self.watch.clone(), name);
        self.streamed = self.plan.streamed.as_deref().map(|ops| self.begin_further(ops));
        let mut stopped = self.run_phase(name, warmup, &mut team, &mut watcher, progress)?;
        let warmup = self.now();
        let ports_at_warmup = self.port_counters(warmup);
        if let Some(sampler) = &mut self.sampler {
            sampler.end_warmup(&self.parts);
        }
        if let Some(mut series) = self.series.take() {
            series.end_warmup(&|connection| self.delivered(connection));
            self.series = Some(series);
        }
        for part in &mut self.parts {
            part.world.metrics.end_warmup();
            if let Some(workloads) = &mut part.world.workloads {
                workloads.end_warmup();
            }
            if let Some(recorder) = &mut part.world.recorder {
                recorder.end_warmup();
            }
            part.world.network.restart_max_queues(warmup);
        }
        let rate = |port| self.network_of(port).configured_rate(port);
        let counters = |port, class| self.network_of(port).class_counters(port, class, warmup);
        let queues = GroupQueues::new(&self.plan.measures, warmup, rate);
        let windows = PortWindows::new(&self.plan.measures, warmup, rate, counters);
        (self.group_queues, self.port_windows) = (queues, windows);
        if stopped.is_none() {
            stopped = self.run_phase(name, end, &mut team, &mut watcher, progress)?;
        }
        // All measurements except the times of ops end here.
        let end = self.now();
        self.plan.warmup = warmup.since(Time::ZERO);
        self.plan.duration = self.measured_end().since(Time::ZERO).max(self.plan.warmup);
        // The drain has its own end.
        self.plan.ends_with_ops = false;
        let counters = self.check_conservation()?;
        let ports_at_end = self.port_counters(end);
        let mut recording = self.sampler.take().map(|sampler| {
            sampler.finish(&self.plan, &self.parts, &ports_at_warmup, &ports_at_end)
        });
        let (first, others) = self.parts.split_at_mut(1);
        for part in others {
            // The first part now has these counts: without the reset they would be added a second time after the drain.
            let none = Metrics::new(self.plan.connections.len(), Time::ZERO);
            let metrics = core::mem::replace(&mut part.world.metrics, none);
            first[0].world.metrics.add(&metrics);
            let theirs = part.world.workloads.as_deref();
            if let Some((ours, theirs)) = first[0].world.workloads.as_deref_mut().zip(theirs) {
                ours.add(theirs);
            }
        }
        let mut summary = self.sum_up(name, &ports_at_warmup, &counters);
        self.check_credits(&mut summary)?;
        summary.losses = self.losses(&counters)?;
        let lost = self.faults.lost(&self.parts);
        note_lost(&mut summary.faults, &lost);
        summary.notes.extend(summary.offered.warnings());
        if let Some(recording) = &mut recording {
            note_lost(&mut recording.faults, &lost);
            let rtts = self.parts[0].world.metrics.rtts();
            recording.fabric_rtt = rtts.fabric().cdf();
            recording.end_to_end_rtt = rtts.end_to_end().cdf();
        }
        let interrupted = stopped.is_some();
        let drained = self.drain((name, end), interrupted, &mut team, &mut watcher, progress)?;
        if drained.ended_by == DrainEnd::Interrupted && stopped.is_none() {
            stopped.clone_from(&drained.why);
        }
        summary.interrupted = stopped.is_some();
        summary.stop_reason = stopped;
        summary.drain = drained.summary(end);
        summary.stalled = self.stalls.summary();
        self.check_conservation()?;
        self.sum_up_ops(&mut summary);
        summary.work = self.work();
        let wall_s = started.elapsed().as_secs_f64();
        let setup_s = self.setup.as_secs_f64();
        summary.cost = Cost::of(&summary.work, setup_s, wall_s, self.partition.parts());
        if let Some(mut recording) = recording {
            recording.note_even_loads();
            recording.op_latency = self.parts[0].world.op_times.all.cdf();
            recording.add_trace(&mut self.parts);
            recording.add_ops(&mut self.parts);
            recording.note_slowed();
            summary.faults.clone_from(&recording.faults);
            let most = recording.record.ops;
            recording.add_job_ops(crate::jobs::records(&self.parts, most));
            summary.notes.extend(recording.notes.iter().cloned());
            summary.recording = Some(Arc::new(recording));
        }
        Ok(summary)
    }

    /// Returns the simulated time of the run.
    fn now(&self) -> Time {
        self.parts.first().map_or(Time::ZERO, |part| part.world.now)
    }

    /// Runs all events before `end` and stops for samples. If the run is ended earlier, returns the reason.
    fn run_phase(
        &mut self,
        name: &str,
        end: Time,
        team: &mut Team<F>,
        watcher: &mut Watcher,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<String>, RunError> {
        while let Some(at) = self.next_sample().filter(|&at| at <= end) {
            match self.run_until(at, team, watcher, progress)? {
                Reached::End => {}
                // The phase ends here even if a stop is due now: the same run without this stop would end too.
                Reached::LastOp => return Ok(None),
                Reached::Stop(why) => return Ok(Some(why)),
            }
            self.sample_recording(at);
            if self.is_over() {
                self.end_samples();
            }
            self.end_port_window(at);
            self.sample_parts(at);
            self.change_links(at);
            self.reroutes.apply(at, &mut self.parts);
            self.look_for_stalls(at, name);
            if self.fair_share.next_sample() != Some(at) {
                continue;
            }
            let mut bytes = vec![0; self.plan.connections.len()];
            for part in &mut self.parts {
                for (sum, connection) in bytes.iter_mut().zip(&mut part.world.metrics.connections) {
                    *sum += core::mem::take(&mut connection.since_sample);
                }
            }
            self.fair_share.sample(at, &bytes);
        }
        Ok(self.run_until(end, team, watcher, progress)?.why())
    }

    /// Runs all events before `end` in steps. Returns earlier if the measured phase ends with the last op, or
    /// if the run is ended.
    fn run_until(
        &mut self,
        end: Time,
        team: &mut Team<F>,
        watcher: &mut Watcher,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Reached, RunError> {
        let duration = self.plan.duration;
        let step = step_length(duration, self.parts[0].world.network.smallest_delay());
        while self.now() < end {
            let whole = next_multiple(self.now(), step);
            if let Some(mut streamed) = self.streamed.take() {
                self.extend_loops(&mut streamed, whole.min(end))?;
                self.streamed = Some(streamed);
            }
            self.run_step(whole.min(end), team);
            let now = self.now();
            let simulated = now.since(Time::ZERO).min(duration);
            let events = self.parts.iter().map(|part| part.handled.events).sum();
            let operations = self.operations();
            progress(Progress { simulated, duration, events, operations });
            watcher.tell(now, &self.parts, &self.plan);
            if let Some(why) = watcher.interrupted() {
                return Ok(Reached::Stop(why));
            }
            // These checks take place only after whole steps and at stops of the plan, so that stops for
            // samples do not change the results.
            let is_whole = whole <= end;
            if (is_whole || self.next_change() == Some(now))
                && let Some(why) = watcher.stuck(now, &self.parts, &self.plan)
            {
                return Ok(Reached::Stop(why));
            }
            if is_whole && self.is_over() {
                return Ok(Reached::LastOp);
            }
        }
        Ok(Reached::End)
    }

    /// Runs all events before `end`.
    fn run_step(&mut self, end: Time, team: &mut Team<F>) {
        team.run(&mut self.parts, end);
    }

    /// Returns the network of the part that simulates `port`.
    fn network_of(&self, port: PortId) -> &Network<Header, F::Switch> {
        &self.parts[self.partition.of_port(port) as usize].world.network
    }

    /// Returns the counters of a port, see [`data_counters`].
    fn counters_of(&self, port: PortId, now: Time) -> PortCounters {
        data_counters(self.network_of(port), self.plan.credits.is_some(), port, now)
    }

    /// Returns the counters of all ports.
    fn port_counters(&self, now: Time) -> Vec<PortCounters> {
        let ports = self.parts[0].world.network.ports();
        ports.map(|port| self.counters_of(port, now)).collect()
    }

    fn is_switch_port(&self, port: PortId) -> bool {
        matches!(self.parts[0].world.network.port_ends(port).0, Node::Switch(_))
    }
}

/// Builds all parts, each on its own thread. The first part takes `network`.
fn build_parts<F: AlgorithmFactory>(
    plan: &Plan<F>,
    partition: &Partition,
    network: Network<Header, F::Switch>,
) -> Result<Vec<Part<F>>, PlanError> {
    let build = |id| Part::new(plan, partition, id, build_network(plan)?);
    std::thread::scope(|scope| {
        let start = |id| Builder::new().spawn_scoped(scope, move || build(id));
        let others: Result<Vec<_>, _> = (1..partition.parts()).map(start).collect();
        let others = others.map_err(PlanError::Thread)?.into_iter().map(|part| match part.join() {
            Ok(part) => part,
            Err(panic) => resume_unwind(panic),
        });
        std::iter::once_with(|| Part::new(plan, partition, 0, network)).chain(others).collect()
    })
}

/// Returns the first multiple of `step` after `now`.
fn next_multiple(now: Time, step: Span) -> Time {
    Time::from_ps((now.as_ps() / step.as_ps() + 1).saturating_mul(step.as_ps()))
}
