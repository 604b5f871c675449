//! Output: standard output, and files that are either complete or absent.

use std::collections::BTreeSet;
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
use crate::written::{Checksum, Hashing, RECORD, Written, is_partial};

/// Prints results. A reader that closes the pipe (`| head`) is not an error; a full disk is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Run(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints results as [`print`] does. An error is added to `problems`, once for all texts, so that it hides no other one.
pub fn say(text: &str, problems: &mut Vec<String>) {
    if let Err(why) = print(text).map_err(|why| why.to_string())
        && !problems.contains(&why)
    {
        problems.push(why);
    }
}

/// Returns results as indented JSON.
pub fn to_json(results: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(results).map_err(|error| Failure::Run(error.to_string()))
}

/// A directory of results, or a subdirectory of one.
///
/// Only files that the program wrote are overwritten. A directory is refused if it is neither empty nor a directory of
/// earlier results, or if its results have been changed. No other process may write to it at the same time, unless it
/// is shared.
#[derive(Clone)]
pub struct OutputDir {
    path: PathBuf,
    /// Path within the directory of results, with a trailing slash; empty for the directory itself.
    prefix: String,
    written: Arc<Written>,
    /// Format of the tables.
    tables: Format,
    /// `true` if each run has a timeline.
    timeline: bool,
    /// `true` if other processes may write to the directory at the same time.
    shared: bool,
}

impl OutputDir {
    /// Creates a directory of results, removes earlier results in it, and writes the effective configuration of each
    /// run. This also verifies, before a long run, that results can be written.
    pub fn create(path: &Path, scenario: &Scenario) -> Result<Self, String> {
        let dir = Self::open(path)?;
        dir.begin(scenario)?;
        Ok(dir)
    }

    /// Removes earlier results, so that the directory never mixes files of two runs, and writes the effective
    /// configuration of each run.
    pub fn begin(&self, scenario: &Scenario) -> Result<(), String> {
        let variants = scenario.runs.iter().filter_map(|run| run.variant.as_deref());
        if let Some(name) = variants.filter(|_| scenario.runs.len() > 1).find(|name| is_taken(name))
        {
            return Err(format!(
                "{}: the variant `{name}` has the name of a file of results; give it another name",
                self.path.display()
            ));
        }
        self.clear()?;
        for run in &scenario.runs {
            let name = match &run.variant {
                Some(variant) if scenario.runs.len() > 1 => format!("effective-{variant}.toml"),
                _ => "effective.toml".to_owned(),
            };
            self.write(&name, &run.setup.to_annotated_toml())?;
        }
        Ok(())
    }

    /// Creates a directory of results, or opens an empty directory or one of earlier results.
    pub fn open(path: &Path) -> Result<Self, String> {
        Self::open_for(path, false)
    }

    /// Opens the directory as [`OutputDir::open`] does, and removes earlier results except finished runs
    /// ([`Store`](crate::store::Store)).
    pub fn renew(path: &Path) -> Result<Self, String> {
        let dir = Self::open(path)?;
        dir.clear()?;
        Ok(dir)
    }

    /// Opens a directory to which other processes may write at the same time.
    pub fn open_shared(path: &Path) -> Result<Self, String> {
        Self::open_for(path, true)
    }

    fn open_for(path: &Path, shared: bool) -> Result<Self, String> {
        create_folder(path)?;
        let written = Arc::new(Written::open(path, shared)?);
        let (path, prefix, tables) = (path.to_owned(), String::new(), Format::default());
        Ok(Self { path, prefix, written, tables, timeline: false, shared })
    }

    /// Returns the name of a file of earlier results in the directory that is not in `own`.
    pub fn other_than(&self, own: &[&str]) -> Option<String> {
        let mut names = self.written.results_in(&self.prefix).into_iter();
        names.find(|name| !own.contains(&name.as_str()) && self.path.join(name).exists())
    }

