//! Operations of jobs for the table `job_ops`.

use apus_cc::AlgorithmFactory;

use super::rank::HostRank;
use crate::part::Part;
use crate::record::JobOpRecord;

/// Returns the first `limit` operations of all jobs that keep times.
pub(crate) fn records<F: AlgorithmFactory>(parts: &[Part<F>], limit: u64) -> Vec<JobOpRecord> {
    let hosts = parts.iter().flat_map(|part| &part.hosts);
    let ranks = hosts.filter_map(|host| host.jobs.as_deref()).flat_map(|jobs| jobs.ranks());
    let mut ranks: Vec<&HostRank> = ranks.collect();
    ranks.sort_unstable_by_key(|rank| (rank.job, rank.number));
    let mut all = Vec::new();
    for rank in ranks {
        let Some(times) = rank.state.times() else { continue };
        let room = limit.saturating_sub(all.len() as u64);
        for (op, times) in (0..).zip(times).take(usize::try_from(room).unwrap_or(usize::MAX)) {
            all.push(JobOpRecord {
                job: rank.job,
                rank: rank.number,
                op,
                source: rank.state.source(op).map(|(from, _)| from),
                start: times.start,
                end: times.end,
            });
        }
    }
    all
}
