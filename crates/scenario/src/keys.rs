//! The keys at the root of a scenario.

use apus_algorithms::Registry;
use apus_units::suggestion;

use super::declared::{self, Keys, Kind, key};
use super::fault::FAULT;
use super::format;
use super::host::{HOST, TRANSPORT};
use super::measure::MEASURE;
use super::overrides::OVERRIDE;
use super::packets::PACKETS;
use super::quick::QUICK;
use super::read_check::CHECK;
use super::record::RECORD;
use super::routing::ROUTING;
use super::section::Section;
use super::source::Problems;
use super::topology::TOPOLOGY;
use super::tree::Table;
use super::variant::{SWEEP, VARIANT};
use super::workload::WORKLOAD;

/// Largest seed: results are JSON, whose numbers are exact up to this value.
const MAX_SEED: u64 = 1 << 53;

/// The keys at the root of a scenario that describe a run. Testbeds and settings have these alone.
pub(super) static RUN: Keys = Keys::of(&[
    key("duration", Kind::Time, "End of the measured phase, from the start of the run").at_least(1),
    key("warmup", Kind::Time, "Start of the measured phase. Without it, a run of traces alone is measured from its first message").or("0s"),
    key("drain", Kind::Time, "Longest time after `duration` in which ops of the measured phase can end, under the same load; `duration` minus `warmup` if not given"),
    key("ends_with_ops", Kind::Flag, "For traces and jobs alone: the measured phase ends with the last op, if all ops and jobs end before `duration`. Without it, `true` for jobs alone, otherwise `false`"),
    key("seed", Kind::Count, "Fixes everything random").at_most(MAX_SEED).or("1"),
    key("topology", Kind::TextOrTable(&TOPOLOGY), "The fabric: a table, or one line like \"fat-tree k=8 100Gbps 1us\": the kind, or the name of a cluster (`apus list topologies`), then rate, delay, buffer (4MB if not given) and `key=value` in any order"),
    key("packets", Kind::Table(&PACKETS), "Sizes of packets on the wire, preamble and gap included"),
    key("host", Kind::Table(&HOST), "Costs of hosts: a model and the settings that differ from it"),
    key("transport", Kind::Table(&TRANSPORT), "Settings of every transport endpoint"),
    key("routing", Kind::Table(&ROUTING), "Choice of a path per packet, and what the transport does about packets that overtake each other"),
    key("algorithm", Kind::Algorithms, "The algorithm with its parameters; several are `[algorithm.LABEL]`, and workloads name the label"),
    key("workload", Kind::Tables(&WORKLOAD), "Which hosts send how much to which, and when"),
    key("fault", Kind::Tables(&FAULT), "Links that fail, lose, corrupt or reorder packets on a schedule"),
    key("measure", Kind::Table(&MEASURE), "Measurements of parts of the run"),
    key("record", Kind::Table(&RECORD), "Samples and ops that a run keeps if its results are written to a directory"),
]);

/// Keys at the root of a scenario in addition to those of its run.
pub(super) static ROOT: Keys = Keys::of(&[
    key("name", Kind::Text, "Name of the scenario; that of the file if not given"),
    key("title", Kind::Text, "What the scenario shows"),
    key("source", Kind::Text, "The publication, with the section or figure"),
    key(
        "testbed",
        Kind::Text,
        "A file with settings that several scenarios share. Settings that differ from it, from the defaults of the algorithm or of the host are set by `[[override]]`, or by a variant or sweep with a `reason`",
    ),
    key(
        "runs_of",
        Kind::Text,
        "For a scenario that only has checks: the scenario whose runs are checked. `apus reproduce` runs equal runs once",
    ),
    key("override", Kind::Tables(&OVERRIDE), "Settings that differ from the testbed"),
    key("variant", Kind::Tables(&VARIANT), "The runs of an experiment"),
    key("sweep", Kind::Table(&SWEEP), "A variant for each value of a key"),
    key(
        "quick",
        Kind::Table(&QUICK),
        "Settings of `apus reproduce --quick` and `apus run --quick`",
    ),
    key("check", Kind::Tables(&CHECK), "A metric with the band in which it must be"),
    key("show", Kind::Tables(&CHECK), "A metric without a band"),
    format::KEY,
]);

/// Notes every key at the root of a scenario that is none.
pub(super) fn check_keys(root: &Section<'_>, all: &[&Keys], problems: &Problems, table: &Table) {
    let known = || all.iter().flat_map(|keys| keys.own).map(|key| key.name);
    for key in root.keys().filter(|key| !known().any(|known| known == *key)) {
        if let Some(entry) = table.entries.get(key) {
            let hint = suggestion(key, known());
            problems.add(entry.key, format!("unknown key `{key}`{hint}"));
        }
    }
}

/// Returns the JSON Schema (draft 2020-12) of scenarios and testbeds with the algorithms of `registry`, from
/// which editors complete keys.
///
/// The schema describes names and types of keys, and ranges of numbers. Ranges of quantities with units,
/// missing keys and contradictions are errors of the reader only, since a testbed or a variant can set any
/// key.
#[must_use]
pub fn schema(registry: Registry) -> serde_json::Value {
    declared::schema(&[&RUN, &ROOT], registry)
}

/// Returns all keys of scenarios by their dotted path, like `topology.buffer`.
#[must_use]
pub fn key_names() -> Vec<String> {
    declared::paths(&[&RUN, &ROOT])
}

/// Explains a key by its dotted path: its kind of value, range, default and meaning, for each kind of table that
/// has it. Numbers of elements are ignored, so that `workload.0.size` is `workload.size`. `None` for an unknown key.
#[must_use]
pub fn explain(path: &str) -> Option<String> {
    declared::explain(&[&RUN, &ROOT], path)
}

/// Returns all keys of scenarios as Markdown, a table of the reference page for each table of a scenario.
#[must_use]
pub fn reference() -> String {
    let run = declared::reference("Keys of a run", &RUN);
    run + "\n" + &declared::reference("Keys of an experiment", &ROOT)
}

/// Returns the declarations of all keys and of the algorithms of `registry` as JSON, from which the classes of
/// the Python package are made. The first two of its `tables` are the keys of a run and the further keys of an
/// experiment.
#[must_use]
pub fn declarations(registry: Registry) -> serde_json::Value {
    declared::listing(&[&RUN, &ROOT], registry)
}
