//! Text summary of the workloads of a run: a table for several workloads, a line for a single one.

use apus_sim::bounds::Bounds;
use apus_sim::distribution::DistributionSummary;
use apus_sim::groups::{Common, Group, GroupTimes, GroupTotal, Share};
use apus_sim::measure::WorkloadSummary;
use apus_sim::summary::Summary;

use super::{bounds, distribution, number, stat};

/// Maximum number of workloads in the table.
const MAX_ROWS: usize = 64;

/// Text for a number that does not exist or was not measured.
const NONE: &str = "-";

/// Individually recorded ops of a workload.
#[derive(Clone, Copy, Default)]
pub struct Recorded {
    /// Number of ops of the measured phase, ended or not.
    pub ops: u64,
    /// Smallest and largest payload.
    pub sizes: Option<(u64, u64)>,
}

/// Returns the workloads of a run as a table with a header, and the totals of workloads with the same name, algorithm
/// or class. The table is empty if there is at most one workload. If `recorded` is given, with an entry per workload,
/// the table is for a page, which has room for more columns.
pub fn table(summary: &Summary, recorded: Option<&[Recorded]>) -> Vec<Vec<String>> {
    let groups = &summary.groups;
    if groups.len() < 2 {
        return Vec::new();
    }
    let shown = Shown {
        class: groups.iter().any(|group| group.class.is_some()),
        oldest: groups.iter().any(|group| group.share.unfinished_ops > 0),
        late: summary.workload.values().any(|workload| workload.late_lower.is_some()),
        page: recorded.is_some(),
    };
    let mut rows = vec![shown.header()];
    let place = |place: usize| recorded.and_then(|all| all.get(place)).copied();
    rows.extend(groups.iter().enumerate().take(MAX_ROWS).map(|(index, group)| {
        let times = summary.times_of_group(group);
        let late = times.slowdown.and_then(|_| summary.workload.get(&group.workload));
        shown.row(names(group), &group.share, times, late, place(index))
    }));
    if groups.len() > MAX_ROWS {
        let more = groups.len() - MAX_ROWS;
        rows.push(vec![format!("and {more} more: see --json")]);
    }
    rows.extend(summary.totals.iter().map(|total| {
        // Ops of workloads with the same name are measured together.
        let own = (total.by == Common::Workload).then_some(total.name.as_str());
        let times = own.map_or_else(GroupTimes::default, |name| summary.times_of(name));
        let late = own.and_then(|name| summary.workload.get(name));
        let of_total = |(index, group): (usize, &Group)| match total.by {
            Common::Workload => (group.workload == total.name).then(|| place(index)),
            Common::Algorithm => (group.algorithm == total.name).then(|| place(index)),
            Common::Class => {
                (group.class.as_deref() == Some(&total.name[..])).then(|| place(index))
            }
        };
        let all = groups.iter().enumerate().filter_map(of_total).flatten();
        let sum = recorded.map(|_| Recorded { ops: all.map(|one| one.ops).sum(), sizes: None });
        shown.row(names_of_total(total), &total.share, times, late, sum)
    }));
    rows
}

/// Returns the line of a single workload that is measured individually: its name and numbers.
pub fn single(summary: &Summary) -> Option<(String, String)> {
    let [group] = &summary.groups[..] else { return None };
    let workload = summary.workload.get(&group.workload)?;
    let class = group.class.as_ref().map_or(String::new(), |class| format!(", class {class}"));
    let text = format!("{}; {}{class}", of_workload(workload), group.algorithm);
    Some((group.workload.clone(), text))
}

/// Optional columns that only some runs need.
#[derive(Clone, Copy)]
struct Shown {
    class: bool,
    oldest: bool,
    late: bool,
    page: bool,
}

