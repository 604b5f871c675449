//! The built-in scenarios. They are part of the program, so that it needs no files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use apus_scenario::{Options, Scenario, Source};
use apus_units::{similar, suggestion};

use crate::api::{self, OpenError};
use crate::failure::Failure;
use crate::schedule;

macro_rules! files {
    ($($name:literal)+) => {
        &[$((
            $name,
            concat!("scenarios/", $name, ".toml"),
            include_str!(concat!("../scenarios/", $name, ".toml")),
        )),+]
    };
}

/// Name, path and text of each scenario.
const SCENARIOS: &[(&str, &str, &str)] = files! {
    "swift/table3"
    "swift/table4"
    "swift/section-3-4"
    "swift/appendix-c"
    "swift/fig4"
    "swift/fig5"
    "swift/fig14"
    "swift/fig15"
    "swift/fig16"
    "swift/fig19"
    "swift/fig17"
    "swift/fig20"
    "swift/fig21"
    "swift/fig22"
    "swift/fig24"
    "swift/section-4-6"
    "swift/section-5-3"
    "swift/appendix-a"
    "swift/appendix-e"
    "swift/appendix-e-egress"
    "swift/cluster"
    "swift/fig6"
    "swift/fig7"
    "swift/fig8"
    "swift/fig9"
    "swift/fig10"
    "swift/fig11"
    "swift/fig12"
    "swift/fig13"
    "swift/fig18"
    "bolt/fig1"
    "bolt/fig2"
    "bolt/fig4"
    "bolt/fig6"
    "bolt/table1"
    "bolt/table2"
    "bolt/fig10"
    "bolt/fig11"
    "bolt/fig12"
    "bolt/fig13"
    "bolt/fig14"
    "bolt/fig15"
    "bolt/fig16"
    "bolt/fig17"
    "bolt/fig18"
    "bolt/section-6"
    "bolt/section-6-batches"
    "bolt/section-6-cubic"
    "bolt/appendix-a"
    "bolt/appendix-b"
    "compare/cubic"
    "compare/timely"
    "compare/dx"
    "compare/dcqcn"
    "compare/hpcc"
    "compare/dctcp"
    "real/bottleneck"
    "real/incast-64"
    "real/open-load"
    "real/slow-receiver"
    "contest/incast"
    "contest/load"
    "contest/convergence"
    "contest/paths-permutation"
    "contest/paths-incast"
    "contest/paths-all-to-all"
    "contest/paths-ring"
    "expresspass/fig1"
    "expresspass/fig2"
    "expresspass/convergence"
    "expresspass/scalability"
    "expresspass/parking-lot"
    "expresspass/multi-bottleneck"
    "expresspass/workloads"
    "expresspass/start-rate"
    "compare/rcp"
    "compare/hull"
    "compare/nscc"
    "compare/mswift"
    "uec/balancers"
    "uec/permutation"
    "uec/permutation-1024"
    "bench/incast-100"
    "bench/incast-5000"
    "bench/permutation-128"
    "bench/permutation-1024"
    "bench/all-to-all-128"
    "bench/active-100000"
    "bench/idle-million"
};

/// Name, path and text of each testbed.
const TESTBEDS: &[(&str, &str, &str)] = files! {
    "testbeds/t1"
    "testbeds/t1-quiet"
    "testbeds/t2"
    "testbeds/cluster"
};

/// Returns the names of the scenarios.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    SCENARIOS.iter().map(|(name, ..)| *name)
}

/// Returns the names of the scenarios that reproduce a publication: all except benchmarks and those
/// for `apus compare` and `apus emulate`.
pub fn experiments() -> impl Iterator<Item = &'static str> + Clone {
    let others = ["bench/", "contest/", "real/"];
    names().filter(move |name| !others.iter().any(|other| name.starts_with(other)))
}

/// Returns a built-in scenario by name.
pub fn find(name: &str) -> Option<Source> {
    let (_, path, text) = SCENARIOS.iter().find(|(known, ..)| *known == name)?;
    Some(source(path, text))
}

fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), text: text.to_owned() }
}

/// Reads a scenario: a file, or a built-in one by name.
pub fn open(file: &str, options: &Options) -> Result<Scenario, Failure> {
    api::open(file, options).map_err(|error| Failure::Input(error.to_string()))
}

