//! Key files: made from the system's randomness, and read only if their owner alone may read them.
//!
//! The format is [`KeyRing::parse`]'s: lines of `apus-key-1` and 64 hexadecimal digits.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zeroize::Zeroizing;

use crate::session::{KeyError, KeyId, KeyRing, SharedKey};

/// Maximum length of a key file. A file of a thousand keys has a tenth of this.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads the keys of a file, which must be readable by its owner only.
///
/// # Errors
/// If the file cannot be read, others may read it, or it is not a key file.
pub fn read(path: &Path) -> Result<KeyRing, KeyFileError> {
    let read = || {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(Fault::Readable(mode));
        }
        // Full capacity at once: growing would leave copies of the secrets in memory.
        let room = metadata.len().min(MAX_FILE_BYTES) as usize + 1;
        let mut text = Zeroizing::new(String::with_capacity(room));
        file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
        Ok(KeyRing::parse(&text)?)
    };
    read().map_err(|fault| KeyFileError { path: path.to_owned(), fault })
}

/// Makes a new key and writes it to a new file that only its owner may read.
///
/// # Errors
/// If the file exists or cannot be written, or the system gives no randomness.
pub fn create(path: &Path) -> Result<KeyId, KeyFileError> {
    let create = || {
        let key = SharedKey::generate().map_err(|error| Fault::Create("be given a key", error))?;
        let about = format!(
            "# An Apus key. Every peer that has this file can open sessions: keep it from others.\n\
             # Its public name is {}.\n",
            key.id()
        );
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(path);
        let mut file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Fault::Exists,
            _ => Fault::Create("be created", error),
        })?;
        let line = key.to_line();
        let parts = [about.as_bytes(), line.as_bytes(), b"\n"];
        let written = parts.into_iter().try_for_each(|part| file.write_all(part));
        let written = written.and_then(|()| file.sync_all());
        written.map_err(|error| Fault::Create("be written", error))?;
        Ok(key.id())
    };
    create().map_err(|fault| KeyFileError { path: path.to_owned(), fault })
}

/// A key file that cannot be read or created.
#[derive(Debug, Error)]
#[error("{}: {fault}", path.display())]
pub struct KeyFileError {
    path: PathBuf,
    fault: Fault,
}

#[derive(Debug, Error)]
enum Fault {
    #[error("this key file cannot be read: {0}; `apus key` makes one")]
    Read(#[from] io::Error),
    #[error("others may read this key file (mode {0:03o}); apply `chmod 600` to it first")]
    Readable(u32),
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error(
        "the file exists, and keys are never overwritten; choose another name, or remove the file"
    )]
    Exists,
    #[error("the key file cannot {0}: {1}")]
    Create(&'static str, io::Error),
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
        assert!(open.contains("(mode 640); apply `chmod 600`"), "{open}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, "apus-key-1 short\n").unwrap();
        let short = read(&file).unwrap_err().to_string();
        assert!(short.contains("line 1 is not a key"), "{short}");
        fs::remove_file(file).unwrap();
    }
}
