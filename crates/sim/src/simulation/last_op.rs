//! The last op of a run of traces: when the run is over, and its makespan.

use apus_cc::AlgorithmFactory;
use apus_units::{Span, Time};

use super::Simulation;
use crate::jobs::HostJobs;

impl<F: AlgorithmFactory> Simulation<F> {
    /// Returns `true` if the measured phase ends now because all ops have ended.
    pub(super) fn is_over(&self) -> bool {
        let warm = self.now() > Time::ZERO + self.plan.warmup;
        let traces = || self.plan.trace_ops.is_none() || self.have_all_ops_ended();
        // A job may be done before the last of its messages is acknowledged.
        let jobs = || self.jobs().all(HostJobs::is_over);
        self.plan.ends_with_ops && warm && traces() && jobs()
    }

    /// Returns the end of the measured phase. If the phase ends with the ops, that is the end of the last op
    /// or of the last operation of a job, which may compute or handle a message after the last op. Otherwise
    /// it is the current time.
    pub(super) fn measured_end(&self) -> Time {
        if !self.is_over() {
            return self.now();
        }
        self.jobs().map(HostJobs::last_end).fold(self.last_end(), Time::max)
    }

    /// Returns `true` if every op of a run of traces has ended.
    fn have_all_ops_ended(&self) -> bool {
        let ended: u64 = self.parts.iter().map(|part| part.world.op_times.ended).sum();
        self.plan.trace_ops.is_some_and(|ops| ended >= ops)
    }

    /// Returns `true` if every operation of every job is done.
    pub(super) fn have_all_jobs_ended(&self) -> bool {
        self.jobs().all(|jobs| jobs.unfinished() == 0)
    }

    fn jobs(&self) -> impl Iterator<Item = &HostJobs> {
        let hosts = self.parts.iter().flat_map(|part| &part.hosts);
        hosts.filter_map(|host| host.jobs.as_deref())
    }

    /// Returns the operations of jobs that are done, and their total number; `None` without jobs.
    pub(super) fn operations(&self) -> Option<(u64, u64)> {
        if self.plan.jobs.is_empty() {
            return None;
        }
        let all = self.plan.jobs.iter().map(|job| job.graph.ops()).sum::<u64>();
        let left = self.jobs().map(HostJobs::operations_left);
        Some((all.saturating_sub(left.sum()), all))
    }

    /// Returns the end of the last op.
    fn last_end(&self) -> Time {
        let ends = self.parts.iter().map(|part| part.world.op_times.last_end);
        ends.max().unwrap_or(Time::ZERO)
    }

    /// Returns the time from the start of the first message to the end of the last op, or to the current time
    /// if ops have not ended. The second value is whether all ops have ended.
    pub(super) fn makespan(&self) -> (Span, bool) {
        let starts = self.plan.connections.iter().map(|connection| connection.start);
        let complete = self.have_all_ops_ended();
        let end = if complete { self.last_end() } else { self.now() };
        (end.since(starts.min().unwrap_or(end)), complete)
    }
}