/// Returns the text of a scenario: of a file, or of a built-in one by name.
pub fn open_source(file: &str) -> Result<Source, String> {
    let path = Path::new(file);
    match find(file) {
        Some(found) if !path.exists() => Ok(found),
        _ => Ok(Source { name: file.to_owned(), text: read_file(path)? }),
    }
}

/// Reads a scenario as [`open`] does, and keeps the texts.
pub fn open_gathered(file: &str, options: &Options) -> Result<Gathered, Failure> {
    let source = open_source(file).map_err(Failure::Input)?;
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    gather(source, folder, options).map_err(|error| Failure::Input(error.to_string()))
}

/// Reads an experiment: a built-in one by name, or a scenario file of one's own.
pub fn open_experiment(name: &str, options: &Options) -> Result<Scenario, OpenError> {
    let own = Path::new(name).extension().is_some_and(|extension| extension == "toml");
    if !own && !experiments().any(|known| known == name) {
        let hint = match similar(name, experiments()) {
            Some(meant) => format!("; did you mean {meant}?"),
            None => "; see `apus list experiments`".to_owned(),
        };
        let own = " (a scenario file of your own ends in `.toml`)";
        return Err(OpenError::File(format!("unknown experiment `{name}`{hint}{own}")));
    }
    let scenario = api::open(name, options)?;
    if scenario.checks.is_empty() && scenario.shown.is_empty() {
        let why = "has no `[[check]]` and no `[[show]]`; `apus run` prints all its numbers";
        return Err(OpenError::File(format!("{name} {why}")));
    }
    Ok(scenario)
}

/// Reads a scenario with a single run.
pub fn open_variant(file: &str, options: &Options) -> Result<Scenario, Failure> {
    single(file, open(file, options)?).map_err(Failure::Input)
}

/// Returns the scenario `file` if it has a single run, or the error that it has several.
pub fn single(file: &str, scenario: Scenario) -> Result<Scenario, String> {
    if scenario.runs.len() == 1 {
        return Ok(scenario);
    }
    let names = scenario.runs.iter().filter_map(|run| run.variant.as_deref());
    let names = names.collect::<Vec<_>>().join(", ");
    Err(format!("{file}: has several variants; choose one with --variant ({names})"))
}

/// Reads a scenario; `folder` is the folder of testbeds that are named by their file.
pub fn read(
    source: &Source,
    folder: &Path,
    options: &Options,
) -> Result<Scenario, apus_scenario::ScenarioError> {
    let options = Options { registry: crate::registry(), ..options.clone() };
    Scenario::read(source, &|name| find_testbed(name, folder), &options)
}

/// A scenario, and the texts that it was read from.
pub struct Gathered {
    /// The scenario.
    pub scenario: Scenario,
    /// Its own text.
    pub source: Source,
    /// The testbed and the files that it names, by the name that it uses.
    pub files: BTreeMap<String, Source>,
}

/// Reads a scenario as [`read`] does, and keeps the texts.
pub fn gather(
    source: Source,
    folder: &Path,
    options: &Options,
) -> Result<Gathered, apus_scenario::ScenarioError> {
    let options = Options { registry: crate::registry(), ..options.clone() };
    let files = RefCell::new(BTreeMap::new());
    let find = |name: &str| {
        let found = find_testbed(name, folder)?;
        files.borrow_mut().insert(name.to_owned(), found.clone());
        Ok(found)
    };
    let scenario = Scenario::read(&source, &find, &options)?;
    Ok(Gathered { scenario, source, files: files.into_inner() })
}

fn read_file(path: &Path) -> Result<String, String> {
    let name = path.display();
    let fail = |why: String| format!("{name}: {why}");
    let bytes = std::fs::read(path).map_err(|error| {
        let hint = match similar(&path.to_string_lossy(), names()) {
            Some(meant) => format!("; did you mean {meant}?"),
            None => "; see `apus list scenarios`".to_owned(),
        };
        fail(format!(
            "this file cannot be read: {error}, and no built-in scenario has this name{hint}"
        ))
    })?;
    String::from_utf8(bytes).map_err(|_| fail("is not text (UTF-8), so not a scenario".to_owned()))
}

