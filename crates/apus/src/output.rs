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
/// earlier results is refused, and so is one whose results have been changed. No other process may write it meanwhile,
/// unless it is shared.
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
    /// Creates a directory of results without earlier ones, and writes the effective configuration of each run. This also
    /// shows before a long run that results can be written.
    pub fn create(path: &Path, scenario: &Scenario) -> Result<Self, String> {
        let dir = Self::open(path)?;
        dir.begin(scenario)?;
        Ok(dir)
    }

    /// Removes earlier results, so that files of two runs never lie side by side, and writes the effective configuration of
    /// each run.
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

    /// Creates a directory of results, or opens an empty one or one of earlier results.
    pub fn open(path: &Path) -> Result<Self, String> {
        Self::open_for(path, false)
    }

    /// As [`OutputDir::open`], without earlier results but finished runs ([`Store`](crate::store::Store)).
    pub fn renew(path: &Path) -> Result<Self, String> {
        let dir = Self::open(path)?;
        dir.clear()?;
        Ok(dir)
    }

    /// Opens a directory that other processes may write at the same time.
    pub fn open_shared(path: &Path) -> Result<Self, String> {
        Self::open_for(path, true)
    }

    fn open_for(path: &Path, shared: bool) -> Result<Self, String> {
        create_folder(path)?;
        let written = Arc::new(Written::open(path, shared)?);
        let (path, prefix, tables) = (path.to_owned(), String::new(), Format::default());
        Ok(Self { path, prefix, written, tables, timeline: false, shared })
    }

    /// Returns the name of a file of earlier results here that is none of `own`.
    pub fn other_than(&self, own: &[&str]) -> Option<String> {
        let mut names = self.written.results_in(&self.prefix).into_iter();
        names.find(|name| !own.contains(&name.as_str()) && self.path.join(name).exists())
    }

    /// Removes the files of earlier results here, which are unchanged, and folders that are empty then.
    pub fn clear(&self) -> Result<(), String> {
        let mut folders = BTreeSet::new();
        for name in self.written.results_in(&self.prefix) {
            self.remove(&name)?;
            folders.extend(Path::new(&name).ancestors().skip(1).map(Path::to_owned));
        }
        // The innermost come first. One that has other files is not removed.
        for folder in folders.iter().rev().filter(|folder| !folder.as_os_str().is_empty()) {
            let _ = fs::remove_dir(self.path.join(folder));
        }
        Ok(())
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

    /// Returns what keeps incomplete files apart from those of other processes.
    fn distinction(&self) -> String {
        if self.shared { unique() } else { String::new() }
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
        match fs::remove_file(&path) {
            // Another process that shares the directory has removed it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| {
                format!("{}: this file cannot be removed: {error}", path.display())
            }),
        }
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

/// A complete file that has not got its name yet. Without [`Pending::put`] it is removed.
pub struct Pending {
    partial: PathBuf,
    target: PathBuf,
    checksum: Checksum,
}

impl Pending {
    /// Writes a file, to be put in place together with others.
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
        // A link stays one; a device or a pipe is not replaced.
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

    /// Gives the file its name.
    pub fn put(self) -> Result<(), String> {
        self.put_after(|_| Ok(()))
    }

    /// Passes its checksum to `before` and gives it its name.
    fn put_after(self, before: impl FnOnce(Checksum) -> io::Result<()>) -> Result<(), String> {
        let renamed = before(self.checksum).and_then(|()| fs::rename(&self.partial, &self.target));
        renamed.map_err(|error| {
            format!("{}: this file cannot be written: {error}", self.target.display())
        })
    }
}

impl Drop for Pending {
    /// The incomplete file is of no use; an error of its removal, such as that it has got its name, is ignored.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.partial);
    }
}

/// Writes a file under another name and renames it when it is complete.
pub fn write_file(target: &Path, text: &str) -> Result<(), String> {
    write_file_with(target, |out| out.write_all(text.as_bytes()))
}

/// Writes a file with content that is too large for memory, under another name until it is complete.
pub fn write_file_with(
    target: &Path,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), String> {
    Pending::file(target, content)?.put()
}

/// Writes a file that other processes, also on other machines, may write at the same time: each under another
/// name of its own.
pub fn write_shared(target: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    Pending::write(target, &unique(), |out| out.write_all(content.as_ref()))?.put()
}

/// Creates a directory and its parents.
pub fn create_folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path)
        .map_err(|error| format!("{}: this directory cannot be created: {error}", path.display()))
}

/// Returns a part of a name that no other file of this process has, and hardly one of another process or machine:
/// several may write the same file.
fn unique() -> String {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!(".{:016x}", PROCESS.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Returns the name under which a file is written until it is complete.
fn partial_of(target: &Path, distinction: &str) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}{distinction}.partial"))
}
