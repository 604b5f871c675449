//! The drain: the run continues after the measured phase until the ops of that phase have ended.
//!
//! The load continues as before, so that these ops meet the same congestion, but only the times of these ops
//! count. The drain waits for all jobs and for all ops of traces, including those of the warm-up, because
//! traces have a last op. It does not wait for a group of connections of which no op ended within the
//! measured phase: the ops of long flows end long after the run.

use apus_cc::AlgorithmFactory;
use apus_units::{Span, Time};

use super::Simulation;
use crate::Progress;
use crate::error::RunError;
use crate::host::Host;
use crate::summary::DrainSummary;
use crate::team::Team;
use crate::watch::Watcher;

/// Number of stops per elapsed length of the drain, to check for unfinished ops. deviation: no source;
/// rationale: at most an eighth of the drain is simulated after its last op has ended.
const STOPS_PER_LENGTH: u64 = 8;
/// Number of time windows before the first stop. deviation: no source; rationale: a window is the smallest
/// delay of a link, so 16 windows are one or two RTTs, and few ops end sooner.
const FIRST_STOP_WINDOWS: u64 = 16;
/// Divisor of the length of the measured phase; the first stop is not earlier than the quotient. deviation:
/// no source; rationale: an earlier stop would save at most 0.1 % of a run.
const FIRST_STOP_SHARE: u64 = 1_000;

/// Reason for the end of the drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainEnd {
    /// Every op for which the drain waits has ended.
    Complete,
    /// The drain has reached its limit.
    Limit,
    /// No packet was delivered for as long as the watchdog allows.
    Stuck,
    /// The user ended the run, before or during the drain.
    Interrupted,
}

/// Result of the drain.
pub(super) struct Drained {
    pub(super) ended_by: DrainEnd,
    /// Reason why the drain is stuck or was interrupted.
    pub(super) why: Option<String>,
    limit: Span,
    until: Time,
}

impl Drained {
    pub(super) fn summary(&self, measured_end: Time) -> DrainSummary {
        let ended_by = match self.ended_by {
            DrainEnd::Complete => "complete",
            DrainEnd::Limit => "limit",
            DrainEnd::Stuck => "stuck",
            DrainEnd::Interrupted => "interrupted",
        };
        DrainSummary {
            seconds: self.until.since(measured_end).as_secs_f64(),
            limit_s: self.limit.as_secs_f64(),
            ended_by,
        }
    }
}

/// Position of a source of ops: part, host of the part, source of the host.
#[derive(Clone, Copy, Default)]
struct Cursor {
    part: usize,
    host: usize,
    source: usize,
}

