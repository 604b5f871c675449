//! Where results go: standard output, and files that are complete or absent, never half written.

use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use apus_sim::scenario::Scenario;
use serde::Serialize;

use crate::failure::Failure;

/// Prints results. A reader that has seen enough (`| head`) is no failure; a full disk is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Results as JSON for people and programs.
pub fn to_json(results: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(results).map_err(|error| Failure::Run(error.to_string()))
}

/// A directory that results go to.
pub struct OutputDir(PathBuf);

impl OutputDir {
    /// Creates it and writes the effective configuration of each run, which also shows before a
    /// long run that results can be written.
    pub fn create(path: &Path, scenario: &Scenario) -> Result<Self, String> {
        let dir = Self::open(path)?;
        for run in &scenario.runs {
            let name = match &run.variant {
                Some(variant) if scenario.runs.len() > 1 => format!("effective-{variant}.toml"),
                _ => "effective.toml".to_owned(),
            };
            dir.write(&name, &run.setup.to_toml())?;
        }
        Ok(dir)
    }

    /// Creates it, or takes it as it is.
    pub fn open(path: &Path) -> Result<Self, String> {
        fs::create_dir_all(path).map_err(|error| {
            format!("{}: this directory cannot be created: {error}", path.display())
        })?;
        Ok(Self(path.to_owned()))
    }

    /// Writes a file under another name and renames it when it is complete.
    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        self.write_with(name, |out| out.write_all(text.as_bytes()))
    }

    /// The same for a file too large to be put together first.
    pub fn write_with(
        &self,
        name: &str,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), String> {
        let target = self.0.join(name);
        let partial = self.0.join(format!(".{name}.partial"));
        let written = fs::File::create(&partial).and_then(|file| {
            let mut out = BufWriter::new(file);
            content(&mut out)?;
            out.flush()?;
            fs::rename(&partial, &target)
        });
        written.map_err(|error| {
            // What is left of it is of no use; if it cannot be removed either, so be it.
            let _ = fs::remove_file(&partial);
            format!("{}: this file cannot be written: {error}", target.display())
        })
    }

    /// A directory within.
    pub fn within(&self, name: &str) -> Result<Self, String> {
        Self::open(&self.0.join(name))
    }
}
