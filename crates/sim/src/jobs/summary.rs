//! Results of jobs.

use std::collections::{BTreeMap, BTreeSet};

use apus_cc::AlgorithmFactory;
use apus_fabric::{Network, PortCounters};
use apus_jobs::collectives::closed;
use apus_jobs::{ANY, Done, Progress};
use apus_units::{PortId, Span, Time};
use apus_wire::Header;
use serde::Serialize;

use super::critical::{self, CriticalMessage, CriticalPath};
use super::ideal::{Costs, JobIdeal};
use super::part::{self, JobPart};
use super::rank::HostRank;
use crate::columns::summary;
use crate::part::Part;
use crate::plan::{JobPlan, Load, Plan};

/// Maximum number of ranks, operations and messages that results list.
const NAMED: usize = 16;

const JOB: &str = "from the start of the job to its end";
const RANKS: &str = "mean over the ranks";

summary! {
    /// A job.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct JobSummary {
        /// name of the job
        pub name: String = fact("-"),
        /// time from the start of the job to the end of its last operation; null if operations have not ended. The
        /// end of a send counts only if `done` is acknowledged or loggops; otherwise the receive of its message ends
        /// later
        pub completion_us: Option<f64> = number(JOB),
        /// least completion time on the fabric without other traffic and without queues, on paths that do not change.
        /// If all messages of a collective have equal paths, it is the closed form. Otherwise it is the longest of
        /// three times: the critical path; the time that the busiest NIC, or the busiest rank within its host, needs
        /// for its bytes; the computations of the busiest stream. If messages sent in turn, or shared NICs, make the
        /// closed form a lower bound (docs/jobs.md), it is the longest of all of these. null if the job has no closed
        /// form and more than 8 million operations, or if it cannot end
        pub ideal_us: Option<f64> = number(JOB),
        /// time that sets `ideal_us`: closed form, critical path, bytes of the busiest NIC, bytes of the busiest rank
        /// within its host, or computations of the busiest stream; null without `ideal_us`
        pub ideal_source: Option<&'static str> = fact("-"),
        /// completion_us / ideal_us
        pub slowdown: Option<f64> = number(JOB),
        /// when a send is done: local (its last byte has left), delivered (its message has arrived; the sender learns
        /// this after the propagation delay of the path), acknowledged (the sender has the acknowledgement), or
        /// loggops (as the host model defines)
        pub done: &'static str = fact("-"),
        /// number of ranks
        pub ranks: u64 = fact("-"),
        /// number of operations
        pub ops: u64 = fact("sum over ranks"),
        /// bytes of all messages
        pub bytes: u64 = fact("sum over ranks"),
        /// operations that have not ended
        pub unfinished: u64 = number("sum over ranks"),
        /// messages that no receive has taken
        pub unexpected: u64 = number("sum over ranks"),
        /// size of the collective * iterations * 8 / completion_us; null if the job is not a collective, or has not
        /// ended
        pub algorithm_bandwidth_gbps: Option<f64> = number(JOB),
        /// algorithm bandwidth times the factor of nccl-tests: 2(N-1)/N for an all-reduce, (N-1)/N for an
        /// all-gather, a reduce-scatter and an all-to-all, 1 for a broadcast; null for other jobs
        pub bus_bandwidth_gbps: Option<f64> = number(JOB),
        /// time in which a computation of the rank ran
        pub compute_us: f64 = number(RANKS),
        /// time in which a message of the rank was outstanding and no computation ran
        pub send_us: f64 = number(RANKS),
        /// remaining time until the job ended, in which the rank waited for other ranks
        pub wait_us: f64 = number(RANKS),
        /// time of each iteration, from the end of the previous iteration to the end of its last operation; one time
        /// for the whole job if the job is from a file
        pub iterations_us: Vec<f64> = list("-"),
        /// the parts of a generated job by name, such as the collectives of a training step: name, count, unfinished,
        /// bytes (sum of S of collectives or of message sizes), mean_us and max_us (from the first send to the last
        /// receive of a part, on any rank), first_us (start of the first part) and last_us (end of the last part),
        /// both since the start of the job
        pub parts: Vec<JobPart> = list("-"),
        /// number of operations and messages on the critical path, the chain without a gap that ended the job; null
        /// if operations have not ended, or if the job has more than 8 million operations
        pub critical_steps: Option<u64> = number(JOB),
        /// time of the computations on the critical path
        pub critical_compute_us: Option<f64> = number(JOB),
        /// time that the messages of the critical path need on the fabric without other traffic, host times of the
        /// LogGOPS model included
        pub critical_wire_us: Option<f64> = number(JOB),
        /// further time of the messages of the critical path: waits for other messages of the rank, congestion
        /// windows and queues
        pub critical_delay_us: Option<f64> = number(JOB),
        /// messages of the critical path, those with the largest delay first, at most 16: from, to, op (of the
        /// sender), bytes, start_us, end_us, ideal_us, delay_us, link (port of the path in which bytes spent most
        /// time on average; null within a host, and if packets take several paths)
        pub critical_messages: Vec<CriticalMessage> = list("-"),
        /// the ranks that waited least, so that other ranks waited for them: rank, host, end_us, compute_us, send_us,
        /// wait_us; at most 16
        pub stragglers: Vec<JobRank> = list("-"),
        /// operations that have not ended, as text; at most 16
        pub stuck: Vec<String> = list("-"),
        /// messages that no receive has taken, as text; at most 16
        pub leftover: Vec<String> = list("-"),
    }
}

