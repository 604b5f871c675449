//! Bundles: a run with all data that another machine needs to repeat the run and to compare the results.
//!
//! A bundle is a zip archive:
//!
//! | entry | content |
//! |---|---|
//! | `manifest.json` | [`Manifest`]: versions, options, and SHA-256 of every other entry |
//! | `scenario.toml` | the scenario as it was read |
//! | `files/` | the testbed and the data files that the scenario names |
//! | `effective/` | the effective configuration of each run, which can be run unchanged |
//! | `summary.json` | the results |
//!
//! The archive contains neither times nor machine names: equal runs have equal bundles, byte for byte.

mod archive;
pub mod rerun;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use apus_scenario::file::{DATA_BYTES, read_bytes};
use apus_scenario::{FORMAT, Options, Scenario, ScenarioError, Source};
use apus_sim::results::SCHEMA_VERSION;
use apus_sim::summary::Summary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::interrupt::{DEFAULT_SILENCE, Silence, read_silence};
use crate::library::Gathered;
use crate::output::write_shared;

/// Version of the layout of bundles.
const BUNDLE_FORMAT: u32 = 1;

const MANIFEST: &str = "manifest.json";
const SCENARIO: &str = "scenario.toml";
const SUMMARY: &str = "summary.json";

/// Content of a bundle's manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this layout.
    bundle_format: u32,
    /// Version of the program that made the bundle.
    pub version: String,
    /// Version of the format of scenarios.
    scenario_format: u32,
    /// Version of the layout of results.
    schema_version: u32,
    /// Name of the scenario's file, which names the scenario if it has no name of its own.
    scenario: String,
    /// Changes by the command line.
    options: Changes,
    /// Span of the watchdog, which decides when a drain without progress ends.
    #[serde(default = "default_watchdog")]
    watchdog: String,
    /// The files that the scenario names, by the name that it uses: their entries.
    files: BTreeMap<String, String>,
    /// The runs, in the order of the results.
    pub runs: Vec<RunEntry>,
    /// SHA-256 of every other entry, in hexadecimal digits.
    sha256: BTreeMap<String, String>,
}

/// Changes that the command line made to the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Changes {
    set: Vec<String>,
    seed: Option<u64>,
    variant: Option<String>,
    quick: bool,
}

/// A run of a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// Name of the scenario, and of the variant.
    pub name: String,
    /// Seed of all random streams.
    pub seed: u64,
    /// Entry with the effective configuration.
    effective: String,
    /// Number of events.
    pub events: u64,
    /// Hash of all events.
    pub event_hash: String,
}

/// A bundle that was read.
pub struct Bundle {
    /// The manifest.
    pub manifest: Manifest,
    entries: BTreeMap<String, Vec<u8>>,
    summary: Value,
}

