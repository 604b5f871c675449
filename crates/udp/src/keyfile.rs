//! Creation and reading of key files, which only their owner may read.
//!
//! Keys come from the system's generator. If a key file is a credential of systemd, its group may read it too, since only the
//! service can enter the directory of the credential.
//!
//! [`KeyRing::parse`] defines the format: lines of shared keys, of the key pair of this host, and of the public keys of peers.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use thiserror::Error;
use zeroize::Zeroizing;

use crate::session::{Entry, EntryKey, KeyError, KeyId, KeyPair, KeyRing, SharedKey, entries};

/// Maximum length of a key file. A file of a thousand keys has a tenth of this.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads the keys of a file, which must be readable by its owner only, or be a credential of systemd.
///
/// # Errors
/// If the file cannot be read, others may read it, or it is not a key file.
pub fn read(path: &Path) -> Result<KeyRing, KeyFileError> {
    let entries = read_entries(path)?;
    // The ring moves the clones. The originals are wiped in place.
    let ring = KeyRing::of(entries.iter().cloned());
    ring.map_err(|error| KeyFileError { path: path.to_owned(), fault: error.into() })
}

/// Reads the entries of a key file, which must be readable by its owner only, or be a credential of systemd.
///
/// # Errors
/// If the file cannot be read, others may read it, or a line is invalid.
pub fn read_entries(path: &Path) -> Result<Vec<Entry>, KeyFileError> {
    let read = || {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let mode = metadata.permissions().mode() & 0o777;
        let credentials = std::env::var_os("CREDENTIALS_DIRECTORY");
        if mode & refused(path, credentials.as_deref()) != 0 {
            return Err(Fault::Readable(mode));
        }
        // Reserve the full capacity at once: growing would leave copies of the secrets in memory.
        let room = metadata.len().min(MAX_FILE_BYTES) as usize + 1;
        let mut text = Zeroizing::new(String::with_capacity(room));
        file.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
        Ok(entries(&text)?)
    };
    read().map_err(|fault| KeyFileError { path: path.to_owned(), fault })
}

/// Returns the permission bits that a key file must not have.
fn refused(path: &Path, credentials: Option<&OsStr>) -> u32 {
    let is_credential = credentials
        .map(Path::new)
        .is_some_and(|folder| folder.is_absolute() && path.parent() == Some(folder));
    // From version 254 onwards, systemd gives the user of a service access to its credentials by an ACL. The mask of
    // this ACL appears as the file's permissions for its group. The directory is closed to other users.
    if is_credential { 0o037 } else { 0o077 }
}

/// Creates a shared key and writes it to a new file that only its owner may read. Returns the public name of the key.
///
/// # Errors
/// If the file exists or cannot be written, or the system provides no random bytes.
pub fn create(path: &Path) -> Result<KeyId, KeyFileError> {
    let create = || {
        let key = new_shared()?;
        let id = key.id();
        let about = format!(
            "# An Apus key. Every peer that has this file can open sessions: keep it from others.\n\
             # Its public name is {id}.\n"
        );
        write(path, &about, &[Entry::new(EntryKey::Shared(key))])?;
        Ok(id)
    };
    create().map_err(|fault| KeyFileError { path: path.to_owned(), fault })
}

/// Creates a key pair for the host `name` and writes it to a new file that only its owner may read, with the shared keys of the
/// file `group` or, without it, a new shared key. Returns the entry that peers need.
///
/// # Errors
/// As [`create`]. Also if the name is invalid, or if the file `group` cannot be read or has no shared key.
pub fn create_pair(path: &Path, name: &str, group: Option<&Path>) -> Result<Entry, KeyFileError> {
    let is_shared = |entry: &&Entry| matches!(entry.key, EntryKey::Shared(_));
    let group = group.map(read_entries).transpose()?;
    let create = || {
        // Reserve the full capacity at once: growing would leave copies of the secrets in memory, as would moving them
        // out of a vector.
        let mut entries = Vec::with_capacity(1 + group.as_ref().map_or(1, Vec::len));
        match &group {
            None => entries.push(Entry::new(EntryKey::Shared(new_shared()?))),
            Some(group) => entries.extend(group.iter().filter(is_shared).cloned()),
        }
        let pair = KeyPair::generate().map_err(|error| Fault::Create(GIVEN, error))?;
        let public = Entry::new(EntryKey::Peer(name.to_owned(), pair.public()));
        let own = Entry::new(EntryKey::Own(name.to_owned(), pair));
        entries.push(own);
        KeyRing::of(entries.iter().cloned())?;
        let about = format!(
            "# The Apus keys of {name}: keep this file on this host, and from others. Peers need this line:\n\
             # {}\n\
             # Add a line `apus-peer-1` for each peer.\n",
            *public.to_line()
        );
        write(path, &about, &entries)?;
        Ok(public)
    };
    create().map_err(|fault| KeyFileError { path: path.to_owned(), fault })
}

fn new_shared() -> Result<SharedKey, Fault> {
    SharedKey::generate().map_err(|error| Fault::Create(GIVEN, error))
}

/// Writes a new file that only its owner may read. The file is either complete or absent, even if the process is killed
/// or the machine fails meanwhile.
fn write(path: &Path, about: &str, entries: &[Entry]) -> Result<(), Fault> {
    if path.symlink_metadata().is_ok() {
        return Err(Fault::Exists);
    }
    // Threads of a process use the same name for the temporary file.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    // A killed process with the same process number may have left a temporary file.
    let _ = fs::remove_file(&part);
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part);
    let mut file = opened.map_err(|error| Fault::Create("be created", error))?;
    let mut lines = || {
        file.write_all(about.as_bytes())?;
        entries.iter().try_for_each(|entry| {
            file.write_all(entry.to_line().as_bytes())?;
            file.write_all(b"\n")
        })?;
        file.sync_all()
    };
    let written = lines().map_err(|error| Fault::Create("be written", error));
    let named = written.and_then(|()| name(&part, path));
    let _ = fs::remove_file(&part);
    named
}

