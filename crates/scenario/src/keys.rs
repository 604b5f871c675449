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

/// The keys at the root of a scenario that describe a run. Testbeds and settings may have no other keys.
pub(super) static RUN: Keys = Keys::of(&[
    key("duration", Kind::Time, "End of the measured phase, counted from the start of the run").at_least(1),
    key("warmup", Kind::Time, "Start of the measured phase. If not given, a run that has only traces and jobs is measured from its first message or job").or("0s"),
    key("drain", Kind::Time, "Maximum time after `duration` in which ops of the measured phase can still end, under the same load. Default: `duration` minus `warmup`"),
    key("ends_with_ops", Kind::Flag, "For runs that have only traces and jobs: if all of them end before `duration`, the measured phase ends with the last op or operation. Default: `true` if all workloads are jobs, otherwise `false`"),
    key("seed", Kind::Count, "Seed of all random numbers").at_most(MAX_SEED).or("1"),
    key("topology", Kind::TextOrTable(&TOPOLOGY), "The fabric: a table, or one line such as \"fat-tree k=8 100Gbps 1us\". The line starts with the kind, or with the name of a cluster (`apus list topologies`). Rate, delay, buffer (default: 4MB) and `key=value` follow in any order"),
    key("packets", Kind::Table(&PACKETS), "Sizes of packets on the wire, including preamble and gap"),
    key("host", Kind::Table(&HOST), "Costs of hosts: a model, and settings that differ from the model"),
    key("transport", Kind::Table(&TRANSPORT), "Settings of every transport endpoint"),
    key("routing", Kind::Table(&ROUTING), "Choice of a path for each packet, and treatment of packets that overtake each other"),
    key("algorithm", Kind::Algorithms, "The algorithm with its parameters. For several algorithms, use tables `[algorithm.LABEL]`; each workload names a label"),
    key("workload", Kind::Tables(&WORKLOAD), "Traffic: which hosts send to which hosts, how much and when"),
    key("fault", Kind::Tables(&FAULT), "Links and switches that fail, slow down, lose, corrupt or reorder packets, on a schedule or at random"),
    key("measure", Kind::Table(&MEASURE), "Measurements of parts of the run, in addition to those of the whole run"),
    key("record", Kind::Table(&RECORD), "Samples and ops that a run records if its results are written to a directory"),
]);

/// Keys at the root of a scenario in addition to those of its run.
pub(super) static ROOT: Keys = Keys::of(&[
    key("name", Kind::Text, "Name of the scenario. Default: the name of the file"),
    key("title", Kind::Text, "What the scenario shows"),
    key("source", Kind::Text, "The publication, with its section or figure"),
    key(
        "testbed",
        Kind::Text,
        "A file with settings that several scenarios share. Settings that differ from the testbed, or from the defaults of the algorithm or of the host, need a reason: set them in `[[override]]`, or in a variant or sweep with a `reason`",
    ),
    key(
        "runs_of",
        Kind::Text,
        "For a scenario that has only checks: the scenario whose runs are checked. `apus reproduce` executes identical runs only once",
    ),
    key("override", Kind::Tables(&OVERRIDE), "Settings that differ from the testbed"),
    key("variant", Kind::Tables(&VARIANT), "The runs of an experiment, each with its own settings"),
    key("sweep", Kind::Table(&SWEEP), "One variant for each value of a key"),
    key(
        "quick",
        Kind::Table(&QUICK),
        "Settings of quick runs (`apus reproduce --quick`, `apus run --quick`)",
    ),
    key("check", Kind::Tables(&CHECK), "A metric, and the band in which its value must be"),
    key("show", Kind::Tables(&CHECK), "A metric that is shown without a band"),
    format::KEY,
]);

/// Reports every unknown key at the root of a scenario.
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
