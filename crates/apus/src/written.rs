//! Record of the files that the program has written into a directory of results.
//!
//! The record is a file in that directory with one line per file: checksum, size and name. A line is added before its
//! file is put in place, so an interrupted command leaves at most one superfluous line.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use apus_scenario::file::{DATA_BYTES, read_text};

/// Name of the record.
pub const RECORD: &str = ".apus-files";

/// Common prefix of the names of finished runs ([`Store`](crate::store::Store)), which are no longer recorded: only the
/// program creates such names, and it replaces damaged files.
const CACHE: &str = "runs/";

const HEADER: &str = "# Files that apus wrote here: checksum (FNV-1a, 64 bits), size, name. Other files \
                      are never overwritten.\n";

/// Checksum and size of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    hash: u64,
    bytes: u64,
}

impl Checksum {
    /// Checksum of an empty file: the offset basis of FNV-1a.
    pub const EMPTY: Self = Self { hash: 0xcbf2_9ce4_8422_2325, bytes: 0 };

    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash = bytes
            .iter()
            .fold(self.hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }

    /// Returns the checksum of a whole file.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut file = fs::File::open(path)?;
        let (mut sum, mut buffer) = (Self::EMPTY, vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(sum),
                bytes => sum.add(&buffer[..bytes]),
            }
        }
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.hash)
    }
}

/// A writer that computes the checksum of its output.
pub struct Hashing<W> {
    inner: W,
    sum: Checksum,
}

impl<W> Hashing<W> {
    /// Returns a writer without any output so far.
    pub fn new(inner: W) -> Self {
        Self { inner, sum: Checksum::EMPTY }
    }

    /// Returns the checksum of the output so far.
    pub fn checksum(&self) -> Checksum {
        self.sum
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.sum.add(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns `true` for the name of an incomplete file, which a process is writing or was writing when it was killed.
pub fn is_partial(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') && name.ends_with(".partial")
}

/// Files that the program has written into a directory of results.
pub struct Written {
    folder: PathBuf,
    /// All checksums of each written file, by its path within the directory.
    files: Mutex<BTreeMap<String, Vec<Checksum>>>,
    /// The record, locked against other processes.
    _locked: fs::File,
}

impl Written {
    /// Reads the record of a directory, or creates one. The record is locked until the value is dropped; until then
    /// other processes may open the directory only if all of them share it.
    ///
    /// # Errors
    /// If the directory has files but no record, if one of its results has been changed since, or if another process is
    /// writing to it.
    pub fn open(folder: &Path, shared: bool) -> Result<Self, String> {
        let path = folder.join(RECORD);
        let fail = |why: String| format!("{}: {why}", folder.display());
        open_record(folder, &path).map_err(fail)?;
        let locked = lock(&path, shared).map_err(fail)?;
        let files = open_record(folder, &path).map_err(fail)?;
        let own = |name: &str, known: &[Checksum]| {
            Checksum::of(&folder.join(name)).is_ok_and(|sum| known.contains(&sum))
        };
        for (name, known) in files.iter().filter(|(name, _)| !name.starts_with(CACHE)) {
            let file = folder.join(name);
            if !file.exists() || own(name, known) {
                continue;
            }
            // Another process may have written the file after the record was read; it has then added a line before.
            let recorded = read_text(&path, DATA_BYTES).unwrap_or_default();
            if !read(&recorded).get(name).is_some_and(|known| own(name, known)) {
                return Err(format!(
                    "{}: changed since apus wrote it; move the file away, or choose another \
                     directory",
                    file.display()
                ));
            }
        }
        Ok(Self { folder: folder.to_owned(), files: Mutex::new(files), _locked: locked })
    }

    /// Returns the names of result files that begin with `prefix`, without the prefix; finished runs are not included.
    pub fn results_in(&self, prefix: &str) -> Vec<String> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let names = files.keys().filter(|name| !name.starts_with(CACHE));
        names.filter_map(|name| name.strip_prefix(prefix)).map(str::to_owned).collect()
    }

    /// Returns `true` for the name of a file that the program wrote.
    pub fn knows(&self, name: &str) -> bool {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).contains_key(name)
    }

    /// Returns an error for the name of a file that the program did not write.
    pub fn check_overwrites(&self, name: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        if self.knows(name) || !path.exists() {
            return Ok(());
        }
        // Another process may have written the file since the record was read.
        let recorded = read_text(&self.folder.join(RECORD), DATA_BYTES).unwrap_or_default();
        if let Some(sums) = read(&recorded).remove(name) {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            files.insert(name.to_owned(), sums);
            return Ok(());
        }
        Err(format!(
            "{}: this file cannot be written: apus did not write the one that is there; move it away, \
             or choose another directory",
            path.display()
        ))
    }

    /// Adds a line for a file that is about to be renamed to its final name.
    pub fn note(&self, name: &str, sum: Checksum) -> io::Result<()> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = files.entry(name.to_owned()).or_default();
        if known.contains(&sum) {
            return Ok(());
        }
        let path = self.folder.join(RECORD);
        let mut record = fs::OpenOptions::new().read(true).append(true).open(&path)?;
        // A full disk may have truncated the last line.
        let mut last = [b'\n'];
        if record.seek(SeekFrom::End(-1)).is_ok() {
            record.read_exact(&mut last)?;
        }
        let begin = if last == [b'\n'] { "" } else { "\n" };
        record.write_all(format!("{begin}{sum} {} {name}\n", sum.bytes).as_bytes())?;
        known.push(sum);
        Ok(())
    }
}