impl<F: AlgorithmFactory> Simulation<F> {
    /// Runs the ops of the measured phase, which has ended at `end`, until they end. Then records the unfinished ops.
    pub(super) fn drain(
        &mut self,
        (name, end): (&str, Time),
        interrupted: bool,
        team: &mut Team<F>,
        watcher: &mut Watcher,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Drained, RunError> {
        for part in &mut self.parts {
            part.world.op_times.end_measured(end);
            // The summary already has the measurements of workloads.
            part.world.workloads = None;
            if let Some(recorder) = &mut part.world.recorder {
                recorder.end_measured(end);
            }
        }
        let limit = self.plan.drain;
        let mut drained = Drained { ended_by: DrainEnd::Interrupted, why: None, limit, until: end };
        if !interrupted {
            self.run_drain(&mut drained, (name, end), team, watcher, progress)?;
        }
        drained.until = self.now();
        self.look_for_stalls_now(drained.until, name);
        self.note_unfinished();
        Ok(drained)
    }

    fn run_drain(
        &mut self,
        drained: &mut Drained,
        (name, end): (&str, Time),
        team: &mut Team<F>,
        watcher: &mut Watcher,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), RunError> {
        let ended = self.groups_with_ends();
        let last = end.saturating_add(drained.limit);
        let measured = end.since(Time::ZERO + self.plan.warmup);
        let window = self.parts[0].world.network.smallest_delay();
        let first =
            (window * FIRST_STOP_WINDOWS).max(measured / FIRST_STOP_SHARE).max(Span::from_ps(1));
        let mut cursor = Cursor::default();
        let mut further = None;
        loop {
            if self.have_all_jobs_ended() && !self.is_waited_for(&mut cursor, &ended) {
                drained.ended_by = DrainEnd::Complete;
                return Ok(());
            }
            let now = self.now();
            if now >= last {
                drained.ended_by = DrainEnd::Limit;
                return Ok(());
            }
            if now == end {
                further = self.plan.further.as_deref().map(|ops| self.begin_further(ops));
            }
            let step = first.max(now.since(end) / STOPS_PER_LENGTH);
            let next = now.saturating_add(step).min(last);
            if let Some(further) = &mut further {
                self.extend_loops(further, next)?;
            }
            let stopped = self.run_changes(name, next, team, watcher, progress)?;
            if let Some(why) = stopped {
                let stuck = !watcher.is_interrupted();
                drained.ended_by = if stuck { DrainEnd::Stuck } else { DrainEnd::Interrupted };
                drained.why = Some(why);
                return Ok(());
            }
        }
    }

    /// Runs all events before `end` and stops for changes of links and paths.
    fn run_changes(
        &mut self,
        name: &str,
        end: Time,
        team: &mut Team<F>,
        watcher: &mut Watcher,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<String>, RunError> {
        while let Some(at) = self.next_change().filter(|&at| at <= end) {
            if let Some(why) = self.run_until(at, team, watcher, progress)?.why() {
                return Ok(Some(why));
            }
            self.change_links(at);
            self.reroutes.apply(at, &mut self.parts);
            self.look_for_stalls(at, name);
        }
        Ok(self.run_until(end, team, watcher, progress)?.why())
    }

    /// By group of connections: whether an op ended within the measured phase, in any part.
    fn groups_with_ends(&self) -> Vec<bool> {
        let mut ended = self.parts[0].world.op_times.ending().to_vec();
        for part in &self.parts[1..] {
            for (all, one) in ended.iter_mut().zip(part.world.op_times.ending()) {
                *all |= one;
            }
        }
        ended
    }

    /// Returns `true` if an op for which the drain waits has not ended. `cursor` moves past sources without
    /// such an op; they need no second check, because new ops do not count.
    fn is_waited_for(&self, cursor: &mut Cursor, ended: &[bool]) -> bool {
        while let Some(part) = self.parts.get(cursor.part) {
            while let Some(host) = part.hosts.get(cursor.host) {
                while cursor.source < host.application.sources() {
                    let mut found = false;
                    self.open_ops(host, cursor.source, |connection, _, age| {
                        let submitted = part.world.now.saturating_sub(age);
                        found |= part.world.op_times.is_waited_for(connection, submitted, ended);
                    });
                    if found {
                        return true;
                    }
                    cursor.source += 1;
                }
                *cursor = Cursor { host: cursor.host + 1, source: 0, ..*cursor };
            }
            *cursor = Cursor { part: cursor.part + 1, ..Cursor::default() };
        }
        false
    }

    /// Calls `visit` with the connection, the size and the age of each unfinished op of a source.
    fn open_ops(&self, host: &Host<F>, source: usize, mut visit: impl FnMut(u32, u64, Span)) {
        let now = self.now();
        let times = (now, host.clocks.host.read(now));
        host.application.open_ops(source, times, &host.endpoint, |flow, size, age| {
            visit(host.flows[flow.index()].connection, size, age);
        });
    }

    /// Records every unfinished op.
    fn note_unfinished(&mut self) {
        let now = self.now();
        for index in 0..self.parts.len() {
            let mut open = Vec::new();
            for host in &self.parts[index].hosts {
                let local = host.clocks.host.read(now);
                for flow in host.jobs.iter().flat_map(|jobs| jobs.sending_flows()) {
                    let connection = host.flows[flow.index()].connection;
                    let ops = host.endpoint.open_ops(flow);
                    open.extend(ops.map(|(op, at)| (connection, op.length, local.since(at))));
                }
                for source in 0..host.application.sources() {
                    self.open_ops(host, source, |connection, size, age| {
                        open.push((connection, size, age));
                    });
                }
            }
            let world = &mut self.parts[index].world;
            for (connection, size, age) in open {
                world.op_times.on_unfinished(now, connection, size, age);
                if let Some(recorder) = &mut world.recorder {
                    recorder.on_unfinished(now, connection, size, age);
                }
            }
        }
    }
}
