//! Finished runs on disk, each under a name that follows from its effective configuration.

use std::fs;
use std::path::PathBuf;

use apus_scenario::Setup;
use serde_json::{Value, json};

use crate::output::OutputDir;

/// Runs of a directory.
pub struct Store {
    folder: PathBuf,
    dir: OutputDir,
}

impl Store {
    /// Opens or creates the store in a directory of results.
    pub fn open(out: &OutputDir) -> Result<Self, String> {
        let dir = out.within("runs")?;
        Ok(Self { folder: dir.path().to_owned(), dir })
    }

    /// Returns the summary of a run if it is finished: by this version of the program, with exactly
    /// this effective configuration.
    pub fn load(&self, setup: &Setup) -> Option<Value> {
        let text = fs::read_to_string(self.folder.join(file_name(setup))).ok()?;
        let mut kept: Value = serde_json::from_str(&text).ok()?;
        let same = kept["version"] == VERSION && kept["effective"] == setup.to_toml();
        same.then(|| kept["summary"].take())
    }

    /// Keeps the summary of a finished run.
    pub fn save(&self, setup: &Setup, summary: &Value) -> Result<(), String> {
        let kept = json!({
            "version": VERSION,
            "effective": setup.to_toml(),
            "summary": summary,
        });
        self.dir.write(&file_name(setup), &format!("{kept:#}\n"))
    }

    /// Returns the number of kept runs that are not among `setups`: those of another scenario or
    /// sweep.
    pub fn others<'a>(&self, setups: impl Iterator<Item = &'a Setup>) -> usize {
        let names: Vec<String> = setups.map(file_name).collect();
        let Ok(entries) = fs::read_dir(&self.folder) else { return 0 };
        let kept = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        kept.filter(|name| name.ends_with(".json") && !names.contains(name)).count()
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns a hash of the effective configuration and the version (FNV-1a, 64 bits); `load` compares
/// the content.
fn file_name(setup: &Setup) -> String {
    let text = VERSION.to_owned() + &setup.to_toml();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}.json")
}