/// Opens a record and locks it.
fn lock(path: &Path, shared: bool) -> Result<fs::File, String> {
    let record =
        fs::File::open(path).map_err(|error| format!("{RECORD} cannot be read: {error}"))?;
    let locked = if shared { record.try_lock_shared() } else { record.try_lock() };
    match locked {
        Err(fs::TryLockError::WouldBlock) => Err(
            "another apus command is writing results here; wait until it has ended, or choose another directory"
                .to_owned(),
        ),
        // Some file systems do not support locks.
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(record),
    }
}

/// Returns the files in the record of a directory; the record is created if the directory is empty.
fn open_record(folder: &Path, path: &Path) -> Result<BTreeMap<String, Vec<Checksum>>, String> {
    let recorded = || match read_text(path, DATA_BYTES) {
        Ok(text) => Ok(Some(read(&text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{RECORD} cannot be read: {error}")),
    };
    if let Some(files) = recorded()? {
        return Ok(files);
    }
    if let Some(name) = first_file(folder).map_err(|error| format!("cannot be read: {error}"))? {
        // Another process may have created the record before the directory was listed.
        return recorded()?.ok_or_else(|| {
            format!(
                "the directory holds `{name}`, which apus did not write; choose a new or an empty \
                 directory"
            )
        });
    }
    match create(path) {
        Ok(()) => Ok(BTreeMap::new()),
        // Another process has created the record in the meantime.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(recorded()?.unwrap_or_default())
        }
        Err(error) => Err(format!("no file can be written here: {error}")),
    }
}

/// Creates a record without files. The header is appended, because another process may already have appended a line.
fn create(path: &Path) -> io::Result<()> {
    fs::OpenOptions::new().append(true).create_new(true).open(path)?.write_all(HEADER.as_bytes())
}

/// Returns the files that the lines of a record describe.
fn read(text: &str) -> BTreeMap<String, Vec<Checksum>> {
    let mut files: BTreeMap<String, Vec<Checksum>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        let hash = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
        let bytes = words.next().and_then(|word| word.parse().ok());
        if let (Some(hash), Some(bytes), Some(name)) = (hash, bytes, words.next()) {
            files.entry(name.to_owned()).or_default().push(Checksum { hash, bytes });
        }
    }
    files
}

/// Returns the first name in a directory, in alphabetical order, ignoring incomplete files.
fn first_file(folder: &Path) -> io::Result<Option<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !is_partial(&path) {
            names.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    Ok(names.into_iter().min())
}

#[cfg(test)]
mod tests {
    use super::{Checksum, read};

    /// The values of FNV-1a, 64 bits, in its authors' test suite.
    #[test]
    fn checksums_are_fnv_1a() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut sum = Checksum::EMPTY;
            sum.add(text.as_bytes());
            assert_eq!(sum, Checksum { hash, bytes: text.len() as u64 }, "{text}");
        }
    }

    #[test]
    fn a_record_holds_every_checksum_of_a_name() {
        let files = read(
            "# a comment of 3 words\n00000000000000aa 5 a b.csv\n00000000000000bb 6 a b.csv\n",
        );
        let sums = [Checksum { hash: 0xaa, bytes: 5 }, Checksum { hash: 0xbb, bytes: 6 }];
        assert_eq!(files["a b.csv"], sums);
        assert_eq!(files.len(), 1);
    }
}
