//! Output: standard output, and files that are either complete or absent.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use apus_scenario::Scenario;
use serde::Serialize;

use crate::failure::Failure;
use crate::tables::Format;
use crate::written::{Hashing, Written, is_partial};

/// Prints results. It is no error if the reader closes the pipe (`| head`); a full disk is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Returns results as indented JSON.
pub fn to_json(results: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(results).map_err(|error| Failure::Run(error.to_string()))
}

/// A directory of results, or one within it.
///
/// Only files that the program wrote are overwritten: a directory that is neither empty nor one of
/// earlier results is refused, and so is one whose results have been changed.
#[derive(Clone)]
pub struct OutputDir {
    path: PathBuf,
    /// Path within the directory of results, with a slash at its end; empty for that directory.
    prefix: String,
    written: Arc<Written>,
    /// Format of its tables.
    tables: Format,
    /// Whether each run has a timeline.
    timeline: bool,
    /// Whether other processes may write it at the same time.
    shared: bool,
}

impl OutputDir {
    /// Creates a directory of results and writes the effective configuration of each run. This also
    /// shows before a long run that results can be written.
    pub fn create(path: &Path, scenario: &Scenario) -> Result<Self, String> {
        let dir = Self::open(path)?;
        dir.write_effective(scenario)?;
        Ok(dir)
    }

    /// Writes the effective configuration of each run.
    pub fn write_effective(&self, scenario: &Scenario) -> Result<(), String> {
        for run in &scenario.runs {
            let name = match &run.variant {
                Some(variant) if scenario.runs.len() > 1 => format!("effective-{variant}.toml"),
                _ => "effective.toml".to_owned(),
            };
            self.write(&name, &run.setup.to_annotated_toml())?;
        }
        Ok(())
    }

    /// Creates a directory of results, or opens an empty one or one of earlier results.
    pub fn open(path: &Path) -> Result<Self, String> {
        create_folder(path)?;
        let written = Arc::new(Written::open(path)?);
        let (path, prefix, tables) = (path.to_owned(), String::new(), Format::default());
        Ok(Self { path, prefix, written, tables, timeline: false, shared: false })
    }

    /// Opens a directory that other processes may write at the same time.
    pub fn open_shared(path: &Path) -> Result<Self, String> {
        Ok(Self { shared: true, ..Self::open(path)? })
    }

    /// Returns the directory with tables in this format.
    pub fn with_tables(self, tables: Format) -> Self {
        Self { tables, ..self }
    }

    /// Returns the directory, in which each run has a timeline if `timeline`.
    pub fn with_timeline(self, timeline: bool) -> Self {
        Self { timeline, ..self }
    }

    /// Returns `true` if each run has a timeline.
    pub fn has_timeline(&self) -> bool {
        self.timeline
    }

    /// Returns the format of its tables.
    pub fn tables(&self) -> Format {
        self.tables
    }

    /// Creates or opens a directory within.
    pub fn within(&self, name: &str) -> Result<Self, String> {
        let path = self.path.join(name);
        create_folder(&path)?;
        let prefix = format!("{}{name}/", self.prefix);
        Ok(Self { path, prefix, ..self.clone() })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file under another name and renames it when it is complete.
    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        self.write_with(name, |out| out.write_all(text.as_bytes()))
    }

    /// Removes a file of earlier results that the program wrote, if there is one.
    pub fn remove(&self, name: &str) -> Result<(), String> {
        let known_as = format!("{}{name}", self.prefix);
        let path = self.path.join(name);
        if !self.written.knows(&known_as) || !path.exists() {
            return Ok(());
        }
        fs::remove_file(&path)
            .map_err(|error| format!("{}: this file cannot be removed: {error}", path.display()))
    }

    /// Writes a file with content that is too large for memory.
    pub fn write_with(
        &self,
        name: &str,
        content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> Result<(), String> {
        let known_as = format!("{}{name}", self.prefix);
        self.written.check_overwrites(&known_as)?;
        let target = self.path.join(name);
        let partial = if self.shared { own_partial_of(&target) } else { partial_of(&target, "") };
        write_whole(&target, &partial, content, |checksum| self.written.note(&known_as, checksum))
    }
}

/// Writes a file under another name and renames it when it is complete.
pub fn write_file(target: &Path, text: &str) -> Result<(), String> {
    let partial = partial_of(target, "");
    write_whole(target, &partial, |out| out.write_all(text.as_bytes()), |_| Ok(()))
}

/// Writes a file with content that is too large for memory, under another name until it is complete.
pub fn write_file_with(
    target: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), String> {
    write_whole(target, &partial_of(target, ""), |out| content(out), |_| Ok(()))
}

/// Writes a file that other processes, also on other machines, may write at the same time: each under another
/// name of its own.
pub fn write_shared(target: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    write_whole(target, &own_partial_of(target), |out| out.write_all(content.as_ref()), |_| Ok(()))
}

/// Creates a directory and its parents.
pub fn create_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path)
        .map_err(|error| format!("{}: this directory cannot be created: {error}", path.display()))
}

/// Returns a number that no other file of this process has, and hardly one of another process or machine:
/// several may write the same file.
fn unique() -> u64 {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    static NEXT: AtomicU64 = AtomicU64::new(0);
    PROCESS.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the name under which a file is written until it is complete.
fn partial_of(target: &Path, distinction: &str) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}{distinction}.partial"))
}

/// Returns such a name that no other process uses.
fn own_partial_of(target: &Path) -> PathBuf {
    partial_of(target, &format!(".{:016x}", unique()))
}

/// Writes a file as `partial`, passes its checksum to `before` and renames it.
fn write_whole(
    target: &Path,
    partial: &Path,
    content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    before: impl FnOnce(crate::written::Checksum) -> io::Result<()>,
) -> Result<(), String> {
    debug_assert!(is_partial(partial));
    let written = fs::File::create(partial).and_then(|file| {
        let mut out = BufWriter::new(Hashing::new(file));
        content(&mut out)?;
        out.flush()?;
        before(out.get_ref().checksum())?;
        fs::rename(partial, target)
    });
    written.map_err(|error| {
        // The partial file is of no use; an error of its removal is ignored.
        let _ = fs::remove_file(partial);
        format!("{}: this file cannot be written: {error}", target.display())
    })
}
