//! Order of a comparison's algorithms by job completion time.

use apus_scenario::Setup;

use super::table::Contestant;
use crate::text::number;

/// Returns a line for each job: the algorithms ordered by their medians, the fastest first. Algorithms that did not
/// complete the job with every seed come last.
pub(super) fn by_job_time(setup: &Setup, contestants: &[Contestant]) -> Vec<String> {
    if contestants.len() < 2 {
        return Vec::new();
    }
    let of = |(job, name): (usize, &str)| {
        let metric = format!("jobs.{job}.completion_us");
        let pointer = format!("/jobs/{job}/completion_us");
        let (mut complete, mut others) = (Vec::new(), Vec::new());
        for one in contestants {
            let ended = |summary: &&serde_json::Value| {
                summary.pointer(&pointer).is_some_and(serde_json::Value::is_number)
            };
            let all = one.summaries.len();
            // The run failed or was interrupted.
            let missing = one.summaries.iter().filter(|summary| summary.is_none()).count();
            let count = one.summaries.iter().flatten().filter(ended).count();
            match one.spread(&metric).and_then(|spread| spread.median.value()) {
                Some(median) if count == all => complete.push((median, one.label.as_str())),
                _ if missing > 0 => {
                    let label = &one.label;
                    others.push(format!("{label} without a result with {missing} of {all} seeds"));
                }
                _ => others.push(format!(
                    "{} not complete with {} of {all} seeds",
                    one.label,
                    all - count
                )),
            }
        }
        complete.sort_by(|a, b| a.0.total_cmp(&b.0));
        let fastest = complete.first().map_or(f64::NAN, |(time, _)| *time);
        let line = complete.iter().enumerate().map(|(place, (time, label))| match place {
            0 => format!("{label} {} us", number(*time)),
            _ if fastest == 0.0 => format!("{label} {} us", number(*time)),
            _ => format!("{label} {} us ({} times as long)", number(*time), number(time / fastest)),
        });
        let line: Vec<String> = line.chain(others).collect();
        let order = if complete.is_empty() { "" } else { ", fastest first" };
        format!("job {name}{order}: {}", line.join(", "))
    };
    setup.job_names().enumerate().map(of).collect()
}