/// How a rank spent its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JobRank {
    /// Its number.
    pub rank: u32,
    /// Its host.
    pub host: u32,
    /// Time from the start of the job to the end of the rank's last operation.
    pub end_us: f64,
    /// Time in which a computation ran.
    pub compute_us: f64,
    /// Time in which no computation ran and a message of the rank was outstanding.
    pub send_us: f64,
    /// Remaining time until the job ended.
    pub wait_us: f64,
}

fn done_word(done: Done) -> &'static str {
    Done::ALL.iter().find(|(_, value)| *value == done).map_or("", |(word, _)| word)
}

/// Returns the results of all jobs of a plan at `now`; `ports` has the counters of all ports.
pub(crate) fn summarize<F: AlgorithmFactory>(
    plan: &Plan<F>,
    parts: &[Part<F>],
    ports: &[PortCounters],
    now: Time,
) -> Vec<JobSummary> {
    let mut all = Vec::new();
    for (number, job) in (0..).zip(&plan.jobs) {
        let Some(part) = parts.first() else { break };
        let network = &part.world.network;
        let first = plan.connections.get(job.connections.start);
        let spreads = first.is_some_and(|connection| connection.spread.is_some());
        let costs = Costs::new(job, network, (plan.sizes, spreads), plan.host.loggops);
        let hosts = parts.iter().flat_map(|part| &part.hosts);
        let ranks = hosts.filter_map(|host| host.jobs.as_deref()).flat_map(|jobs| jobs.ranks());
        let mut ranks: Vec<&HostRank> = ranks.filter(|rank| rank.job == number).collect();
        ranks.sort_unstable_by_key(|rank| rank.number);
        let until = if job.done == Done::LogGops { now } else { Time::MAX };
        let has_ended = |rank: &&HostRank| rank.state.is_done() && rank.state.ended_at() <= until;
        let ended = ranks.iter().all(has_ended);
        let costs_of_path = costs.as_ref().filter(|_| ended);
        let path = costs_of_path.and_then(|costs| critical::path(job, &ranks, costs));
        let ideal = costs.as_ref().and_then(Costs::ideal);
        let mut summary = of_job(job, &ranks, ideal, path, (now, until));
        name_links(plan, job, network, ports, &mut summary.critical_messages);
        all.push(summary);
    }
    all
}

/// Sets, for each message, the port of its path in which bytes spent most time on average.
fn name_links<F: AlgorithmFactory>(
    plan: &Plan<F>,
    job: &JobPlan,
    network: &Network<Header, F::Switch>,
    ports: &[PortCounters],
    messages: &mut [CriticalMessage],
) {
    let pairs: BTreeSet<(u32, u32)> = messages.iter().map(|of| (of.from, of.to)).collect();
    let mut names: BTreeMap<(u32, u32), Option<String>> = BTreeMap::new();
    // The first connection of each pair of ranks on different hosts represents the pair, if its packets take one path.
    for index in job.connections.clone() {
        let Some(connection) = plan.connections.get(index) else { break };
        let (&Load::Job { from, to, .. }, None) = (&connection.load, &connection.spread) else {
            continue;
        };
        if !pairs.contains(&(from, to)) {
            continue;
        }
        names.entry((from, to)).or_insert_with(|| {
            let (source, target) = job.terminals(from, to);
            let path = network.path(source, target, index as u64, 0).ok()?;
            let time = |port: &PortId| {
                let counters = &ports[port.index()];
                counters.byte_time as f64 / counters.sent.bytes.max(1) as f64
            };
            let slowest = path.into_iter().max_by(|a, b| {
                // Of equal ports, the first one is taken.
                time(a).total_cmp(&time(b)).then(b.cmp(a))
            });
            slowest.map(|port| network.port_name(port))
        });
    }
    for message in messages {
        message.link = names.get(&(message.from, message.to)).cloned().flatten();
    }
}

