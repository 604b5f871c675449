//! Latencies of ops, and ages of unfinished ops.
//!
//! An op counts if it was submitted within the measured phase, independent of its end. An op that is
//! unfinished at the end of the run takes at least its age. Therefore it enters every distribution with two
//! bounds: its age and infinity.

use std::collections::BTreeMap;
use std::sync::Arc;

use apus_cc::AlgorithmFactory;
use apus_transport::{Completion, Outcome};
use apus_units::{Span, Time};

use crate::distribution::DistributionSummary;
use crate::groups::{GroupOps, GroupPlan};
use crate::jobs::JOB_OP;
use crate::measure::{Member, NamedWorkload, SizeRange};
use crate::metrics::Distribution;
use crate::packets::PacketSizes;
use crate::plan::{ConnectionPlan, Load, Plan};

/// Latencies or slowdowns of some ops.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    ended: Distribution,
    /// Latencies or slowdowns of unfinished ops, as if they ended now.
    unfinished: Option<Box<Distribution>>,
    /// Age of the oldest unfinished op.
    oldest: Span,
    empty: fn() -> Distribution,
}

impl Times {
    fn new(empty: fn() -> Distribution) -> Self {
        Self { ended: empty(), unfinished: None, oldest: Span::ZERO, empty }
    }

    /// Records an unfinished op of this age. Its final value is at least the value that `record` records.
    fn note_unfinished(&mut self, age: Span, record: impl FnOnce(&mut Distribution)) {
        record(self.unfinished.get_or_insert_with(|| Box::new((self.empty)())));
        self.oldest = self.oldest.max(age);
    }

    fn add(&mut self, other: &Self) {
        self.ended.add(&other.ended);
        if let Some(more) = &other.unfinished {
            self.unfinished.get_or_insert_with(|| Box::new((self.empty)())).add(more);
        }
        self.oldest = self.oldest.max(other.oldest);
    }

    pub(crate) fn summary(&self) -> DistributionSummary {
        DistributionSummary::of_ops(&self.ended, self.unfinished.as_deref(), self.oldest)
    }

    /// Returns points of the distribution function. The function does not reach 1 if there are unfinished ops.
    pub(crate) fn cdf(&self) -> Vec<(f64, f64)> {
        let ended = self.ended.count() as f64;
        let open = self.unfinished.as_ref().map_or(0, |unfinished| unfinished.count());
        let points = self.ended.cdf().into_iter();
        points.map(|(value, share)| (value, share * ended / (ended + open as f64))).collect()
    }
}

/// Ops of one range of sizes.
#[derive(Clone, Debug)]
pub(crate) struct OfSize {
    pub(crate) latency: Times,
    pub(crate) slowdown: Times,
}

/// Ops of one named workload.
#[derive(Debug)]
pub(crate) struct NamedTimes {
    deadline: Option<Span>,
    pub(crate) latency: Times,
    pub(crate) slowdown: Times,
    pub(crate) by_size: Vec<OfSize>,
    /// Ops that failed or took longer than the deadline.
    late: u64,
    /// Unfinished ops: those that are already late, and those that may still be in time.
    late_unfinished: u64,
    undecided: u64,
}

impl NamedTimes {
    fn new(deadline: Option<Span>, sizes: usize) -> Self {
        let (latency, slowdown) =
            (Times::new(Distribution::of_times), Times::new(Distribution::of_ratios));
        let of_size = OfSize { latency: latency.clone(), slowdown: slowdown.clone() };
        Self {
            deadline,
            latency,
            slowdown,
            by_size: vec![of_size; sizes],
            late: 0,
            late_unfinished: 0,
            undecided: 0,
        }
    }

    fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        self.slowdown.add(&other.slowdown);
        for (own, more) in self.by_size.iter_mut().zip(&other.by_size) {
            own.latency.add(&more.latency);
            own.slowdown.add(&more.slowdown);
        }
        self.late += other.late;
        self.late_unfinished += other.late_unfinished;
        self.undecided += other.undecided;
    }

    /// Returns the bounds of the share of late ops; `None` without a deadline or ops.
    pub(crate) fn late(&self) -> Option<(f64, f64)> {
        self.deadline?;
        let late = self.late + self.late_unfinished;
        let all = self.latency.ended.count() + self.late_unfinished + self.undecided;
        let share = |late: u64| late as f64 / all as f64;
        (all > 0).then(|| (share(late), share(late + self.undecided)))
    }
}

