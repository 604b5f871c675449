//! Files of Chakra traces: `PREFIX.RANK.et`, uncompressed or compressed by gzip.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use apus_jobs::Graph;
use apus_scenario::import::chakra::{Changes, RankTrace, Traces, compose, text_of};

use super::{Job, Reading, read_bytes};
use crate::failure::Failure;
use crate::output::Pending;

/// Name endings of traces.
const ENDS: [&str; 2] = [".et", ".et.gz"];

/// Returns the prefix and the rank in the name of a trace.
fn split(name: &str) -> Option<(&str, u32)> {
    let stem = ENDS.iter().find_map(|end| name.strip_suffix(end))?;
    let (prefix, rank) = stem.rsplit_once('.')?;
    Some((prefix, rank.parse().ok()?))
}

/// Returns the files of the ranks from 0 upwards. The path may be their folder, their prefix, or one of the files.
/// Returns `None` if the path names no traces.
pub(super) fn find(path: &Path) -> Result<Option<Vec<PathBuf>>, Failure> {
    let shown = path.display();
    let fail = |why: String| Err(Failure::Input(format!("{shown}: {why}")));
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (folder, wanted) = if path.is_dir() {
        (path.to_owned(), None)
    } else if let Some((prefix, _)) = split(&name) {
        (path.parent().unwrap_or(Path::new("")).to_owned(), Some(prefix.to_owned()))
    } else if path.exists() {
        return Ok(None);
    } else {
        (path.parent().unwrap_or(Path::new("")).to_owned(), Some(name))
    };
    let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
    let mut found: BTreeMap<u32, PathBuf> = BTreeMap::new();
    let mut prefixes: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((prefix, rank)) = split(&name) else { continue };
        if wanted.as_deref().is_some_and(|wanted| wanted != prefix) {
            continue;
        }
        if !prefixes.iter().any(|known| known == prefix) {
            prefixes.push(prefix.to_owned());
        }
        if let Some(other) = found.insert(rank, entry.path())
            && prefixes.len() < 2
        {
            let (a, b) = (other.display().to_string(), entry.path().display().to_string());
            return fail(format!("{a} and {b} are both of rank {rank}; remove one"));
        }
    }
    if let [first, second, ..] = prefixes.as_slice() {
        let (first, second) = (first.clone(), second.clone());
        return fail(format!(
            "the folder has several traces ({first}, {second}); name one, like FOLDER/{first}"
        ));
    }
    if found.is_empty() {
        return if path.is_dir() {
            fail("the folder has no files PREFIX.RANK.et".to_owned())
        } else {
            Ok(None)
        };
    }
    if let Some(rank) = (0..found.len() as u32).find(|rank| !found.contains_key(rank)) {
        let count = found.len();
        return fail(format!(
            "there are {count} traces, but none of rank {rank}; ranks are numbered from 0"
        ));
    }
    Ok(Some(found.into_values().collect()))
}

/// Reads the files of all ranks as a text that a scenario can contain.
pub(super) fn read_as_text(files: &[PathBuf]) -> Result<String, Failure> {
    let bytes = files.iter().map(|file| read_bytes(file));
    Ok(text_of(&bytes.collect::<Result<Vec<_>, _>>()?))
}

/// Reads the traces of all ranks.
pub(super) fn read(files: &[PathBuf], reading: &Reading) -> Result<Job, Failure> {
    let mut traces = Vec::new();
    for (rank, file) in (0..).zip(files) {
        let bytes = read_bytes(file)?;
        let trace = RankTrace::parse(rank, &bytes);
        traces.push(trace.map_err(|error| Failure::Input(format!("{}: {error}", file.display())))?);
    }
    let imported = compose(&traces, &reading.groups, reading.lenient).map_err(|error| {
        let file = files.get(error.rank as usize).or(files.first());
        let name = file.map(|file| file.display().to_string()).unwrap_or_default();
        let hint = if reading.lenient {
            ""
        } else {
            " (`apus convert --lenient` leaves such things out and lists them)"
        };
        Failure::Input(format!("{name}: {error}{hint}"))
    })?;
    Ok(Job { graph: imported.graph, skipped: imported.skipped })
}

/// Writes a trace per rank: all traces or none. Returns the differences from the job.
pub(super) fn write(graph: &Graph, path: &Path, rounds: bool) -> Result<Changes, Failure> {
    let prefix = path.to_string_lossy().into_owned();
    let prefix = split(&prefix).map_or(prefix.as_str(), |(prefix, _)| prefix);
    let prefix = prefix.strip_suffix(".et").unwrap_or(prefix);
    let file_of = |rank: u32| PathBuf::from(format!("{prefix}.{rank}.et"));
    // A reader would take such a file for a further rank of this trace.
    let further =
        find(&file_of(0))?.and_then(|files| files.into_iter().nth(graph.ranks() as usize));
    if let Some(other) = further {
        let (other, ranks) = (other.display(), graph.ranks());
        return Err(Failure::Input(format!(
            "{other}: is a file of an earlier trace of more than {ranks} ranks; remove that trace, or choose another name"
        )));
    }
    let (mut changes, mut files) = (Changes::default(), Vec::new());
    let traces = Traces::new(graph);
    for rank in 0..graph.ranks() {
        let written = traces.write(rank, rounds);
        let written = written.map_err(|error| Failure::Input(error.to_string()))?;
        changes.rounded += written.changes.rounded;
        changes.freed += written.changes.freed;
        let file =
            Pending::file(&file_of(rank), |out: &mut dyn Write| out.write_all(&written.bytes));
        files.push(file.map_err(Failure::Run)?);
    }
    files.into_iter().try_for_each(Pending::put).map_err(Failure::Run)?;
    Ok(changes)
}