fn of_job(
    job: &JobPlan,
    ranks: &[&HostRank],
    ideal: Option<JobIdeal>,
    path: Option<CriticalPath>,
    (now, until): (Time, Time),
) -> JobSummary {
    let last = ranks.iter().map(|rank| rank.state.ended_at()).max().unwrap_or(job.start);
    let unfinished: u64 = match last > until {
        true => ranks.iter().map(|rank| rank.unfinished(until).count() as u64).sum(),
        false => ranks.iter().map(|rank| u64::from(rank.state.unfinished())).sum(),
    };
    let has_ended = unfinished == 0 && last <= until;
    let end = if has_ended { last.max(job.start) } else { now.max(job.start) };
    let whole = end.since(job.start);
    let completion = has_ended.then_some(whole);
    let times: Vec<JobRank> = ranks.iter().map(|rank| of_rank(job, rank, end)).collect();
    let mean =
        |of: fn(&JobRank) -> f64| times.iter().map(of).sum::<f64>() / (times.len() as f64).max(1.0);
    let mut stragglers = times.clone();
    stragglers.sort_by(|a, b| a.wait_us.total_cmp(&b.wait_us).then(a.rank.cmp(&b.rank)));
    stragglers.truncate(NAMED);
    let seconds = completion.map(Span::as_secs_f64).filter(|seconds| *seconds > 0.0);
    let collective = job.collective.as_ref().zip(completion);
    let algorithm = collective.zip(seconds).map(|((collective, _), seconds)| {
        collective.bytes as f64 * f64::from(collective.iterations) * 8e-9 / seconds
    });
    let bus = collective.and_then(|(collective, time)| closed::bus_bandwidth(collective, time));
    let unexpected = || {
        ranks.iter().flat_map(|rank| rank.state.unexpected().map(move |message| (rank, message)))
    };
    let ideal_us = ideal.map(|ideal| ideal.time.as_us_f64());
    let completion_us = completion.map(Span::as_us_f64);
    let least = ideal_us.filter(|ideal| *ideal > 0.0);
    JobSummary {
        name: job.name.clone(),
        completion_us,
        ideal_us,
        ideal_source: ideal.map(|ideal| ideal.source),
        slowdown: completion_us.zip(least).map(|(time, least)| time / least),
        done: done_word(job.done),
        ranks: u64::from(job.graph.ranks()),
        ops: job.graph.ops(),
        bytes: job.graph.bytes(),
        unfinished,
        unexpected: unexpected().count() as u64,
        algorithm_bandwidth_gbps: algorithm,
        bus_bandwidth_gbps: bus.map(|bits| bits * 1e-9),
        compute_us: mean(|rank| rank.compute_us),
        send_us: mean(|rank| rank.send_us),
        wait_us: mean(|rank| rank.wait_us),
        iterations_us: iterations(job, ranks, until),
        parts: part::parts(job, ranks),
        critical_steps: path.as_ref().map(|path| path.steps),
        critical_compute_us: path.as_ref().map(|path| path.computing.as_us_f64()),
        critical_wire_us: path.as_ref().map(|path| path.wire.as_us_f64()),
        critical_delay_us: path.as_ref().map(|path| path.delayed.as_us_f64()),
        critical_messages: path.map(|path| most_delayed(path.messages)).unwrap_or_default(),
        stragglers,
        stuck: ranks
            .iter()
            .flat_map(|rank| rank.unfinished(until).map(move |op| (rank, op)))
            .take(NAMED)
            .map(|(rank, op)| stuck(rank, op))
            .collect(),
        leftover: unexpected()
            .take(NAMED)
            .map(|(rank, message)| {
                let tag =
                    if message.tag == ANY { "any".to_owned() } else { message.tag.to_string() };
                let (bytes, from) = (message.bytes, message.from);
                format!("rank {}: {bytes} B from rank {from}, tag {tag}", rank.number)
            })
            .collect(),
    }
}

/// Returns the messages with the largest delays.
fn most_delayed(mut messages: Vec<CriticalMessage>) -> Vec<CriticalMessage> {
    messages.sort_by(|a, b| b.delay_us.total_cmp(&a.delay_us));
    messages.truncate(NAMED);
    messages
}

fn of_rank(job: &JobPlan, rank: &HostRank, end: Time) -> JobRank {
    let whole = end.since(job.start);
    // The last sends of a rank may be done after the end of the job, which is that of a receive.
    let later = rank.ended_at.map_or(Span::ZERO, |at| at.since(end));
    let sending = rank.sending.saturating_sub(later);
    let waited = whole.saturating_sub(rank.computing).saturating_sub(sending);
    JobRank {
        rank: rank.number,
        host: job.hosts[rank.number as usize].get(),
        end_us: rank.state.ended_at().since(job.start).as_us_f64(),
        compute_us: rank.computing.as_us_f64(),
        send_us: sending.as_us_f64(),
        wait_us: waited.as_us_f64(),
    }
}

/// Returns the times of the iterations that have ended on all ranks.
fn iterations(job: &JobPlan, ranks: &[&HostRank], until: Time) -> Vec<f64> {
    let sections = ranks.iter().map(|rank| rank.state.program().sections()).max().unwrap_or(0);
    let mut began = job.start;
    let mut times = Vec::new();
    for section in 0..sections {
        let has = |rank: &&&HostRank| section < rank.state.program().sections();
        let ends = ranks.iter().filter(has).map(|rank| rank.state.section_ended_at(section));
        let end = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
        let Some(end) = end.filter(|end| *end <= until) else { break };
        times.push(end.since(began).as_us_f64());
        began = began.max(end);
    }
    times
}

fn stuck(rank: &HostRank, op: u32) -> String {
    let what = rank.state.program().describe(op);
    // The model may know the end of an operation before it is due: such an operation has only started.
    let progress = rank.state.progress(op).min(Progress::Started);
    format!("rank {}, {what}: {}", rank.number, progress.word())
}
