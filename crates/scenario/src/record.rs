//! `[record]`: data recorded of a run when its results are written.

use apus_units::Span;

use super::declared::{Keys, Kind, key};
use super::section::Section;
use apus_sim::record::Record;

/// Keys of `record`.
pub(super) static RECORD: Keys = Keys::of(&[
    key("interval", Kind::Time, "Time between two samples; a 200th of the run if not given")
        .at_least(1),
    key("flows", Kind::Count, "Flows whose samples are kept").or("64"),
    key("ports", Kind::Count, "Ports whose samples are kept").or("32"),
    key("ops", Kind::Count, "Most ops that are kept").at_most(MAX_OPS).or("1000000"),
    key("nics", Kind::Flag, "Sample the ports of the NICs of hosts too").or("false"),
]);

/// Most samples over time, so that the tables stay within memory.
const MAX_SAMPLES: u64 = 100_000;
/// Most samples of flows, and of ports: times, times flows or ports.
const MAX_KEPT: u64 = 4_000_000;
/// Most ops: some 600 MB.
const MAX_OPS: u64 = 10_000_000;

/// Reads the section, if there is one.
pub(super) fn read(root: &Section<'_>, duration: Span) -> Option<Record> {
    let section = root.section("record")?;
    let default = Record::of_duration(duration);
    let interval: Span = section.get_or("interval", default.interval);
    let samples = duration.as_ps() / interval.as_ps().max(1);
    section.check(
        samples <= MAX_SAMPLES,
        "interval",
        format_args!(
            "is {interval}, which is {samples} samples in a run of {duration}; it must leave at \
             most {MAX_SAMPLES}"
        ),
    );
    section.check(
        interval <= duration,
        "interval",
        format_args!("is {interval}, but the run ends at {duration}: nothing is sampled"),
    );
    let most = MAX_KEPT / samples.clamp(1, MAX_SAMPLES);
    let count = |key| {
        let value: u64 = section.get_or_default(key);
        let must = format_args!("must be at most {most} with this interval, but it is {value}");
        section.check(value <= most, key, must);
        value.min(most) as u32
    };
    let record = Record {
        interval,
        flows: count("flows"),
        ports: count("ports"),
        ops: section.get_or_default("ops"),
        nics: section.get_or_default("nics"),
    };
    section.finish();
    Some(record)
}
