//! Finished runs on disk. The name of each file is derived from the run's effective configuration and the program.
//!
//! Several processes, also on several machines, may use one store at the same time. Each file is written under a unique
//! temporary name and then renamed, and equal runs have equal content.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use apus_scenario::Setup;
use apus_scenario::file::{DATA_BYTES, read_text};
use serde_json::{Value, json};

use crate::output::{OutputDir, create_folder, write_shared};
use crate::program::program_of;

/// Folder of the store in a directory of results.
const FOLDER: &str = "runs";

/// Runs of a directory.
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Opens or creates the store in a directory of results.
    pub fn open(out: &OutputDir) -> Result<Self, String> {
        let folder = out.path().join(FOLDER);
        create_folder(&folder)?;
        Ok(Self { folder })
    }

    /// Opens the store in a directory of results, for reading.
    pub fn within(out: &Path) -> Self {
        Self { folder: out.join(FOLDER) }
    }

    /// Returns the summary of a run if this build of the program has finished it with exactly this effective
    /// configuration. A run whose drain was ended by the watchdog does not count as finished: its numbers depend on the
    /// span of the watchdog, which is not part of the configuration.
    pub fn load(&self, setup: &Setup) -> Option<Value> {
        let (program, effective) = (program_of(setup), setup.to_toml());
        let kept = self.read(&finished(&key_of(&program, &effective)))?;
        (kept["program"] == program && kept["effective"] == effective)
            .then(|| summary_of(kept))
            .flatten()
            .filter(|summary| summary["drain"]["ended_by"] != "stuck")
    }

    /// Returns the summary of the run with this key if it has ended. Content with a different key is ignored.
    pub fn load_key(&self, key: &str) -> Option<Value> {
        let kept = self.read(&finished(key))?;
        let found = key_of(kept["program"].as_str()?, kept["effective"].as_str()?);
        (found == key).then(|| summary_of(kept)).flatten()
    }

    /// Returns the reason why the run with this key failed, unless a later attempt has finished.
    pub fn load_failure(&self, key: &str) -> Option<String> {
        let kept = self.read(&failed(key))?;
        kept["failure"].as_str().map(str::to_owned)
    }

    /// Stores the summary of a finished run.
    pub fn save(&self, setup: &Setup, summary: &Value) -> Result<(), String> {
        let (program, effective) = (program_of(setup), setup.to_toml());
        let key = key_of(&program, &effective);
        let kept = json!({
            "version": VERSION,
            "program": program,
            "effective": effective,
            "summary": summary,
        });
        write_shared(&self.folder.join(finished(&key)), format!("{kept:#}\n"))?;
        // The file exists only if an earlier attempt failed.
        let _ = fs::remove_file(self.folder.join(failed(&key)));
        Ok(())
    }

    /// Stores the reason why a run failed, with the settings that distinguish the run. A later attempt repeats the run.
    pub fn save_failure(&self, setup: &Setup, settings: &str, failure: &str) -> Result<(), String> {
        let (program, effective) = (program_of(setup), setup.to_toml());
        let key = key_of(&program, &effective);
        let kept = json!({
            "version": VERSION,
            "program": program,
            "name": setup.name(),
            "seed": setup.seed(),
            "settings": settings,
            "failure": failure,
            "effective": effective,
        });
        write_shared(&self.folder.join(failed(&key)), format!("{kept:#}\n"))
    }

    /// Returns the run in the form of a report, if it was stored with these choices.
    pub fn load_page(&self, setup: &Setup, how: &Value) -> Option<Value> {
        let (program, effective) = (program_of(setup), setup.to_toml());
        let mut kept = self.read(&page_of(&key_of(&program, &effective)))?;
        let same =
            kept["program"] == program && kept["effective"] == effective && kept["how"] == *how;
        same.then(|| kept.get_mut("page").map(Value::take)).flatten()
    }

    /// Stores a run in the form of a report, with the choices of the report.
    pub fn save_page(&self, setup: &Setup, how: &Value, page: &Value) -> Result<(), String> {
        let (program, effective) = (program_of(setup), setup.to_toml());
        let name = page_of(&key_of(&program, &effective));
        let kept = json!({
            "version": VERSION,
            "program": program,
            "effective": effective,
            "how": how,
            "page": page,
        });
        write_shared(&self.folder.join(name), kept.to_string())
    }

    /// Returns the folder of the store.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a store file that is not a run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the number of stored runs whose keys are not in `keys`; these belong to another scenario or sweep.
    pub fn others<'a>(&self, keys: impl Iterator<Item = &'a str>) -> usize {
        let names: BTreeSet<String> = keys.map(finished).collect();
        let Ok(entries) = fs::read_dir(&self.folder) else { return 0 };
        let kept = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        kept.filter(|name| is_finished(name) && !names.contains(name)).count()
    }

    /// Returns the content of a file, if it is complete and of this version.
    fn read(&self, name: &str) -> Option<Value> {
        let text = read_text(&self.folder.join(name), DATA_BYTES).ok()?;
        let kept: Value = serde_json::from_str(&text).ok()?;
        (kept["version"] == VERSION).then_some(kept)
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the key of a run: a hash of its effective configuration and of the program (FNV-1a, 64 bits).
pub fn key(setup: &Setup) -> String {
    key_of(&program_of(setup), &setup.to_toml())
}

fn key_of(program: &str, effective: &str) -> String {
    let bytes = program.bytes().chain(*b"\n").chain(effective.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn finished(key: &str) -> String {
    format!("{key}.json")
}

fn failed(key: &str) -> String {
    format!("{key}.failed.json")
}

fn page_of(key: &str) -> String {
    format!("{key}.page.json")
}

/// Returns `true` for the name of a finished run.
fn is_finished(name: &str) -> bool {
    let key = name.strip_suffix(".json");
    key.is_some_and(|key| key.len() == 16 && key.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn summary_of(mut kept: Value) -> Option<Value> {
    kept.get_mut("summary").map(Value::take)
}
