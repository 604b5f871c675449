//! The numbers of a summary by name, for checks.

use std::sync::LazyLock;

use super::{Column, Kind, TABLES};

/// Metrics of every run: the paths of a summary's JSON that checks may name.
pub static METRICS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let whole = declared().filter(|column| !is_scoped(column));
    let filled = |column: &'static Column| -> Vec<&'static str> {
        match column.name.strip_suffix("<stat>") {
            Some(path) => STATS.iter().map(|stat| &*format!("{path}{stat}").leak()).collect(),
            None => vec![column.name.as_str()],
        }
    };
    whole.flat_map(filled).collect()
});

/// Metrics of parts of a run: `<name>` stands for a name in the scenario, `<class>` for a traffic class, `<bucket>`
/// for the lower end in percent of 10 % of utilisation, `<stat>` for one of [`STATS`], `<n>` for the number of an
/// entry, from 0.
pub static SCOPED: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| declared().filter(|c| is_scoped(c)).map(|c| c.name.as_str()).collect());

fn declared() -> impl Iterator<Item = &'static Column> {
    TABLES[0].columns.iter().filter(|column| column.kind != Kind::Fact)
}

fn is_scoped(column: &Column) -> bool {
    column.name.trim_end_matches("<stat>").contains('<')
}

/// Buckets of utilisation, by their lower ends in percent.
const BUCKETS: [&str; 10] = ["0", "10", "20", "30", "40", "50", "60", "70", "80", "90"];

/// Statistics of a distribution.
pub const STATS: [&str; 10] =
    ["count", "mean", "min", "p1", "p10", "p50", "p90", "p99", "p99_9", "max"];

/// Names that a scenario gives to the parts of its runs that have their own numbers.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Workloads that are measured individually.
    pub workloads: Vec<String>,
    /// Number of ranges of op sizes.
    pub sizes: usize,
    /// Groups of ports.
    pub groups: Vec<String>,
    /// Traffic classes.
    pub classes: Vec<String>,
    /// Comparisons of classes.
    pub comparisons: Vec<String>,
    /// Settling times.
    pub settles: Vec<String>,
    /// Spans of time, each with the name of its quantity.
    pub spans: Vec<(String, &'static str)>,
}

impl Names {
    /// Returns the names of all metrics of these parts.
    #[must_use]
    pub fn metrics(&self) -> Vec<String> {
        let mut all = Vec::new();
        for pattern in SCOPED.iter() {
            let spans = self.spans.iter().filter(|(_, of)| pattern.split('.').nth(2) == Some(of));
            let spans: Vec<String> = spans.map(|(name, _)| name.clone()).collect();
            let names = match pattern.split('.').next() {
                Some("ports") => &self.groups,
                Some("compare") => &self.comparisons,
                Some("settle") => &self.settles,
                Some("span") => &spans,
                _ => &self.workloads,
            };
            let numbers: Vec<String> = (0..self.sizes).map(|n| n.to_string()).collect();
            let stats = STATS.map(str::to_owned);
            let mut some = vec![(*pattern).to_owned()];
            let buckets = BUCKETS.map(str::to_owned);
            for (place, values) in [
                ("<name>", &names[..]),
                ("<class>", &self.classes[..]),
                ("<bucket>", &buckets[..]),
                ("<n>", &numbers[..]),
                ("<stat>", &stats[..]),
            ] {
                if pattern.contains(place) {
                    let fill = |one: &String| {
                        let one = one.clone();
                        values.iter().map(move |value| one.replace(place, value))
                    };
                    some = some.iter().flat_map(fill).collect();
                }
            }
            all.extend(some);
        }
        all
    }
}

/// Returns the entry of [`METRICS`] or [`SCOPED`] to which a metric belongs.
#[must_use]
pub fn pattern_of(metric: &str) -> Option<&'static str> {
    METRICS.iter().chain(SCOPED.iter()).copied().find(|pattern| fits(metric, pattern))
}

/// Returns `true` if `name` matches `pattern`, see [`SCOPED`].
pub(super) fn fits(name: &str, pattern: &str) -> bool {
    let (words, places) = (name.split('.'), pattern.split('.'));
    let fits = |(word, place): (&str, &str)| match place {
        "<name>" | "<class>" => !word.is_empty(),
        "<bucket>" => BUCKETS.contains(&word),
        "<stat>" => STATS.contains(&word),
        "<n>" => word.parse::<u32>().is_ok(),
        _ => word == place,
    };
    words.clone().count() == places.clone().count() && words.zip(places).all(fits)
}

/// Returns the unit of a metric, which is part of its name; empty for counts and fractions.
#[must_use]
pub fn unit_of(metric: &str) -> &'static str {
    let mut words = metric.rsplit('.');
    let last = words.next().unwrap_or(metric);
    let quantity = match last {
        "count" => return "",
        last if STATS.contains(&last) || last == "<stat>" => match words.next().unwrap_or(last) {
            "lower" | "upper" => words.next().unwrap_or(last),
            quantity => quantity,
        },
        last => last,
    };
    let units = [
        ("_us", "us"),
        ("_ns_per_kb", "ns/kB"),
        ("_gbps", "Gb/s"),
        ("_bytes", "B"),
        ("_packets", "packets"),
        ("_per_s", "1/s"),
        ("_s", "s"),
    ];
    if quantity == "seconds" {
        return "s";
    }
    units.iter().find(|(end, _)| quantity.ends_with(end)).map_or("", |(_, unit)| unit)
}

/// Returns `true` if a metric is a fraction, which can be given in percent.
#[must_use]
pub fn is_fraction(metric: &str) -> bool {
    let is_it = |column: &Column| column.kind == Kind::Fraction && fits(metric, &column.name);
    !metric.ends_with(".count") && declared().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::{Names, pattern_of, unit_of};

    #[test]
    fn names_become_metrics_and_units_are_those_of_the_quantity() {
        let names = Names { workloads: vec!["small_us".to_owned()], sizes: 2, ..Names::default() };
        let all = names.metrics();
        for (metric, unit) in [
            ("workload.small_us.ops", ""),
            ("workload.small_us.ops_per_s", "1/s"),
            ("workload.small_us.op_latency_us.p99_9", "us"),
            ("workload.small_us.op_latency_us.count", ""),
            ("workload.small_us.cwnd_packets.p1", "packets"),
            ("workload.small_us.size.1.slowdown.mean", ""),
            ("workload.small_us.throughput_gbps", "Gb/s"),
        ] {
            assert!(all.iter().any(|one| one == metric), "{metric}");
            assert_eq!(unit_of(metric), unit, "{metric}");
            assert!(pattern_of(metric).is_some_and(|p| p.starts_with("workload.<name>.")));
        }
        assert!(!all.contains(&"workload.small_us.size.2.slowdown.mean".to_owned()));
        assert_eq!(pattern_of("workload.small.op_latency_us"), None);
        assert_eq!(pattern_of("fabric_rtt_us.p50"), Some("fabric_rtt_us.p50"));
    }
}