impl Shown {
    fn header(self) -> Vec<String> {
        let cells = [
            (true, "workload"),
            (true, "algorithm"),
            (self.class, "class"),
            (self.page, "op size, B"),
            (true, "ops"),
            (true, "unfinished"),
            (self.oldest, "oldest, us"),
            (true, "goodput, Gb/s"),
            (true, "share, %"),
            (true, "latency p50, us"),
            (true, "latency p99, us"),
            (self.page, "latency p99.9, us"),
            (true, "slowdown p99"),
            (self.late, "late, %"),
        ];
        written(cells.map(|(shown, cell)| (shown, cell.to_owned())))
    }

    fn row(
        self,
        [name, algorithm, class]: [&str; 3],
        share: &Share,
        times: GroupTimes<'_>,
        workload: Option<&WorkloadSummary>,
        recorded: Option<Recorded>,
    ) -> Vec<String> {
        let percent = |share: f64| number(share * 100.0);
        let oldest = Some(share.oldest_unfinished_us).filter(|_| share.unfinished_ops > 0);
        let p50 = |d: &DistributionSummary| stat(d, |d| d.p50);
        let p99 = |d: &DistributionSummary| stat(d, |d| d.p99);
        let p99_9 = |d: &DistributionSummary| stat(d, |d| d.p99_9);
        let sizes = recorded.and_then(|one| one.sizes).map(|(least, most)| {
            if least == most { least.to_string() } else { format!("{least} .. {most}") }
        });
        // Latencies cover the ops of the measured phase, including those that ended after it.
        let ops = recorded.map_or(share.ops, |one| one.ops);
        let cells = [
            (true, Some(name.to_owned())),
            (true, Some(algorithm.to_owned())),
            (self.class, Some(class.to_owned())),
            (self.page, sizes),
            (true, Some(ops.to_string())),
            (true, Some(share.unfinished_ops.to_string())),
            (self.oldest, oldest.map(number)),
            (true, Some(number(share.goodput_gbps))),
            (true, share.goodput_share.map(percent)),
            (true, times.op_latency_us.and_then(p50)),
            (true, times.op_latency_us.and_then(p99)),
            (self.page, times.op_latency_us.and_then(p99_9)),
            (true, times.slowdown.and_then(p99)),
            (self.late, workload.and_then(late)),
        ];
        written(cells.map(|(shown, cell)| (shown, cell.unwrap_or_else(|| NONE.to_owned()))))
    }
}

/// Returns the cells that are shown.
fn written<const N: usize>(cells: [(bool, String); N]) -> Vec<String> {
    cells.into_iter().filter_map(|(shown, cell)| shown.then_some(cell)).collect()
}

fn names(group: &Group) -> [&str; 3] {
    [&group.workload, &group.algorithm, group.class.as_deref().unwrap_or(NONE)]
}

fn names_of_total(total: &GroupTotal) -> [&str; 3] {
    let name = total.name.as_str();
    match total.by {
        Common::Workload => [name, "total", NONE],
        Common::Algorithm => ["total", name, NONE],
        Common::Class => ["total", NONE, name],
    }
}

/// Returns the share of ops that failed or missed their deadline, in percent; `None` without a deadline.
fn late(workload: &WorkloadSummary) -> Option<String> {
    let (lower, upper) = (workload.late_lower?, workload.late_upper?);
    Some(bounds(Bounds { lower, upper }.map(|share| share * 100.0)))
}

fn of_workload(workload: &WorkloadSummary) -> String {
    let late = late(workload).map_or(String::new(), |late| format!(" ({late} % of them late)"));
    let of = &workload.slowdown;
    let slowdown = match (stat(of, |d| d.p50), stat(of, |d| d.p99)) {
        (Some(p50), Some(p99)) => format!("; slowdown: median {p50}, p99 {p99}"),
        _ => String::new(),
    };
    format!(
        "goodput {} Gb/s, {} ops{late}: latency {}{slowdown}",
        number(workload.goodput_gbps),
        workload.ops,
        distribution(&workload.op_latency_us)
    )
}
