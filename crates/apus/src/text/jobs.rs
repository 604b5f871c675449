//! Jobs: completion times, and how the ranks spent them.

use apus_sim::bounds::median;
use apus_sim::jobs::JobSummary;

use super::number;

/// Maximum number of operations and messages that a summary names.
const NAMED: usize = 5;

/// Returns the rows of a job: name and text.
pub(super) fn rows(job: &JobSummary) -> Vec<Vec<String>> {
    let row = |name: &str, text: String| vec![name.to_owned(), text];
    let mut rows = vec![row(&format!("job {}", job.name), completion(job))];
    rows.push(row(
        "",
        format!(
            "per rank {} us computing, {} us sending, {} us waiting; a send is done when {}",
            number(job.compute_us),
            number(job.send_us),
            number(job.wait_us),
            done(job.done)
        ),
    ));
    rows.extend(critical(job).into_iter().map(|text| row("", text)));
    for part in
        job.parts.iter().filter(|_| job.parts.len() > 1 || job.parts.iter().any(|p| p.count > 1))
    {
        let (count, name) = (part.count, part.name);
        let (mean, max) = (number(part.mean_us), number(part.max_us));
        rows.push(row("", format!("{count} {name}: mean {mean} us, max {max} us")));
    }
    rows.extend(iterations(&job.iterations_us).map(|text| row("", text)));
    if let Some(first) = job.stragglers.first() {
        let text = format!(
            "rank {} on host {} waited least, for {} us",
            first.rank,
            first.host,
            number(first.wait_us)
        );
        rows.push(row("", text));
    }
    for (title, total, list) in
        [("STUCK", job.unfinished, &job.stuck), ("NOT RECEIVED", job.unexpected, &job.leftover)]
    {
        let named = list.iter().take(NAMED);
        rows.extend(named.map(|item| row("", format!("{title}: {item}"))));
        let more = total.saturating_sub(NAMED as u64);
        if more > 0 {
            rows.push(row("", format!("{title}: {more} more; see `jobs` in summary.json")));
        }
    }
    rows
}

/// Returns the durations of the iterations, if there are several.
fn iterations(times: &[f64]) -> Option<String> {
    let (count, most) = (times.len(), times.iter().copied().fold(0.0, f64::max));
    let median = median(times.to_vec()).filter(|_| count > 1)?;
    Some(format!("{count} iterations: median {} us, max {} us", number(median), number(most)))
}

/// Returns the critical path, and the message that was delayed most.
fn critical(job: &JobSummary) -> Vec<String> {
    let (Some(steps), Some(compute), Some(wire), Some(delay)) =
        (job.critical_steps, job.critical_compute_us, job.critical_wire_us, job.critical_delay_us)
    else {
        return Vec::new();
    };
    let mut lines = vec![format!(
        "critical path of {steps} steps: {} us computing, {} us messages without other traffic, {} us held up",
        number(compute),
        number(wire),
        number(delay)
    )];
    if let Some(first) = job.critical_messages.first().filter(|message| message.delay_us > 0.0) {
        let link =
            first.link.as_ref().map_or(String::new(), |link| format!("; busiest port {link}"));
        lines.push(format!(
            "held up most: {} B from rank {} to rank {} at {} us, by {} us{link}",
            first.bytes,
            first.from,
            first.to,
            number(first.start_us),
            number(first.delay_us)
        ));
    }
    lines
}

fn done(word: &str) -> &'static str {
    match word {
        "local" => "its last byte has left",
        "acknowledged" => "it is acknowledged",
        "loggops" => "the LogGOPS model of its host says so",
        _ => "its message has arrived",
    }
}

/// Returns the completion time with the ideal one, and the bandwidths of a collective.
fn completion(job: &JobSummary) -> String {
    let mut text = match job.completion_us {
        Some(time) => format!("{} us", number(time)),
        None => {
            format!("NOT COMPLETE: {} of {} operations have not ended", job.unfinished, job.ops)
        }
    };
    if let (Some(ideal), Some(source)) = (job.ideal_us, job.ideal_source) {
        text += &format!("; ideal {} us ({source})", number(ideal));
    }
    if let Some(slowdown) = job.slowdown {
        text += &format!(", {slowdown:.3} times as long");
    }
    if let Some(gbps) = job.algorithm_bandwidth_gbps {
        text += &format!("; algorithm bandwidth {} Gb/s", number(gbps));
    }
    if let Some(gbps) = job.bus_bandwidth_gbps {
        text += &format!(", bus bandwidth {} Gb/s", number(gbps));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::iterations;

    #[test]
    fn the_median_of_two_iterations_lies_between_them() {
        let text = iterations(&[30.0, 10.0]).expect("several");
        assert_eq!(text, "2 iterations: median 20 us, max 30 us");
        assert_eq!(iterations(&[30.0]), None);
    }
}
