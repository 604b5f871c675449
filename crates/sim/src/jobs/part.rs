//! Times of the parts of a job, such as its collectives.

use std::collections::BTreeMap;

use apus_units::{Span, Time};
use serde::Serialize;

use super::rank::HostRank;
use crate::plan::JobPlan;

/// The parts of one name, such as all gradients of a training step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobPart {
    /// The name.
    pub name: &'static str,
    /// Number of parts.
    pub count: u64,
    /// Number of parts that have not ended.
    pub unfinished: u64,
    /// Sum of their sizes: S of a collective, or the bytes of a message.
    pub bytes: u64,
    /// Mean time of a part that has ended, from its first send to its last receive on any rank.
    pub mean_us: f64,
    /// The longest time.
    pub max_us: f64,
    /// Start of the first part, since the start of the job.
    pub first_us: f64,
    /// Latest end of a part so far, since the start of the job.
    pub last_us: f64,
}

/// Times of a part over all ranks.
#[derive(Clone, Copy)]
struct Times {
    start: Time,
    end: Time,
    left: u64,
}

/// Returns the times of the parts by name, ordered by the first part of each name.
pub(super) fn parts(job: &JobPlan, ranks: &[&HostRank]) -> Vec<JobPart> {
    let none = Times { start: Time::MAX, end: Time::ZERO, left: 0 };
    let mut times = vec![none; job.graph.parts().len()];
    for rank in ranks {
        let runs = rank.state.program().part_runs().zip(rank.state.part_times());
        for ((_, part), of) in runs {
            let Some(all) = part.and_then(|part| times.get_mut(part as usize)) else { continue };
            all.start = all.start.min(of.start);
            all.end = all.end.max(of.end);
            all.left += u64::from(of.left);
        }
    }
    let mut named: BTreeMap<&'static str, (usize, JobPart, f64)> = BTreeMap::new();
    for (part, times) in job.graph.parts().iter().zip(&times) {
        let place = named.len();
        let new = JobPart {
            name: part.name,
            count: 0,
            unfinished: 0,
            bytes: 0,
            mean_us: 0.0,
            max_us: 0.0,
            first_us: f64::INFINITY,
            last_us: 0.0,
        };
        let (_, all, sum) = named.entry(part.name).or_insert((place, new, 0.0));
        all.count += 1;
        all.bytes = all.bytes.saturating_add(part.bytes);
        if times.start < Time::MAX {
            all.first_us = all.first_us.min(times.start.since(job.start).as_us_f64());
        }
        if times.left > 0 {
            all.unfinished += 1;
            continue;
        }
        let took = if times.start == Time::MAX { Span::ZERO } else { times.end.since(times.start) };
        *sum += took.as_us_f64();
        all.max_us = all.max_us.max(took.as_us_f64());
        all.last_us = all.last_us.max(times.end.since(job.start).as_us_f64());
    }
    let mut all: Vec<_> = named.into_values().collect();
    all.sort_by_key(|(place, ..)| *place);
    let finish = |(_, part, sum): (usize, JobPart, f64)| {
        let ended = part.count - part.unfinished;
        let first_us = if part.first_us.is_finite() { part.first_us } else { 0.0 };
        JobPart { mean_us: sum / (ended as f64).max(1.0), first_us, ..part }
    };
    all.into_iter().map(finish).collect()
}