/// Returns an error if a bundle cannot be written to `file`: bundles overwrite nothing.
pub fn check_new(file: &Path) -> Result<(), String> {
    let fail = |why: &str| Err(format!("--bundle {}: {why}", file.display()));
    if file.exists() {
        return fail("the file exists; choose another name, or remove it");
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.map(fs::metadata) {
        Some(Err(error)) if error.kind() == ErrorKind::NotFound => {
            fail("its folder does not exist")
        }
        Some(Err(error)) => fail(&format!("its folder cannot be read: {error}")),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Writes the bundle of a scenario's runs; `summary` is the content of summary.json.
pub fn write(
    file: &Path,
    gathered: &Gathered,
    (options, watchdog): (&Options, Silence),
    runs: &[Summary],
    summary: &str,
) -> Result<(), String> {
    let mut entries: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    entries.insert(SCENARIO.to_owned(), gathered.source.text.clone().into_bytes());
    entries.insert(SUMMARY.to_owned(), summary.as_bytes().to_vec());
    let mut files = BTreeMap::new();
    for (number, (name, source)) in (1..).zip(&gathered.files) {
        let entry = format!("files/{number}-{}", base_name(name));
        entries.insert(entry.clone(), source.text.clone().into_bytes());
        files.insert(name.clone(), entry);
    }
    let mut listed = Vec::new();
    for (number, (run, summary)) in (1..).zip(gathered.scenario.runs.iter().zip(runs)) {
        let effective = format!("effective/{number}.toml");
        entries.insert(effective.clone(), run.setup.to_toml().into_bytes());
        listed.push(RunEntry {
            name: summary.name.clone(),
            seed: summary.seed,
            effective,
            events: summary.work.events,
            event_hash: summary.work.event_hash.clone(),
        });
    }
    let manifest = Manifest {
        bundle_format: BUNDLE_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario_format: FORMAT,
        schema_version: SCHEMA_VERSION,
        scenario: base_name(&gathered.source.name),
        options: Changes {
            set: options.set.clone(),
            seed: options.seed,
            variant: options.variant.clone(),
            quick: options.quick,
        },
        watchdog: watchdog.to_string(),
        files,
        runs: listed,
        sha256: entries
            .iter()
            .map(|(name, bytes)| (name.clone(), archive::sha256(bytes)))
            .collect(),
    };
    let json = serde_json::to_string_pretty(&manifest).map_err(|error| error.to_string())?;
    entries.insert(MANIFEST.to_owned(), (json + "\n").into_bytes());
    let bytes = archive::pack(&entries).map_err(|why| format!("{}: {why}", file.display()))?;
    write_shared(file, &bytes)
}

/// Returns the watchdog of bundles of earlier versions, which do not name it.
fn default_watchdog() -> String {
    DEFAULT_SILENCE.to_owned()
}

/// Returns the last part of a path.
fn base_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
}

impl Bundle {
    /// Returns `true` if the bytes begin like a bundle.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(b"PK\x03\x04")
    }

    /// Reads the bundle in a file.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a complete bundle of this version.
    pub fn read(file: &Path) -> Result<Self, String> {
        let fail = |why: String| format!("{}: {why}", file.display());
        let bytes = read_bytes(file, DATA_BYTES)
            .map_err(|error| fail(format!("cannot be read: {error}")))?;
        if !Self::is_one(&bytes) {
            return Err(fail(
                "is not a bundle; `apus run FILE --bundle BUNDLE` writes one".to_owned(),
            ));
        }
        Self::parse(&bytes).map_err(fail)
    }

    /// Reads a bundle and checks that it is complete and unchanged.
    ///
    /// # Errors
    /// If the bundle is damaged, or has a layout of another version.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut entries = archive::unpack(bytes)?;
        let lacks = |name: &str| format!("is not a bundle of apus: it has no {name}");
        let json = entries.remove(MANIFEST).ok_or_else(|| lacks(MANIFEST))?;
        let json: Value = serde_json::from_slice(&json)
            .map_err(|error| format!("{MANIFEST} is not JSON: {error}"))?;
        for (what, known) in [
            ("bundle_format", BUNDLE_FORMAT),
            ("scenario_format", FORMAT),
            ("schema_version", SCHEMA_VERSION),
        ] {
            if json[what] != known {
                return Err(format!(
                    "its `{what}` is {}, but apus {} reads {known}; use apus {}",
                    json[what],
                    env!("CARGO_PKG_VERSION"),
                    json["version"].as_str().unwrap_or("of the version that wrote it")
                ));
            }
        }
        let manifest: Manifest = serde_json::from_value(json)
            .map_err(|error| format!("{MANIFEST} is incomplete: {error}"))?;
        for (name, expected) in &manifest.sha256 {
            let entry = entries.get(name).ok_or_else(|| lacks(name))?;
            let found = archive::sha256(entry);
            if found != *expected {
                return Err(format!("{name} was changed: its SHA-256 is {found}, not {expected}"));
            }
        }
        if let Some(name) = entries.keys().find(|name| !manifest.sha256.contains_key(*name)) {
            return Err(format!("{name} is not in its {MANIFEST}"));
        }
        let summary = entries.get(SUMMARY).ok_or_else(|| lacks(SUMMARY))?;
        let summary = serde_json::from_slice(summary)
            .map_err(|error| format!("{SUMMARY} is not JSON: {error}"))?;
        Ok(Self { manifest, entries, summary })
    }

    /// Returns the watchdog of the bundle's runs.
    ///
    /// # Errors
    /// If the value is not a span.
    pub fn watchdog(&self) -> Result<Silence, String> {
        let text = &self.manifest.watchdog;
        read_silence(text).map_err(|why| format!("{MANIFEST}: `watchdog` is \"{text}\": {why}"))
    }

    /// Returns the content of the bundle's summary.json.
    pub fn summary(&self) -> &Value {
        &self.summary
    }

    /// Returns the text of an entry.
    fn text(&self, name: &str) -> Result<String, String> {
        let bytes = self.entries.get(name).ok_or_else(|| format!("the bundle has no {name}"))?;
        String::from_utf8(bytes.clone()).map_err(|_| format!("{name} is not text"))
    }

    /// Returns the effective configuration of a run.
    pub fn effective(&self, run: &RunEntry) -> Result<String, String> {
        self.text(&run.effective)
    }

    /// Reads the bundle's scenario; every file that the scenario names comes from the bundle.
    ///
    /// # Errors
    /// All errors of the scenario for this version.
    pub fn scenario(&self, limits: &Options) -> Result<Scenario, ScenarioError> {
        let problem = |message: String| {
            let source = SCENARIO.to_owned();
            ScenarioError(vec![apus_scenario::Problem { source, position: None, message }])
        };
        let text = self.text(SCENARIO).map_err(problem)?;
        let source = Source { name: self.manifest.scenario.clone(), text };
        let Changes { set, seed, variant, quick } = self.manifest.options.clone();
        let registry = crate::registry();
        let options = Options { set, seed, variant, quick, registry, ..limits.clone() };
        let find = |name: &str| {
            let files = &self.manifest.files;
            let entry = files.get(name).ok_or_else(|| format!("the bundle has no file {name}"))?;
            Ok(Source { name: name.to_owned(), text: self.text(entry)? })
        };
        Scenario::read(&source, &find, &options)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "duration = \"1ms\"\n\
        topology = { kind = \"star\", hosts = 2, rate = \"10Gbps\", delay = \"1us\", buffer = \"1MB\" }\n\
        algorithm = { name = \"swift\" }\n\
        [[workload]]\nkind = \"incast\"\nsize = \"64kB\"\n";

    /// Returns the entries of a bundle without its manifest.
    fn entries() -> BTreeMap<String, Vec<u8>> {
        [(SCENARIO, TEXT), (SUMMARY, "{}"), ("effective/1.toml", TEXT)]
            .map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
            .into()
    }

    fn sums() -> BTreeMap<String, String> {
        let sum = |(name, bytes): (String, Vec<u8>)| (name, archive::sha256(&bytes));
        entries().into_iter().map(sum).collect()
    }

    fn manifest() -> String {
        let run = RunEntry {
            name: "mine".to_owned(),
            seed: 1,
            effective: "effective/1.toml".to_owned(),
            events: 1,
            event_hash: String::new(),
        };
        let manifest = Manifest {
            bundle_format: BUNDLE_FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario_format: FORMAT,
            schema_version: SCHEMA_VERSION,
            scenario: "mine.toml".to_owned(),
            options: Changes::default(),
            watchdog: default_watchdog(),
            files: BTreeMap::new(),
            runs: vec![run],
            sha256: sums(),
        };
        serde_json::to_string(&manifest).expect("JSON")
    }

    fn packed(manifest: &[u8]) -> Vec<u8> {
        let mut all = entries();
        all.insert(MANIFEST.to_owned(), manifest.to_vec());
        archive::pack(&all).expect("an archive")
    }

    /// Returns the bytes after these changes: each replaces, removes or inserts a byte, or cuts off the end.
    fn changed(bytes: &[u8], changes: &[(usize, u8, u8)]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for &(place, kind, byte) in changes {
            let place = place % (bytes.len() + 1);
            match kind % 8 {
                0 => bytes.insert(place, byte),
                1 if place < bytes.len() => _ = bytes.remove(place),
                2 if byte < 16 => bytes.truncate(place),
                _ if place < bytes.len() => bytes[place] = byte,
                _ => {}
            }
        }
        bytes
    }

    /// Reads everything in a bundle.
    fn use_all(bundle: &Bundle) {
        let _ = bundle.watchdog();
        let _ = bundle.scenario(&Options::default());
        for run in &bundle.manifest.runs {
            let _ = bundle.effective(run);
        }
    }

    #[test]
    fn an_entry_with_another_hash_is_refused() {
        let sum = &sums()[SCENARIO];
        let other = sum.replacen(&sum[..1], if sum.starts_with('0') { "1" } else { "0" }, 1);
        let why = Bundle::parse(&packed(manifest().replace(sum.as_str(), &other).as_bytes())).err();
        let why = why.expect("an error");
        assert!(why.contains("was changed: its SHA-256 is"), "{why}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_changed_file_is_refused_or_has_the_same_entries(
            changes in proptest::collection::vec(any::<(usize, u8, u8)>(), 1..6),
        ) {
            if let Ok(bundle) = Bundle::parse(&changed(&packed(manifest().as_bytes()), &changes)) {
                prop_assert_eq!(&bundle.entries, &entries());
                use_all(&bundle);
            }
        }

        #[test]
        fn a_changed_manifest_is_refused_or_has_the_same_entries(
            changes in proptest::collection::vec(any::<(usize, u8, u8)>(), 0..6),
        ) {
            let manifest = changed(manifest().as_bytes(), &changes);
            match Bundle::parse(&packed(&manifest)) {
                Ok(bundle) => {
                    prop_assert_eq!(&bundle.manifest.sha256, &sums());
                    use_all(&bundle);
                }
                Err(why) => prop_assert!(!changes.is_empty() && !why.is_empty()),
            }
        }
    }
}
