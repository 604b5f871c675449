//! Results of jobs.

use apus_cc::AlgorithmFactory;
use apus_jobs::collectives::closed;
use apus_jobs::{ANY, Done};
use apus_units::{Span, Time};
use serde::Serialize;

use super::ideal;
use super::rank::HostRank;
use crate::columns::summary;
use crate::part::Part;
use crate::plan::{JobPlan, Plan};

/// Ranks, operations and messages that results name.
const NAMED: usize = 16;

const JOB: &str = "from the start of the job to its end";
const RANKS: &str = "mean over the ranks";

summary! {
    /// A job.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct JobSummary {
        /// name of the job
        pub name: String = fact("-"),
        /// start of the job to the end of its last operation; a send ends a job only if `done` is
        /// acknowledged, as its receive ends later otherwise; null if operations have not ended
        pub completion_us: Option<f64> = number(JOB),
        /// the least time: the closed form of the collective if all its messages have equal paths, otherwise
        /// the length of the critical path; both on the fabric without other traffic and queues; null if
        /// the job has more than 8 million operations or cannot end
        pub ideal_us: Option<f64> = number(JOB),
        /// closed form, or critical path; null without `ideal_us`
        pub ideal_source: Option<&'static str> = fact("-"),
        /// completion_us / ideal_us
        pub slowdown: Option<f64> = number(JOB),
        /// when a send is done: local (its last byte has left), delivered (its message has arrived; the sender
        /// hears of it after the propagation delay of the path), acknowledged (the sender has the
        /// acknowledgement)
        pub done: &'static str = fact("-"),
        /// ranks
        pub ranks: u64 = fact("-"),
        /// operations
        pub ops: u64 = fact("sum over ranks"),
        /// bytes of all messages
        pub bytes: u64 = fact("sum over ranks"),
        /// operations that have not ended
        pub unfinished: u64 = number("sum over ranks"),
        /// messages that no receive has taken
        pub unexpected: u64 = number("sum over ranks"),
        /// size of the collective * iterations * 8 / completion_us; null if the job is not a collective
        pub algorithm_bandwidth_gbps: Option<f64> = number(JOB),
        /// algorithm bandwidth times the factor of nccl-tests: 2(N-1)/N for an all-reduce, (N-1)/N for an
        /// all-gather, a reduce-scatter and an all-to-all, 1 for a broadcast; null for other jobs
        pub bus_bandwidth_gbps: Option<f64> = number(JOB),
        /// time in which a computation ran
        pub compute_us: f64 = number(RANKS),
        /// time in which no computation ran and a message of the rank was outstanding
        pub send_us: f64 = number(RANKS),
        /// rest of the time until the job ended: the rank waited for others
        pub wait_us: f64 = number(RANKS),
        /// time of each iteration, until the end of its last operation; of a file, one for the whole job
        pub iterations_us: Vec<f64> = list("-"),
        /// the ranks that waited least, for which the others waited: rank, host, end_us, compute_us, send_us,
        /// wait_us; at most 16
        pub stragglers: Vec<JobRank> = list("-"),
        /// operations that have not ended, in words, at most 16
        pub stuck: Vec<String> = list("-"),
        /// messages that no receive has taken, in words, at most 16
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
    /// Start of the job to the end of its last operation.
    pub end_us: f64,
    /// Time in which a computation ran.
    pub compute_us: f64,
    /// Time in which no computation ran and a message of the rank was outstanding.
    pub send_us: f64,
    /// Rest of the time until the job ended.
    pub wait_us: f64,
}

fn done_word(done: Done) -> &'static str {
    Done::ALL.iter().find(|(_, value)| *value == done).map_or("", |(word, _)| word)
}

/// Returns the results of all jobs of a plan at `now`.
pub(crate) fn summarize<F: AlgorithmFactory>(
    plan: &Plan<F>,
    parts: &mut [Part<F>],
    now: Time,
) -> Vec<JobSummary> {
    let ideals: Vec<_> = match parts.first_mut() {
        Some(part) => {
            let network = &mut part.world.network;
            plan.jobs.iter().map(|job| ideal::of(job, network, plan.sizes)).collect()
        }
        None => Vec::new(),
    };
    let mut all = Vec::new();
    for (number, (job, ideal)) in (0..).zip(plan.jobs.iter().zip(ideals)) {
        let hosts = parts.iter().flat_map(|part| &part.hosts);
        let ranks = hosts.filter_map(|host| host.jobs.as_deref()).flat_map(|jobs| jobs.ranks());
        let mut ranks: Vec<&HostRank> = ranks.filter(|rank| rank.job == number).collect();
        ranks.sort_unstable_by_key(|rank| rank.number);
        all.push(of_job(job, &ranks, ideal, now));
    }
    all
}

fn of_job(
    job: &JobPlan,
    ranks: &[&HostRank],
    ideal: Option<ideal::JobIdeal>,
    now: Time,
) -> JobSummary {
    let unfinished: u64 = ranks.iter().map(|rank| u64::from(rank.state.unfinished())).sum();
    let last = ranks.iter().map(|rank| rank.state.ended_at()).max().unwrap_or(job.start);
    let end = if unfinished == 0 { last.max(job.start) } else { now.max(job.start) };
    let whole = end.since(job.start);
    let completion = (unfinished == 0).then_some(whole);
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
        iterations_us: iterations(job, ranks),
        stragglers,
        stuck: ranks
            .iter()
            .flat_map(|rank| rank.state.stuck().map(move |op| (rank, op)))
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

fn of_rank(job: &JobPlan, rank: &HostRank, end: Time) -> JobRank {
    let whole = end.since(job.start);
    // The last sends of a rank may be done after the job, whose end is that of a receive.
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

/// Returns the times of the iterations that all ranks have ended.
fn iterations(job: &JobPlan, ranks: &[&HostRank]) -> Vec<f64> {
    let sections = ranks.iter().map(|rank| rank.state.program().sections()).max().unwrap_or(0);
    let mut began = job.start;
    let mut times = Vec::new();
    for section in 0..sections {
        let has = |rank: &&&HostRank| section < rank.state.program().sections();
        let ends = ranks.iter().filter(has).map(|rank| rank.state.section_ended_at(section));
        let Some(end) = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max())
        else {
            break;
        };
        times.push(end.since(began).as_us_f64());
        began = began.max(end);
    }
    times
}

fn stuck(rank: &HostRank, op: u32) -> String {
    let what = rank.state.program().describe(op);
    format!("rank {}, {what}: {}", rank.number, rank.state.progress(op).word())
}