    /// Removes the unchanged files of earlier results, and folders that are then empty.
    pub fn clear(&self) -> Result<(), String> {
        let mut folders = BTreeSet::new();
        for name in self.written.results_in(&self.prefix) {
            self.remove(&name)?;
            folders.extend(Path::new(&name).ancestors().skip(1).map(Path::to_owned));
        }
        // The innermost folders come first. A folder with other files is not removed.
        for folder in folders.iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
            let _ = fs::remove_dir(self.path.join(folder));
        }
        Ok(())
    }

    /// Sets the format of the tables.
    pub fn with_tables(self, tables: Format) -> Self {
        Self { tables, ..self }
    }

    /// Sets whether each run has a timeline.
    pub fn with_timeline(self, timeline: bool) -> Self {
        Self { timeline, ..self }
    }

    /// Returns `true` if each run has a timeline.
    pub fn has_timeline(&self) -> bool {
        self.timeline
    }

    /// Returns the format of the tables.
    pub fn tables(&self) -> Format {
        self.tables
    }

    /// Creates or opens a subdirectory.
    pub fn within(&self, name: &str) -> Result<Self, String> {
        let path = self.path.join(name);
        create_folder(&path)?;
        let prefix = format!("{}{name}/", self.prefix);
        Ok(Self { path, prefix, ..self.clone() })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the part of a name that distinguishes incomplete files from those of other processes.
    fn distinction(&self) -> String {
        if self.shared { unique() } else { String::new() }
    }

    /// Writes a file under a temporary name and renames it when it is complete.
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
        match fs::remove_file(&path) {
            // Another process that shares the directory has already removed the file.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| {
                format!("{}: this file cannot be removed: {error}", path.display())
            }),
        }
    }

    /// Writes a file whose content is too large for memory.
    pub fn write_with(
        &self,
        name: &str,
        content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> Result<(), String> {
        let known_as = format!("{}{name}", self.prefix);
        self.written.check_overwrites(&known_as)?;
        let target = self.path.join(name);
        let pending = Pending::write(&target, &self.distinction(), content)?;
        pending.put_after(|checksum| self.written.note(&known_as, checksum))
    }
}

/// Returns `true` for names of files in a directory of results.
fn is_taken(name: &str) -> bool {
    let files = ["summary.json", "cost.json", "report.html", "effective.toml", "runs"];
    files.contains(&name)
        || name == RECORD
        || (name.starts_with("effective-") && name.ends_with(".toml"))
}

/// Checks that a file can be written, before a long command.
#[cfg(feature = "real")]
pub fn check_writable(target: &Path) -> Result<(), String> {
    Pending::write(target, "", |_| Ok(())).map(drop)
}

/// A complete file under its temporary name. If [`Pending::put`] is not called, the file is removed.
pub struct Pending {
    partial: PathBuf,
    target: PathBuf,
    checksum: Checksum,
}

impl Pending {
    /// Writes a file that can later be put in place together with others.
    pub fn file(
        target: &Path,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Self, String> {
        Self::write(target, "", |out| content(out))
    }

    fn write(
        target: &Path,
        distinction: &str,
        content: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> Result<Self, String> {
        let fail = |error: io::Error| {
            format!("{}: this file cannot be written: {error}", target.display())
        };
        // A symbolic link is kept; a device or a pipe is not replaced.
        let real = match fs::symlink_metadata(target) {
            Ok(found) if found.is_symlink() => fs::canonicalize(target).map_err(fail)?,
            _ => target.to_owned(),
        };
        if fs::metadata(&real).is_ok_and(|found| !found.is_file()) {
            return Err(fail(io::Error::other(
                "what is there is no regular file; choose another name",
            )));
        }
        let partial = partial_of(&real, distinction);
        debug_assert!(is_partial(&partial));
        let mut pending = Self { partial, target: real, checksum: Checksum::EMPTY };
        let written = fs::File::create(&pending.partial).and_then(|file| {
            let mut out = BufWriter::new(Hashing::new(file));
            content(&mut out)?;
            out.flush()?;
            Ok(out.get_ref().checksum())
        });
        pending.checksum = written.map_err(fail)?;
        Ok(pending)
    }

    /// Renames the file to its final name.
    pub fn put(self) -> Result<(), String> {
        self.put_after(|_| Ok(()))
    }

    /// Passes the checksum of the file to `before`, then renames the file to its final name.
    fn put_after(self, before: impl FnOnce(Checksum) -> io::Result<()>) -> Result<(), String> {
        let renamed = before(self.checksum).and_then(|()| fs::rename(&self.partial, &self.target));
        renamed.map_err(|error| {
            format!("{}: this file cannot be written: {error}", self.target.display())
        })
    }
}

impl Drop for Pending {
    /// Removes the incomplete file. An error is ignored, such as the one after the file has been renamed.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.partial);
    }
}

/// Writes a file under a temporary name and renames it when it is complete.
pub fn write_file(target: &Path, text: &str) -> Result<(), String> {
    write_file_with(target, |out| out.write_all(text.as_bytes()))
}

/// Writes a file whose content is too large for memory, under a temporary name until it is complete.
pub fn write_file_with(
    target: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), String> {
    Pending::file(target, content)?.put()
}

/// Writes a file that other processes, also on other machines, may write at the same time. Each process uses a
/// temporary name of its own.
pub fn write_shared(target: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    Pending::write(target, &unique(), |out| out.write_all(content.as_ref()))?.put()
}

/// Creates a directory and its parents.
pub fn create_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path)
        .map_err(|error| format!("{}: this directory cannot be created: {error}", path.display()))
}

/// Returns a part of a name that is unique within this process and almost certainly unique among processes and
/// machines, since several may write the same file.
fn unique() -> String {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(".{:016x}", PROCESS.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Returns the temporary name under which a file is written until it is complete.
fn partial_of(target: &Path, distinction: &str) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}{distinction}.partial"))
}