/// Returns the source that a scenario names: a built-in testbed, or a file.
fn find_testbed(name: &str, folder: &Path) -> Result<Source, String> {
    if name.contains(['.', '/', '\\']) {
        let path = folder.join(name);
        // The runs of a built-in scenario.
        if let Some(found) = find(name)
            && !path.exists()
        {
            return Ok(found);
        }
        let text = if schedule::names_traces(&path) {
            schedule::read_as_text(&path)?
        } else {
            let bytes = std::fs::read(&path)
                .map_err(|error| format!("the file {} cannot be read: {error}", path.display()))?;
            // Files that are not text are jobs, and stored as GOAL.
            String::from_utf8(bytes).or_else(|_| schedule::read_as_text(&path))?
        };
        return Ok(source(&path.to_string_lossy(), &text));
    }
    let short = |long: &'static str| long.trim_start_matches("testbeds/");
    match TESTBEDS.iter().find(|(known, ..)| short(known) == name) {
        Some((_, path, text)) => Ok(source(path, text)),
        None => {
            let hint = suggestion(name, TESTBEDS.iter().map(|(known, ..)| short(known)));
            Err(format!(
                "unknown testbed \"{name}\"{hint} (one of your own is named by its file, like \
                 mine.toml)"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use apus_cc::Origin;

    use super::*;

    fn scenarios(quick: bool) -> Vec<Scenario> {
        let options = Options { quick, ..Options::default() };
        let read = |name| {
            let source = find(name).expect("listed");
            read(&source, Path::new(""), &options).unwrap_or_else(|e| panic!("{e}"))
        };
        names().map(read).collect()
    }

    #[test]
    fn scenarios_can_be_read_and_have_their_names() {
        let both = scenarios(false).into_iter().chain(scenarios(true));
        for (scenario, name) in both.zip(names().chain(names())) {
            assert_eq!(scenario.name, name);
            assert!(scenario.title.is_some(), "{name}");
            let experiment = experiments().any(|known| known == name);
            assert_eq!(!scenario.checks.is_empty(), experiment, "{name}");
            assert!(scenario.source.is_some() || !experiment, "{name}");
        }
    }

    /// Reproductions state their parameters: a rule that derives a parameter from the network changes
    /// none of them.
    #[test]
    fn experiments_run_with_explicit_or_default_parameters() {
        let mut derived = Vec::new();
        for (scenario, name) in scenarios(false).iter().zip(names()) {
            if !experiments().any(|known| known == name) {
                continue;
            }
            let all = scenario.runs.iter().flat_map(|run| run.setup.algorithms());
            for (label, config) in all {
                for parameter in config.parameters() {
                    let info = config.info().parameters.iter().find(|p| p.name == parameter.name);
                    let default = info.and_then(|info| info.default_in(config.profile()));
                    let value = &parameter.value;
                    if let Origin::Derived(_) = parameter.origin
                        && default.is_some_and(|default| default.value != value)
                    {
                        derived.push(format!("{name}: {label} {} {value}", parameter.name));
                    }
                }
            }
        }
        derived.dedup();
        assert!(derived.is_empty(), "{derived:#?}");
    }

    /// Every scenario file is listed here, and every listed file is one.
    #[test]
    fn every_scenario_file_is_listed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let mut files = Vec::new();
        for paper in std::fs::read_dir(&folder).expect("scenarios") {
            let paper = paper.expect("entry").path();
            for file in std::fs::read_dir(&paper).expect("folder") {
                let file = file.expect("entry").path().with_extension("");
                let name = file.strip_prefix(&folder).expect("inside").to_string_lossy();
                files.push(name.into_owned());
            }
        }
        files.sort();
        let mut listed: Vec<_> =
            SCENARIOS.iter().chain(TESTBEDS).map(|(name, ..)| (*name).to_owned()).collect();
        listed.sort();
        assert_eq!(files, listed);
    }

    /// One set of parameters and one host model serve all figures: whatever differs is counted
    /// here, so that another override is a decision.
    #[test]
    fn overrides_are_counted() {
        let list: Vec<String> = scenarios(false)
            .iter()
            .flat_map(|scenario| {
                scenario.overrides.iter().map(|one| {
                    assert!(one.reason.len() > 20, "{}: say why `{}`", scenario.name, one.key);
                    format!("{} {}", scenario.name, one.key)
                })
            })
            .collect();
        let expected = [
            "swift/table3 algorithm.min_cwnd",
            "swift/table3 algorithm.rto_gain",
            "swift/table3 algorithm.rto_multiplier",
            "swift/table3 algorithm.min_cwnd",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.decompose",
            "swift/table4 algorithm.fs_range",
            "swift/table4 algorithm.hop_scale",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.decompose",
            "swift/table4 algorithm.fs_range",
            "swift/table4 algorithm.hop_scale",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.decompose",
            "swift/table4 algorithm.fs_range",
            "swift/table4 algorithm.hop_scale",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.decompose",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.decompose",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.decompose",
            "swift/table4 algorithm.base_target",
            "swift/table4 host.engine.scale",
            "swift/table4 algorithm.base_target",
            "swift/table4 host.engine.scale",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.decompose",
            "swift/table4 algorithm.fs_range",
            "swift/table4 algorithm.hop_scale",
            "swift/table4 host.engine.scale",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.decompose",
            "swift/table4 algorithm.fs_range",
            "swift/table4 algorithm.hop_scale",
            "swift/table4 host.engine.scale",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.decompose",
            "swift/table4 algorithm.fs_range",
            "swift/table4 algorithm.hop_scale",
            "swift/table4 host.engine.scale",
            "swift/table4 algorithm.base_target",
            "swift/table4 algorithm.decompose",
            "swift/table4 algorithm.fs_range",
            "swift/table4 algorithm.hop_scale",
            "swift/table4 host.engine.scale",
            "swift/section-3-4 algorithm.pacing",
            "swift/section-3-4 algorithm.pacing",
            "swift/section-3-4 algorithm.pacing",
            "swift/fig15 algorithm.base_target",
            "swift/fig16 topology.buffer",
            "swift/fig17 algorithm.fs_range",
            "swift/fig17 algorithm.hop_scale",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.ai",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.ai",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.ai",
            "swift/fig17 algorithm.base_target",
            "swift/fig17 algorithm.ai",
            "swift/fig17 algorithm.base_target",
            "swift/fig21 algorithm.fs_range",
            "swift/fig21 algorithm.ai",
            "swift/fig22 algorithm.base_target",
            "swift/fig22 algorithm.hop_scale",
            "swift/fig24 algorithm.fs_range",
            "swift/fig24 algorithm.hop_scale",
            "swift/fig24 algorithm.base_target",
            "swift/fig24 algorithm.base_target",
            "swift/fig24 algorithm.base_target",
            "swift/fig24 algorithm.base_target",
            "swift/fig24 algorithm.base_target",
            "swift/fig24 algorithm.base_target",
            "swift/fig24 algorithm.base_target",
            "swift/fig24 algorithm.base_target",
            "swift/fig24 algorithm.ai",
            "swift/fig24 algorithm.base_target",
            "swift/fig24 algorithm.ai",
            "swift/fig24 algorithm.base_target",
            "swift/section-4-6 topology.buffer",
            "swift/section-4-6 algorithm.base_target",
            "swift/section-4-6 algorithm.min_cwnd",
            "swift/section-4-6 algorithm.min_cwnd",
            "swift/section-4-6 algorithm.min_rto",
            "swift/section-4-6 algorithm.rto_multiplier",
            "swift/section-4-6 algorithm.initial_rto",
            "swift/section-4-6 algorithm.min_rto",
            "swift/section-4-6 algorithm.rto_multiplier",
            "swift/section-4-6 algorithm.base_target",
            "swift/section-4-6 algorithm.min_cwnd",
            "swift/section-4-6 algorithm.min_rto",
            "swift/section-4-6 algorithm.rto_multiplier",
            "swift/section-5-3 topology.buffer",
            "swift/section-5-3 topology.buffer",
            "swift/appendix-a host.clock_drift",
            "swift/appendix-a host.clock_offset",
            "swift/appendix-a host.clock_drift",
            "swift/appendix-a host.clock_offset",
            "swift/appendix-a host.clock_reading_interval",
            "swift/appendix-a host.clock_drift",
            "swift/appendix-a host.clock_offset",
            "swift/appendix-a host.clock_reading_interval",
            "swift/appendix-e algorithm.fs_range",
            "swift/appendix-e algorithm.fs_range",
            "swift/appendix-e-egress host.model",
            "swift/appendix-e-egress algorithm.base_target",
            "swift/appendix-e-egress algorithm.fs_range",
            "swift/appendix-e-egress algorithm.fs_range",
            "swift/cluster topology.rate",
            "swift/cluster topology.uplink.rate",
            "swift/cluster topology.rate",
            "swift/cluster topology.uplink.rate",
            "swift/fig13 topology.class.0.priority",
            "swift/fig18 algorithm.fs_range",
            "swift/fig18 algorithm.hop_scale",
            "swift/fig18 algorithm.fs_range",
            "swift/fig18 algorithm.hop_scale",
        ];
        assert_eq!(list, expected);
    }
}
