//! Reads the results of earlier runs from the files that the command writes.

use std::collections::BTreeMap;
use std::path::Path;

use apus_scenario::file::{DATA_BYTES, read_bytes};
use apus_sim::results::SCHEMA_VERSION;
use serde_json::{Value, json};

use crate::bundle::Bundle;

/// Runs of a result, each with a distinguishing text: name and seed, or the settings of a sweep.
pub struct Results {
    /// The numbers of each run, in the order of the file.
    pub runs: Vec<(String, Value)>,
}

/// Name of the only value of a failed run: the reason of the failure.
pub const FAILURE: &str = "failure";

/// Files in a directory of results that hold its numbers.
const FILES: [&str; 2] = ["summary.json", "sweep.json"];

impl Results {
    /// Reads a directory of results, a file with numbers, or a bundle.
    ///
    /// # Errors
    /// If the path has none of these, or its layout is of another version.
    pub fn load(path: &Path) -> Result<Self, String> {
        let name = path.display();
        if path.is_dir() {
            let file = FILES.iter().map(|file| path.join(file)).find(|file| file.is_file());
            let file = file.ok_or_else(|| {
                format!("{name}: this directory has neither {} nor {}", FILES[0], FILES[1])
            })?;
            return Self::load(&file);
        }
        let bytes = read_bytes(path, DATA_BYTES)
            .map_err(|error| format!("{name}: cannot be read: {error}"))?;
        if Bundle::is_one(&bytes) {
            let bundle = Bundle::parse(&bytes).map_err(|why| format!("{name}: {why}"))?;
            return Self::parse(bundle.summary()).map_err(|why| format!("{name}: {why}"));
        }
        let json: Value = serde_json::from_slice(&bytes)
            .map_err(|error| format!("{name}: neither a bundle nor JSON of results: {error}"))?;
        Self::parse(&json).map_err(|why| format!("{name}: {why}"))
    }

    /// Returns the runs in the content of summary.json or sweep.json.
    ///
    /// # Errors
    /// If the content is neither, or of another version.
    pub fn parse(json: &Value) -> Result<Self, String> {
        match json["schema_version"].as_u64() {
            Some(version) if version == u64::from(SCHEMA_VERSION) => {}
            Some(version) => {
                return Err(format!(
                    "its results have the layout {version}, but apus {} reads the layout \
                     {SCHEMA_VERSION}; run it again",
                    env!("CARGO_PKG_VERSION")
                ));
            }
            None => {
                return Err("has no `schema_version`; it is no summary.json or sweep.json".into());
            }
        }
        let Some(runs) = json["runs"].as_array() else { return Err("has no `runs`".into()) };
        let mut count: BTreeMap<String, u32> = BTreeMap::new();
        let runs = runs.iter().map(|run| {
            let (mut key, numbers) = match run.get("settings") {
                Some(settings) if run["summary"].is_null() => {
                    (of_sweep(run, settings), json!({ FAILURE: run["failure"] }))
                }
                Some(settings) => (of_sweep(run, settings), run["summary"].clone()),
                None => (of_run(run), run.clone()),
            };
            // Runs with the same text are distinguished by their order.
            let place = count.entry(key.clone()).or_default();
            *place += 1;
            if *place > 1 {
                key += &format!(" ({place})");
            }
            (key, numbers)
        });
        Ok(Self { runs: runs.collect() })
    }
}

fn of_run(run: &Value) -> String {
    format!("{}, seed {}", run["name"].as_str().unwrap_or("?"), run["seed"])
}

fn of_sweep(run: &Value, settings: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let settings = settings.as_object().into_iter().flatten();
    let mut parts: Vec<String> =
        settings.map(|(key, value)| format!("{key}={}", text(value))).collect();
    parts.extend(run["variant"].as_str().map(|name| format!("variant {name}")));
    parts.push(format!("seed {}", run["seed"]));
    parts.join(", ")
}