/// Ops that had not ended when the run was over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unfinished {
    pub(crate) ops: u64,
    pub(crate) oldest: Span,
}

impl Unfinished {
    fn note(&mut self, age: Span) {
        self.ops += 1;
        self.oldest = self.oldest.max(age);
    }

    fn add(&mut self, other: &Self) {
        self.ops += other.ops;
        self.oldest = self.oldest.max(other.oldest);
    }
}

/// Measurements of the times of ops, in a part of the network.
#[derive(Debug)]
pub(crate) struct OpTimes {
    /// By connection; empty if no workload has a name.
    members: Arc<[Member]>,
    /// By connection: its group. Connections with ops of one kind form a group.
    groups: Arc<[u32]>,
    /// By group: whether its ops are the messages of a trace.
    traces: Arc<[bool]>,
    sizes: Vec<SizeRange>,
    packets: PacketSizes,
    warmup_end: Time,
    /// End of the measured phase: later ops do not count.
    measured_end: Time,
    pub(crate) all: Times,
    pub(crate) named: Vec<NamedTimes>,
    pub(crate) by_group: GroupOps,
    /// By group: whether an op ended within the measured phase.
    ending: Vec<bool>,
    /// Number of ops of the whole run that have ended, and the time of the last end.
    pub(crate) ended: u64,
    pub(crate) last_end: Time,
    /// Unfinished ops of the warm-up, and of the measured phase.
    pub(crate) startup: Unfinished,
    pub(crate) measured: Unfinished,
}

impl OpTimes {
    /// Creates the measurements. `members` is empty if no workload has a name.
    pub(crate) fn new<F: AlgorithmFactory>(
        plan: &Plan<F>,
        members: Arc<[Member]>,
        groups: &Groups,
        workloads: &GroupPlan,
    ) -> Self {
        let measures = &plan.measures;
        let named = |named: &NamedWorkload| NamedTimes::new(named.deadline, measures.sizes.len());
        Self {
            members,
            groups: Arc::clone(&groups.of),
            traces: Arc::clone(&groups.traces),
            sizes: measures.sizes.clone(),
            packets: plan.sizes,
            warmup_end: Time::ZERO + plan.warmup,
            measured_end: Time::MAX,
            all: Times::new(Distribution::of_times),
            named: measures.workloads.iter().map(named).collect(),
            by_group: GroupOps::new(workloads),
            ending: vec![false; groups.traces.len()],
            ended: 0,
            last_end: Time::ZERO,
            startup: Unfinished::default(),
            measured: Unfinished::default(),
        }
    }

    /// Ends the measured phase: ops submitted from now on do not count.
    pub(crate) fn end_measured(&mut self, now: Time) {
        self.measured_end = now;
    }

    /// Returns `true` if ops that were submitted at this time count.
    pub(crate) fn counts(&self, submitted: Time) -> bool {
        self.warmup_end <= submitted && submitted < self.measured_end
    }

    /// Records an op that completed at the true time `now`. The times in the completion are those of its host's clock.
    pub(crate) fn on_completion(&mut self, now: Time, connection: u32, completion: &Completion) {
        let latency = completion.completed_at.since(completion.submitted_at);
        // Jobs count their operations themselves.
        self.ended += u64::from(completion.submitted.user as u32 != JOB_OP);
        // Within a time window hosts run in turn, so `now` may be earlier than the last end.
        self.last_end = self.last_end.max(now);
        if self.measured_end == Time::MAX && now >= self.warmup_end {
            self.ending[self.groups[connection as usize] as usize] = true;
            self.by_group.on_completion(connection);
        }
        if !self.counts(now.saturating_sub(latency)) {
            return;
        }
        self.all.ended.record(latency);
        let size = completion.submitted.length;
        let range = self.sizes.iter().position(|range| range.holds(size));
        let Some((named, member)) = self.named(connection) else { return };
        let late = completion.outcome != Outcome::Done
            || named.deadline.is_some_and(|deadline| latency > deadline);
        named.late += u64::from(late);
        let slowdown = member.0.slowdown(latency, size, member.1);
        named.latency.ended.record(latency);
        named.slowdown.ended.record_number(slowdown);
        if let Some(of_size) = range.and_then(|range| named.by_size.get_mut(range)) {
            of_size.latency.ended.record(latency);
            of_size.slowdown.ended.record_number(slowdown);
        }
    }

