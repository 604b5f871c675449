//! `apus report`: one page with the results of several directories.

use std::path::PathBuf;

use apus_scenario::file::{DATA_BYTES, read_text};
use clap::Args;
use serde_json::Value;

use super::{data_of, joined, page};
use crate::failure::Failure;
use crate::open;
use crate::output::{print, write_file};

/// Combine stored results in one report.
///
/// Each DIR is a directory with the report.html that a command wrote with `--out`. The runs of all directories are drawn in the
/// same axes.
#[derive(Args)]
pub struct ReportCommand {
    /// Directories with results.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Write the page to FILE.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    page: PathBuf,
    /// Open the page in a browser.
    #[arg(long)]
    open: bool,
}

impl ReportCommand {
    /// Runs the command.
    pub fn execute(&self) -> Result<(), Failure> {
        let mut all: Option<Value> = None;
        for dir in &self.dirs {
            let file = dir.join("report.html");
            let text = read_text(&file, DATA_BYTES).map_err(|error| {
                Failure::Input(format!(
                    "{}: cannot be read: {error}; DIR must be a directory of results, written with `--out DIR`",
                    file.display()
                ))
            })?;
            let Some(mut data) = data_of(&text) else {
                let why = "has no data of this version of apus; run the command again";
                return Err(Failure::Input(format!("{}: {why}", file.display())));
            };
            if self.dirs.len() > 1 {
                name_runs(&mut data, &dir.display().to_string());
            }
            match &mut all {
                None => all = Some(data),
                Some(first) => join(first, data),
            }
        }
        let Some(all) = all else { return Ok(()) };
        if self.page.exists()
            && !read_text(&self.page, DATA_BYTES).is_ok_and(|old| data_of(&old).is_some())
        {
            let why = "exists and is no report; choose another name with --page";
            return Err(Failure::Input(format!("{}: {why}", self.page.display())));
        }
        let title = all["title"].as_str().unwrap_or_default();
        write_file(&self.page, &page(title, &all)).map_err(Failure::Run)?;
        print(&format!("{}\n", self.page.display()))?;
        if self.open { open::open(&self.page) } else { Ok(()) }
    }
}

/// Adds the directory to the labels of its runs, rows and figures. In rows it is a separate part, by which the page
/// distinguishes the curves. The set-up of a sweep, which has no runs, becomes a list with the name of the directory.
fn name_runs(data: &mut Value, dir: &str) {
    let name = |list: &mut Value, key: &str| {
        for one in list.as_array_mut().into_iter().flatten() {
            let label = one[key].as_str().unwrap_or_default().to_owned();
            let between = if label.contains(" = ") { ", " } else { ": " };
            one[key] = Value::from(format!("{dir}{between}{label}"));
        }
    };
    name(&mut data["runs"], "label");
    name(&mut data["figures"], "title");
    if data["comparison"].is_object() {
        let rows = &mut data["comparison"]["rows"];
        name(rows, "label");
        for row in rows.as_array_mut().into_iter().flatten() {
            let mut parts = vec![Value::from(dir)];
            parts.extend(row["parts"].as_array().into_iter().flatten().cloned());
            row["parts"] = Value::from(parts);
        }
    }
    if data["setup"].is_object() {
        data["setup"]["of"] = Value::from(dir);
        data["setup"] = Value::from(vec![data["setup"].take()]);
    }
}

/// Adds the runs, checks and comparison of another report.
fn join(all: &mut Value, more: Value) {
    let Value::Object(more) = more else { return };
    for (key, value) in more {
        match (&mut all[&key], value) {
            (Value::Array(own), Value::Array(theirs)) if key != "metrics" => own.extend(theirs),
            (Value::Object(own), Value::Object(theirs)) if key == "definitions" => {
                own.extend(theirs)
            }
            (own @ Value::Object(_), theirs @ Value::Object(_)) if key == "comparison" => {
                joined::add(own, &theirs);
            }
            (own @ Value::Null, theirs) => *own = theirs,
            (own, theirs) if key == "title" && *own != theirs => {
                let joined =
                    format!("{}, {}", own.as_str().unwrap_or(""), theirs.as_str().unwrap_or(""));
                *own = Value::from(joined);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{join, name_runs};

    #[test]
    fn the_directory_of_a_sweep_is_a_part_of_its_labels() {
        let label = |text: &str| {
            let row = json!({ "label": text });
            let mut data = json!({ "runs": [row], "figures": [], "comparison": { "rows": [row] } });
            name_runs(&mut data, "out/a");
            assert_eq!(data["runs"][0]["label"], data["comparison"]["rows"][0]["label"]);
            data["runs"][0]["label"].clone()
        };
        assert_eq!(label("swift"), "out/a: swift");
        assert_eq!(label("size = 1kB, window = 2"), "out/a, size = 1kB, window = 2");
    }

    /// The page uses the parts of a row that are not settings as the name of a curve.
    #[test]
    fn the_directory_is_the_first_of_the_parts_of_rows_beside_their_settings() {
        let row = json!({ "label": "size = 1kB, big", "values": ["1kB"], "parts": ["big"] });
        let mut data = json!({ "comparison": { "rows": [row] } });
        name_runs(&mut data, "out/a");
        assert_eq!(data["comparison"]["rows"][0]["parts"], json!(["out/a", "big"]));
    }

    #[test]
    fn the_set_ups_of_several_sweeps_are_a_list_with_their_directories() {
        let named = |dir: &str, rate: &str| {
            let mut data = json!({ "title": dir, "setup": { "topology": rate } });
            name_runs(&mut data, dir);
            data
        };
        let mut all = named("a", "10 Gb/s");
        join(&mut all, named("b", "100 Gb/s"));
        // A run has its set-up among its own data.
        join(&mut all, json!({ "title": "c", "setup": null, "runs": [] }));
        let expected = json!([
            { "topology": "10 Gb/s", "of": "a" },
            { "topology": "100 Gb/s", "of": "b" },
        ]);
        assert_eq!(all["setup"], expected);
    }
}
