//! Key files on disk: made from the system's randomness, and read only if nobody else can.
//!
//! The format is [`KeyRing::parse`]'s: lines of `apus-key-1` and 64 hexadecimal digits.

use std::error::Error;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::session::{KeyError, KeyId, KeyRing, SharedKey};

/// A file of a thousand keys is a tenth of this.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads the keys of a file, which must be readable by its owner only.
///
/// # Errors
/// If the file cannot be read, others may read it, or it is no key file.
pub fn read(path: &Path) -> Result<KeyRing, KeyFileError> {
    let at = |kind| KeyFileError { path: path.to_owned(), kind };
    let file = File::open(path).map_err(|error| at(Kind::Io("read", error)))?;
    let metadata = file.metadata().map_err(|error| at(Kind::Io("read", error)))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(at(Kind::Readable(mode)));
    }
    // Room for all of it: growing would leave copies of the secrets behind.
    let room = metadata.len().min(MAX_FILE_BYTES) as usize + 1;
    let mut text = Zeroizing::new(String::with_capacity(room));
    let read = file.take(MAX_FILE_BYTES).read_to_string(&mut text);
    read.map_err(|error| at(Kind::Io("read", error)))?;
    KeyRing::parse(&text).map_err(|error| at(Kind::Key(error)))
}

/// Makes a new key and writes it to a new file that only its owner may read.
///
/// # Errors
/// If the file exists or cannot be written, or the system gives no randomness.
pub fn create(path: &Path) -> Result<KeyId, KeyFileError> {
    let at =
        |what| move |error| KeyFileError { path: path.to_owned(), kind: Kind::Io(what, error) };
    let key = SharedKey::generate().map_err(at("be given a random key"))?;
    let about = format!(
        "# An Apus key. Every peer that has this file can open sessions: keep it from others.\n\
         # Its public name is {}.\n",
        key.id()
    );
    let line = key.to_line();
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(at("be created"))?;
    let parts = [about.as_bytes(), line.as_bytes(), b"\n"];
    let written = parts.into_iter().try_for_each(|part| file.write_all(part));
    written.and_then(|()| file.sync_all()).map_err(at("be written"))?;
    Ok(key.id())
}

/// What is wrong with a key file.
#[derive(Debug)]
pub struct KeyFileError {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The file cannot be treated in this way.
    Io(&'static str, io::Error),
    /// Others have these rights.
    Readable(u32),
    Key(KeyError),
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            Kind::Io("read", error) => {
                write!(f, "{path}: this key file cannot be read: {error}; `apus key` makes one")
            }
            Kind::Io(_, error) if error.kind() == io::ErrorKind::AlreadyExists => write!(
                f,
                "{path}: the file exists, and keys are never overwritten; choose another name, or \
                 remove the file"
            ),
            Kind::Io(what, error) => write!(f, "{path}: the key file cannot {what}: {error}"),
            Kind::Readable(mode) => write!(
                f,
                "{path}: others may read this key file (mode {mode:03o}); `chmod 600 {path}` first"
            ),
            Kind::Key(error) => write!(f, "{path}: {error}"),
        }
    }
}

impl Error for KeyFileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::Io(_, error) => Some(error),
            Kind::Key(error) => Some(error),
            Kind::Readable(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("apus-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_and_read_back() {
        let (one, two) = (path("one.key"), path("two.key"));
        let id = create(&one).unwrap();
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&one).unwrap().ids().collect::<Vec<_>>(), [id]);
        assert_ne!(create(&two).unwrap(), id, "every key is another");
        let again = create(&one).unwrap_err().to_string();
        assert!(again.contains("keys are never overwritten"), "{again}");
        assert_eq!(read(&one).unwrap().ids().collect::<Vec<_>>(), [id], "it is still there");
        for file in [one, two] {
            fs::remove_file(file).unwrap();
        }
    }

    #[test]
    fn what_others_may_read_or_is_no_key_is_refused_by_name() {
        let file = path("wrong.key");
        let missing = read(&file).unwrap_err().to_string();
        assert!(missing.contains("cannot be read") && missing.contains("`apus key`"), "{missing}");
        create(&file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let open = read(&file).unwrap_err().to_string();
        assert!(open.contains("(mode 640); `chmod 600 "), "{open}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, "apus-key-1 short\n").unwrap();
        let short = read(&file).unwrap_err().to_string();
        assert!(short.contains("line 1 is no key"), "{short}");
        fs::remove_file(file).unwrap();
    }
}
