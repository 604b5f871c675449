//! Names of numbers: patterns, statistics and units.

/// Buckets of utilisation, by their lower ends in percent.
pub(crate) const BUCKETS: [&str; 10] = ["0", "10", "20", "30", "40", "50", "60", "70", "80", "90"];

/// Statistics of a distribution.
pub const STATS: [&str; 10] =
    ["count", "mean", "min", "p1", "p10", "p50", "p90", "p99", "p99_9", "max"];

/// Returns `true` if `name` matches `pattern`, see [`SCOPED`](crate::results::SCOPED).
pub(crate) fn fits(name: &str, pattern: &str) -> bool {
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