/// Gives a complete file its final name, unless another file has this name.
fn name(part: &Path, path: &Path) -> Result<(), Fault> {
    let named = match fs::hard_link(part, path) {
        // If the file system does not support hard links, another process can create the file only between these two
        // steps.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !path.exists() => {
            fs::rename(part, path)
        }
        named => named,
    };
    named.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Fault::Exists,
        _ => Fault::Create("be created", error),
    })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new(".")));
    // The file is complete, even if a failure of the machine loses its name.
    let _ = folder.and_then(|folder| folder.sync_all());
    Ok(())
}

/// Reason why a key file could not be read or created.
#[derive(Debug, Error)]
#[error("{}: {fault}", path.display())]
pub struct KeyFileError {
    path: PathBuf,
    fault: Fault,
}

impl KeyFileError {
    /// Returns `true` if the system caused the error: the file exists, cannot be read or cannot be written, or there are no
    /// random bytes. Otherwise a name, or the content or mode of a file, is wrong.
    #[must_use]
    pub fn is_of_system(&self) -> bool {
        match &self.fault {
            Fault::Read(error) => error.kind() != io::ErrorKind::InvalidData, // text that is not UTF-8
            Fault::Exists | Fault::Create(..) => true,
            Fault::Readable(_) | Fault::Key(_) => false,
        }
    }
}

/// Action that the system failed to perform for a new key.
const GIVEN: &str = "be given a key";

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
    fn a_key_file_is_whole_or_absent_and_nothing_is_left_beside_it() {
        let folder = path("folder.keys");
        fs::create_dir(&folder).unwrap();
        let file = folder.join("one.key");
        // A temporary file that a killed process has left.
        let part = folder.join(format!("one.key.{}.part", std::process::id()));
        fs::write(&part, "apus-key-1 ha").unwrap();
        create(&file).unwrap();
        create(&file).unwrap_err();
        let names = |folder: &Path| -> Vec<_> {
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        };
        assert_eq!(names(&folder), ["one.key"]);
        let missing = create(&folder.join("none/one.key")).unwrap_err().to_string();
        assert!(missing.contains("cannot be created"), "{missing}");
        // A dangling symbolic link also occupies the name.
        let link = folder.join("link.key");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let again = create(&link).unwrap_err().to_string();
        assert!(again.contains("never overwritten"), "{again}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_pair_is_made_with_the_group_of_another_file_and_shows_its_public_line() {
        let files = ["group", "a", "b", "c"].map(|name| path(&format!("{name}.pair")));
        let [group, a, b, c] = &files;
        create(group).unwrap();
        let first = create_pair(a, "a", Some(group)).unwrap();
        let second = create_pair(b, "b", Some(a)).unwrap();
        assert_eq!(fs::metadata(a).unwrap().permissions().mode() & 0o777, 0o600);
        let shared = |file: &Path| {
            let entries = read_entries(file).unwrap().into_iter();
            entries.filter(|e| matches!(e.key, EntryKey::Shared(_))).collect::<Vec<_>>()
        };
        assert_eq!(shared(group), shared(b), "one group");
        let own = |file: &Path| read(file).unwrap().own_keys().map(|(key, _)| key).next();
        assert_eq!(EntryKey::Peer("a".to_owned(), own(a).unwrap()), first.key);
        assert_ne!(own(a), own(b));
        // The public line of one file is the line that the other host needs.
        let public = read_entries(b).unwrap().iter().find_map(Entry::public).unwrap();
        assert_eq!(public, second);
        let text = fs::read_to_string(a).unwrap() + &public.to_line() + "\n";
        fs::write(a, text).unwrap();
        assert_eq!(read(a).unwrap().peers().map(|(_, name)| name).collect::<Vec<_>>(), ["b"]);
        create_pair(c, "c", None).unwrap();
        assert_ne!(shared(c), shared(group));
        let wrong = path("wrong.pair");
        let error = create_pair(&wrong, "no name", None).unwrap_err().to_string();
        assert!(error.contains("`no name` is not a name") && !wrong.exists(), "{error}");
        for file in files {
            fs::remove_file(file).unwrap();
        }
    }

    /// The environment variable belongs to the whole process, so the test calls the rule directly.
    #[test]
    fn the_group_may_read_a_credential_of_systemd_and_no_other_key_file() {
        let folder = Some(OsStr::new("/run/credentials/apus.service"));
        let credential = Path::new("/run/credentials/apus.service/apus.key");
        let is_refused = |mode: u32, path: &Path| mode & refused(path, folder) != 0;
        // Permissions as systemd sets them, with an ACL and without.
        assert!(!is_refused(0o440, credential) && !is_refused(0o400, credential));
        assert!(is_refused(0o444, credential) && is_refused(0o460, credential));
        let others = ["/etc/apus/apus.key", "/run/credentials/apus.service/keys/apus.key", "a.key"];
        for other in others {
            assert!(is_refused(0o440, Path::new(other)), "{other}");
        }
        assert_eq!(refused(credential, None), 0o077);
        // A relative path with an empty directory is not a credential either.
        assert_eq!(refused(Path::new("a.key"), Some(OsStr::new(""))), 0o077);
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
