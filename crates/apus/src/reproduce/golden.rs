//! Expected events of quick runs: a change of results becomes visible in the commit that causes it.
//!
//! The file has a line per experiment with its name and the hash of all events of its runs. Events depend neither on
//! the machine nor on the number of threads.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use apus_scenario::file::{self, SCENARIO_BYTES};
use apus_sim::summary::Summary;

use super::result::ExperimentResult;
use crate::output::write_file;

const HEAD: &str = "\
# Events of each experiment with one seed (`apus reproduce --all --quick --write-events FILE`), on every machine.
";

/// Expected events of this version.
const EXPECTED: &str = include_str!("../../assets/quick-events.txt");

/// Returns the hash of the events of these runs, in order.
pub(super) fn hash<'a>(runs: impl Iterator<Item = &'a Summary>) -> String {
    let text = |run: &Summary| format!("{} {} {}\n", run.name, run.seed, run.work.event_hash);
    fnv(runs.flat_map(|run| text(run).into_bytes()))
}

/// Returns the version of the program and a hash of its expected results.
pub(super) fn version() -> String {
    let lines = EXPECTED.lines().filter(|line| !line.starts_with('#'));
    let results = fnv(lines.flat_map(|line| line.bytes().chain([b'\n'])));
    format!("apus {}, results {results}", env!("CARGO_PKG_VERSION"))
}

/// Returns the FNV-1a hash of these bytes.
fn fnv(bytes: impl Iterator<Item = u8>) -> String {
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// A file of expected events.
pub(super) struct Golden {
    path: PathBuf,
    events: BTreeMap<String, String>,
}

impl Golden {
    /// Reads the file. If the file is to be written, it may be absent.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not a name and a hash.
    pub(super) fn read(path: &Path, write: bool) -> Result<Self, String> {
        let option = if write { "--write-events" } else { "--expect-events" };
        let fail = |why: String| format!("{option} {}: {why}", path.display());
        let text = match file::read_text(path, SCENARIO_BYTES) {
            Ok(text) => text,
            Err(_) if write && !path.exists() => String::new(),
            Err(error) => return Err(fail(format!("it cannot be read: {error}"))),
        };
        let mut events = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            let Some((name, hash)) = line.split_once(' ').filter(|(_, hash)| is_hash(hash)) else {
                let why = format!("line {} must be a name and 16 hexadecimal digits", index + 1);
                return Err(fail(why));
            };
            events.insert(name.to_owned(), hash.to_owned());
        }
        Ok(Self { path: path.to_owned(), events })
    }

    /// Describes each finished experiment whose events differ from the file.
    pub(super) fn differences(&self, results: &[ExperimentResult]) -> String {
        let mut text = String::new();
        for ExperimentResult { id, events, .. } in results {
            let Some(events) = events else { continue };
            let expected = self.events.get(id);
            if expected == Some(events) {
                continue;
            }
            let expected = expected.map_or("none", String::as_str);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{id}: its events are {events}, expected {expected}");
        }
        if !text.is_empty() {
            let _ = writeln!(
                text,
                "The results of these experiments have changed. If that is meant, renew {} with \
                 --write-events in place of --expect-events, and say so in the commit.",
                self.path.display()
            );
        }
        text
    }

    /// Writes the events of the finished experiments and keeps the other lines. If `all` has the names of all
    /// experiments, lines of all other experiments are removed.
    pub(super) fn write(
        mut self,
        results: &[ExperimentResult],
        all: Option<&[&str]>,
    ) -> Result<String, String> {
        if let Some(all) = all {
            self.events.retain(|name, _| all.contains(&name.as_str()));
        }
        for ExperimentResult { id, events, .. } in results {
            if let Some(events) = events {
                self.events.insert(id.clone(), events.clone());
            }
        }
        let mut text = HEAD.to_owned();
        for (name, hash) in &self.events {
            let _ = writeln!(text, "{name} {hash}");
        }
        write_file(&self.path, &text)?;
        Ok(format!("wrote {}: {} experiments\n", self.path.display(), self.events.len()))
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::{Golden, SCENARIO_BYTES, fnv};

    /// Test vectors of draft-eastlake-fnv-17, appendix C: 64 bits.
    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(fnv([].into_iter()), "cbf29ce484222325");
        assert_eq!(fnv(b"a".iter().copied()), "af63dc4c8601ec8c");
        assert_eq!(fnv(b"foobar".iter().copied()), "85944171f73967e8");
    }

    #[test]
    fn a_file_of_events_that_is_too_large_is_refused() {
        let path = std::env::temp_dir().join(format!("apus-{}-events", std::process::id()));
        let file = File::create(&path).expect("a file");
        // The file is sparse, so it needs no disk space.
        file.set_len(SCENARIO_BYTES + 1).expect("a long file");
        for (write, option) in [(false, "--expect-events"), (true, "--write-events")] {
            let why = Golden::read(&path, write).err().expect("too large");
            assert!(why.starts_with(option), "{why}");
            assert!(
                why.ends_with("cannot be read: it is larger than the limit of 64 MiB"),
                "{why}"
            );
        }
        std::fs::remove_file(&path).expect("it is there");
    }
}
