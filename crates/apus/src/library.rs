//! The built-in scenarios. The executable contains them, so it needs no files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use apus_scenario::{Options, Scenario, Source, file};
use apus_units::{similar, suggestion};

use crate::api::{self, OpenError};
use crate::failure::Failure;
use crate::schedule;

mod files;

use files::{SCENARIOS, TESTBEDS};

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

/// Reads a scenario as [`open`] does, and also returns its texts. Texts of streamed traces are kept only if
/// `keeps_streams`.
pub fn open_gathered(
    file: &str,
    keeps_streams: bool,
    options: &Options,
) -> Result<Gathered, Failure> {
    let source = open_source(file).map_err(Failure::Input)?;
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    gather(source, folder, keeps_streams, options)
        .map_err(|error| Failure::Input(error.to_string()))
}

/// Reads an experiment: a built-in one by name, or the user's own scenario file.
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
    let folder_of_streams = Some(folder.to_owned());
    let options =
        Options { registry: crate::registry(), folder: folder_of_streams, ..options.clone() };
    Scenario::read(source, &|name| find_testbed(name, folder), &options)
}

/// A scenario with the texts from which it was read.
pub struct Gathered {
    /// The scenario.
    pub scenario: Scenario,
    /// Text of the scenario.
    pub source: Source,
    /// Texts of the testbed and of the files that the scenario names, by the names used there.
    pub files: BTreeMap<String, Source>,
}

/// Reads a scenario as [`read`] does, and also returns its texts. Texts of streamed traces are kept only if
/// `keeps_streams`.
pub fn gather(
    source: Source,
    folder: &Path,
    keeps_streams: bool,
    options: &Options,
) -> Result<Gathered, apus_scenario::ScenarioError> {
    let folder_of_streams = (!keeps_streams).then(|| folder.to_owned());
    let options =
        Options { registry: crate::registry(), folder: folder_of_streams, ..options.clone() };
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
    let bytes = file::read_bytes(path, file::SCENARIO_BYTES).map_err(|error| {
        let hint = match similar(&path.to_string_lossy(), names()) {
            _ if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                String::new()
            }
            Some(meant) => {
                format!(", and no built-in scenario has this name; did you mean {meant}?")
            }
            None => {
                ", and no built-in scenario has this name; see `apus list scenarios`".to_owned()
            }
        };
        fail(format!("this file cannot be read: {error}{hint}"))
    })?;
    String::from_utf8(bytes).map_err(|_| fail("is not text (UTF-8), so not a scenario".to_owned()))
}

/// Returns the source that a scenario names: a built-in testbed, or a file.
fn find_testbed(name: &str, folder: &Path) -> Result<Source, String> {
    if name.contains(['.', '/', '\\']) {
        let path = folder.join(name);
        // A built-in scenario whose runs are used.
        if let Some(found) = find(name)
            && !path.exists()
        {
            return Ok(found);
        }
        let text = if schedule::names_traces(&path) {
            schedule::read_as_text(&path)?
        } else {
            let bytes = file::read_bytes(&path, file::DATA_BYTES)
                .map_err(|error| format!("the file {} cannot be read: {error}", path.display()))?;
            // A file that is not text is a job; it is kept as GOAL text.
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
mod tests;
