//! Key file of a command: its keys, and what has changed since it was read before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use apus_udp::keyfile;
use apus_udp::session::{Entry, EntryKey, KeyId, KeyRing, PeerKey};

use crate::failure::Failure;

/// A key file that has been read. The value holds no secret.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    /// The lines by their keys.
    lines: BTreeMap<Public, Label>,
}

/// Public part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Public {
    Shared(KeyId),
    Own(PeerKey),
    Peer(PeerKey),
}

/// What a line says about its key.
#[derive(Debug, PartialEq, Eq)]
struct Label {
    /// Name of the host; empty for a shared key.
    name: String,
    retired: bool,
}

/// Number of keys in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub shared_keys: usize,
    pub key_pairs: usize,
    pub peers: usize,
    /// Those of the keys above whose lines begin with `retired`.
    pub retired: usize,
}

/// Number of keys that differ between two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changes {
    pub added: usize,
    pub removed: usize,
    /// Keys that were retired, taken into use again, or given another name.
    pub changed: usize,
}

impl KeyFile {
    /// Reads a key file.
    ///
    /// # Errors
    /// If the file cannot be read, others may read it, or it is not a key file. The error names the file and the line.
    pub fn read(path: &Path) -> Result<(KeyRing, Self), Failure> {
        let entries =
            keyfile::read_entries(path).map_err(|error| Failure::Input(error.to_string()))?;
        // The ring moves the clones. The originals are wiped in place.
        let ring = KeyRing::of(entries.iter().cloned())
            .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
        let lines = entries.iter().map(line).collect();
        Ok((ring, Self { path: path.to_owned(), lines }))
    }

    /// Reads the file again, for the same host.
    ///
    /// # Errors
    /// As [`KeyFile::read`]. Also if one of the two files has key pairs and the other has none: connections that prove the keys
    /// of both sides and connections that do not cannot follow each other in one host.
    pub fn read_again(&self) -> Result<(KeyRing, Self), Failure> {
        let (ring, now) = Self::read(&self.path)?;
        let proves = |file: &Self| file.counts().key_pairs > 0;
        let path = self.path.display();
        match (proves(self), proves(&now)) {
            (true, false) => Err(Failure::Input(format!(
                "{path}: no line `apus-self-1`, but this server proves its own key; add the line, or restart the server \
                 to serve all holders of the shared key"
            ))),
            (false, true) => Err(Failure::Input(format!(
                "{path}: a line `apus-self-1`, but this server serves all holders of the shared key; remove the line, or \
                 restart the server to prove its own key"
            ))),
            _ => Ok((ring, now)),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Counts the keys.
    pub fn counts(&self) -> Counts {
        let count = |of: fn(&Public, &Label) -> bool| {
            self.lines.iter().filter(|(key, label)| of(key, label)).count()
        };
        Counts {
            shared_keys: count(|key, _| matches!(key, Public::Shared(_))),
            key_pairs: count(|key, _| matches!(key, Public::Own(_))),
            peers: count(|key, _| matches!(key, Public::Peer(_))),
            retired: count(|_, label| label.retired),
        }
    }

    /// Compares this file with the one that was read before.
    pub fn changes_since(&self, before: &Self) -> Changes {
        let absent = |from: &Self, other: &Self| {
            from.lines.keys().filter(|key| !other.lines.contains_key(key)).count()
        };
        let differs = |(key, label): &(&Public, &Label)| {
            before.lines.get(key).is_some_and(|was| was != *label)
        };
        Changes {
            added: absent(self, before),
            removed: absent(before, self),
            changed: self.lines.iter().filter(differs).count(),
        }
    }
}

fn line(entry: &Entry) -> (Public, Label) {
    let (key, name) = match &entry.key {
        EntryKey::Shared(key) => (Public::Shared(key.id()), ""),
        EntryKey::Own(name, pair) => (Public::Own(pair.public()), &**name),
        EntryKey::Peer(name, key) => (Public::Peer(*key), &**name),
    };
    (key, Label { name: name.to_owned(), retired: entry.retired })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes the lines as a key file that only its owner may read.
    fn write(path: &Path, lines: &[String]) {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;

        let mut options = fs::OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(path).expect("a file");
        file.write_all(lines.join("\n").as_bytes()).expect("room");
    }

    fn hex(byte: u8) -> String {
        format!("{byte:02x}").repeat(32)
    }

    #[test]
    fn what_has_changed_since_a_file_was_read_is_counted_by_key() {
        let path = std::env::temp_dir().join(format!("apus-changes-{}", std::process::id()));
        let shared = |n| format!("apus-key-1 {}", hex(n));
        let peer = |name, n| format!("apus-peer-1 {name} {}", hex(n));
        let own = format!("apus-self-1 here {}", hex(9));
        write(&path, &[shared(1), shared(2), own.clone(), peer("a", 3), peer("b", 4)]);
        let (_, before) = KeyFile::read(&path).expect("keys");
        let counts = Counts { shared_keys: 2, key_pairs: 1, peers: 2, retired: 0 };
        assert_eq!(before.counts(), counts);
        // Key 1 is retired and key 2 removed, peer a has another name, b is as before, and c is new.
        let (one, renamed) = (format!("retired {}", shared(1)), peer("a-2", 3));
        write(&path, &[peer("b", 4), one, shared(5), own.clone(), renamed, peer("c", 6)]);
        let (_, after) = before.read_again().expect("keys");
        let counts = Counts { shared_keys: 2, key_pairs: 1, peers: 3, retired: 1 };
        assert_eq!(after.counts(), counts);
        let changes = Changes { added: 2, removed: 1, changed: 2 };
        assert_eq!(after.changes_since(&before), changes);
        let nothing = Changes { added: 0, removed: 0, changed: 0 };
        assert_eq!(after.changes_since(&after), nothing);
        // A file that was cut off after its first line would no longer prove this host's own key.
        write(&path, &[shared(1)]);
        let why = after.read_again().expect_err("no own key").to_string();
        assert!(why.contains("no line `apus-self-1`") && why.contains("apus-changes-"), "{why}");
        let (_, group) = KeyFile::read(&path).expect("a key");
        write(&path, &[shared(1), own]);
        let why = group.read_again().expect_err("an own key").to_string();
        assert!(why.contains("remove the line, or restart"), "{why}");
        fs::remove_file(path).expect("the file");
    }
}