    /// Records an op that was submitted at the true time `now - age` and is unfinished at the end
    /// of the run.
    pub(crate) fn on_unfinished(&mut self, now: Time, connection: u32, size: u64, age: Span) {
        let submitted = now.saturating_sub(age);
        if submitted < self.warmup_end {
            self.startup.note(age);
        }
        if !self.counts(submitted) {
            return;
        }
        self.measured.note(age);
        self.by_group.on_unfinished(connection, age);
        self.all.note_unfinished(age, |ages| ages.record(age));
        let range = self.sizes.iter().position(|range| range.holds(size));
        let Some((named, member)) = self.named(connection) else { return };
        match named.deadline {
            Some(deadline) if age > deadline => named.late_unfinished += 1,
            _ => named.undecided += 1,
        }
        let slowdown = member.0.slowdown(age, size, member.1);
        let note = |latency: &mut Times, slowdowns: &mut Times| {
            latency.note_unfinished(age, |ages| ages.record(age));
            slowdowns.note_unfinished(age, |least| least.record_number(slowdown));
        };
        note(&mut named.latency, &mut named.slowdown);
        if let Some(of_size) = range.and_then(|range| named.by_size.get_mut(range)) {
            note(&mut of_size.latency, &mut of_size.slowdown);
        }
    }

    /// Returns the workload of a connection, if it has a name, and the inputs of its slowdowns.
    fn named(
        &mut self,
        connection: u32,
    ) -> Option<(&mut NamedTimes, (crate::slowdown::Ideal, PacketSizes))> {
        let Member { workload, ideal } = *self.members.get(connection as usize)?;
        Some((&mut self.named[workload? as usize], (ideal, self.packets)))
    }

    /// Adds the measurements of another part of the network, in any order.
    pub(crate) fn add(&mut self, other: &Self) {
        self.all.add(&other.all);
        for (named, more) in self.named.iter_mut().zip(&other.named) {
            named.add(more);
        }
        self.by_group.add(&other.by_group);
        self.ended += other.ended;
        self.last_end = self.last_end.max(other.last_end);
        self.startup.add(&other.startup);
        self.measured.add(&other.measured);
    }

    /// Returns, by group of connections, whether an op ended within the measured phase.
    pub(crate) fn ending(&self) -> &[bool] {
        &self.ending
    }

    /// Returns `true` if the drain waits for the unfinished op of `connection` that was submitted at
    /// `submitted`. The drain waits for any message of a trace, and for an op of the measured phase if
    /// another op of its group ended in that phase. `ended` is [`OpTimes::ending`] of all parts together.
    pub(crate) fn is_waited_for(&self, connection: u32, submitted: Time, ended: &[bool]) -> bool {
        let group = self.groups[connection as usize] as usize;
        self.traces[group] || (self.counts(submitted) && ended[group])
    }
}

/// Groups of connections whose ops are of one kind: of one workload and, with closed loops, of one size. If
/// no op of a group ends in the measured phase, the drain does not wait for the group. It always waits for
/// traces, because they have a last op.
#[derive(Default)]
pub(crate) struct Groups {
    /// By connection: its group.
    of: Arc<[u32]>,
    /// By group: whether its ops are the messages of a trace.
    traces: Arc<[bool]>,
}

impl Groups {
    /// Returns the groups of a plan's connections.
    pub(crate) fn of<F: AlgorithmFactory>(plan: &Plan<F>) -> Self {
        let mut in_trace = vec![false; plan.connections.len()];
        for demand in plan.demands.iter().filter(|demand| demand.is_trace) {
            in_trace[demand.connections.clone()].fill(true);
        }
        let mut known = BTreeMap::new();
        let mut traces = Vec::new();
        let group = |(connection, &is_trace): (&ConnectionPlan<F>, &bool)| {
            let load = match connection.load {
                Load::Closed { size, outstanding } => (0, size.get(), outstanding),
                Load::Open(_) => (1, 0, 0),
                Load::Round { group, .. } => (2, 0, group),
                Load::Job { job, .. } => (3, 0, job),
            };
            *known.entry((connection.workload, load, is_trace)).or_insert_with(|| {
                traces.push(is_trace);
                traces.len() as u32 - 1
            })
        };
        let of: Arc<[u32]> = plan.connections.iter().zip(&in_trace).map(group).collect();
        Self { of, traces: traces.into() }
    }
}
