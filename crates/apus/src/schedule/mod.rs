//! Job files in all formats that can be read and written.

mod chakra_files;
mod goal_files;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use apus_jobs::{Graph, goal};
use apus_scenario::file::{self, DATA_BYTES};
use apus_scenario::import::chakra::{Changes, Groups, Skipped, groups_of_json};
use apus_scenario::import::parse_job;
use flate2::read::MultiGzDecoder;

use crate::failure::Failure;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Options for reading a job.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Groups of ranks in Chakra traces.
    pub groups: Groups,
    /// `true` to leave out parts of a Chakra trace that have no meaning.
    pub lenient: bool,
}

impl Reading {
    /// Returns the options with the groups of a file.
    pub fn new(groups: Option<&Path>, lenient: bool) -> Result<Self, Failure> {
        let Some(path) = groups else { return Ok(Self { lenient, ..Self::default() }) };
        let name = path.display();
        let fail = |why: String| Failure::Input(format!("--groups {name}: {why}"));
        let text = file::read_text(path, DATA_BYTES)
            .map_err(|error| fail(format!("cannot be read: {error}")))?;
        let groups = groups_of_json(&text).map_err(fail)?;
        Ok(Self { groups, lenient })
    }
}

/// A job that was read.
pub struct Job {
    /// The job.
    pub graph: Graph,
    /// Parts that the lenient mode left out.
    pub skipped: Vec<Skipped>,
}

/// A format for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// GOAL as text.
    Text,
    /// GOAL as binary.
    Binary,
    /// Chakra traces, one file per rank.
    Chakra {
        /// `true` to round times that Chakra cannot represent.
        rounds: bool,
    },
}

/// Reads a job; the content determines the format. Chakra traces are named by one of the files, by their folder, or by
/// the common prefix of their names.
pub fn read(path: &Path, reading: &Reading) -> Result<Job, Failure> {
    if let Some(files) = chakra_files::find(path)? {
        return chakra_files::read(&files, reading);
    }
    if reading.lenient || !reading.groups.is_empty() {
        let name = path.display();
        let why =
            "--lenient and --groups have no effect: these are no Chakra traces (PREFIX.RANK.et)";
        return Err(Failure::Input(format!("{name}: {why}")));
    }
    read_one(path).map(|graph| Job { graph, skipped: Vec::new() })
}

/// Reads a job that consists of a single file.
fn read_one(path: &Path) -> Result<Graph, Failure> {
    let name = path.display();
    let unreadable =
        |error: std::io::Error| Failure::Input(format!("{name}: cannot be read: {error}"));
    // Reading the start of a pipe consumes it, and opening it again would wait forever.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(Failure::Input(format!(
            "{name}: is no regular file, and a job is read twice: first its beginning, which tells the format; write it to a file"
        )));
    }
    let mut head = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(4096).read_to_end(&mut head).map_err(unreadable)?;
    let is_goal = goal::is_binary(&head) || is_goal_text(&head);
    if is_goal {
        return goal_files::read(path);
    }
    let bytes = read_bytes(path)?;
    if goal::is_binary(&bytes) {
        return goal::read(&bytes).map_err(|error| Failure::Input(format!("{name}: {error}")));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        let known = "GOAL, .cm of htsim, workload.txt of SimAI, or Chakra (PREFIX.RANK.et)";
        Failure::Input(format!(
            "{name}: it is neither text nor a binary GOAL file; the formats are {known}"
        ))
    })?;
    parse_job(&text).map_err(|why| Failure::Input(format!("{name}:{why}")))
}

/// Returns `true` if a text begins with GOAL's `num_ranks`, after comments.
fn is_goal_text(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with("//"));
    first.is_some_and(|first| first.starts_with("num_ranks") || first.starts_with("/*"))
}

/// Reads a file that may be compressed by gzip, which its first bytes show.
fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let fail = |why: String| Failure::Input(format!("{name}: {why}"));
    let mut bytes = file::read_bytes(path, DATA_BYTES).map_err(|error| {
        let is_too_long = error.kind() == ErrorKind::FileTooLarge;
        let remedy = if is_too_long { "; use GOAL, which is read in pieces" } else { "" };
        fail(format!("cannot be read: {error}{remedy}"))
    })?;
    if bytes.starts_with(&GZIP) {
        let packed = std::mem::take(&mut bytes);
        // A file with several members, such as `cat a.gz b.gz` creates, contains their contents one after the other.
        let mut decoder = MultiGzDecoder::new(packed.as_slice()).take(DATA_BYTES + 1);
        decoder.read_to_end(&mut bytes).map_err(|error| {
            fail(format!("it cannot be decompressed: {error}; the file is damaged or cut short"))
        })?;
    }
    if bytes.len() as u64 > DATA_BYTES {
        return Err(fail(format!(
            "it has more than {DATA_BYTES} bytes; use GOAL, which is read in pieces"
        )));
    }
    Ok(bytes)
}

/// Returns a job file that is not text as text that a scenario can contain: Chakra traces unchanged, a binary file as
/// GOAL text.
pub fn read_as_text(path: &Path) -> Result<String, String> {
    let text_of = |failure: Failure| failure.to_string();
    if let Some(files) = chakra_files::find(path).map_err(text_of)? {
        return chakra_files::read_as_text(&files).map_err(text_of);
    }
    let Job { graph, .. } = read(path, &Reading::default()).map_err(text_of)?;
    let mut text = String::new();
    match goal::write_text(&graph, &mut text) {
        Ok(Ok(())) => Ok(text),
        Ok(Err(error)) => Err(format!("{}: {error}", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Returns `true` if a path names Chakra traces and not another file.
pub fn names_traces(path: &Path) -> bool {
    matches!(chakra_files::find(path), Ok(Some(_)))
}

/// Writes a job. Chakra traces get the name `PATH.RANK.et`. Returns the differences from the job.
pub fn write(graph: &Graph, form: Form, path: &Path) -> Result<Changes, Failure> {
    match form {
        Form::Text => goal_files::write(graph, goal_files::Form::Text, path)?,
        Form::Binary => goal_files::write(graph, goal_files::Form::Binary, path)?,
        Form::Chakra { rounds } => return chakra_files::write(graph, path, rounds),
    }
    Ok(Changes::default())
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("apus-{}-{name}", std::process::id()))
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).expect("packed");
        encoder.finish().expect("packed")
    }

    #[test]
    fn all_members_of_a_compressed_file_are_read_and_what_is_none_is_an_error() {
        let path = path("members.gz");
        let members = [packed("first\n"), packed("second\n")].concat();
        let read = |end: &[u8]| {
            std::fs::write(&path, [&members, end].concat()).expect("a file");
            read_bytes(&path).map_err(|failure| failure.to_string())
        };
        assert_eq!(read(b""), Ok(b"first\nsecond\n".to_vec()));
        for end in [&b"x"[..], b"This is no member of gzip.", &packed("third\n")[..20]] {
            let why = read(end).expect_err("not a member");
            assert!(why.contains("the file is damaged or cut short"), "{why}");
        }
        std::fs::remove_file(&path).expect("it is there");
    }

    /// No process writes to the pipe, so the test would block without the refusal.
    #[cfg(unix)]
    #[test]
    fn a_job_in_a_pipe_is_refused() {
        let path = path("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo").success());
        let failure = read(&path, &Reading::default()).err().expect("no file").to_string();
        std::fs::remove_file(&path).expect("it is there");
        assert!(failure.contains("is no regular file, and a job is read twice"), "{failure}");
    }
}
