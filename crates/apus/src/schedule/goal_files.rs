//! GOAL files: read in pieces, and written in either form.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use apus_jobs::Graph;
use apus_jobs::goal::{self, BinaryReader, GoalError, Header, TextReader};

use crate::failure::Failure;
use crate::output;

/// A form of GOAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Binary,
}

/// Bytes per read call.
const PIECE: usize = 1 << 18;

/// Reason why a file could not be read.
enum Unreadable {
    Io(io::Error),
    Goal(GoalError),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<GoalError> for Unreadable {
    fn from(error: GoalError) -> Self {
        Self::Goal(error)
    }
}

/// Reads a GOAL file; its content determines the form.
pub(super) fn read(path: &Path) -> Result<Graph, Failure> {
    let read = || -> Result<Graph, Unreadable> {
        let mut file = File::open(path)?;
        let mut head = Vec::new();
        Read::by_ref(&mut file).take(14).read_to_end(&mut head)?;
        if goal::is_binary(&head) { read_binary(file, &head) } else { read_text(file, &head) }
    };
    read().map_err(|error| {
        let name = path.display();
        Failure::Input(match error {
            Unreadable::Io(error) => format!("{name}: cannot be read: {error}"),
            Unreadable::Goal(error) => format!("{name}: {error}"),
        })
    })
}

fn read_text(mut file: File, head: &[u8]) -> Result<Graph, Unreadable> {
    let mut reader = TextReader::new();
    reader.feed(head)?;
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(reader.finish()?),
            length => reader.feed(&piece[..length])?,
        }
    }
}

/// Reads a binary file rank by rank, so that the memory use is that of the graph and one block.
fn read_binary(mut file: File, head: &[u8]) -> Result<Graph, Unreadable> {
    let length = file.metadata()?.len();
    // A damaged number of ranks must not allocate a table that is larger than the file.
    let table = BinaryReader::table_bytes(head)?.min(length);
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(table).read_to_end(&mut bytes)?;
    let mut reader = BinaryReader::new(&bytes, length)?;
    while let Some(block) = reader.next_block() {
        bytes.clear();
        Read::by_ref(&mut file).take(block.end - block.start).read_to_end(&mut bytes)?;
        reader.read_block(&bytes)?;
    }
    Ok(reader.finish()?)
}

/// Writes a GOAL file.
pub(super) fn write(graph: &Graph, form: Form, path: &Path) -> Result<(), Failure> {
    goal::check_times(graph).map_err(|error| Failure::Input(error.to_string()))?;
    let content = |out: &mut dyn Write| match form {
        Form::Text => write_text(graph, out),
        Form::Binary => write_binary(graph, out),
    };
    output::write_file_with(path, content).map_err(Failure::Run)
}

fn write_binary(graph: &Graph, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&Header::of(graph).to_bytes())?;
    let mut block = Vec::new();
    for rank in 0..graph.ranks() {
        block.clear();
        goal::write_block(graph, rank, &mut block).map_err(io::Error::other)?;
        out.write_all(&block)?;
    }
    Ok(())
}

fn write_text(graph: &Graph, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Text { out, failed: None };
    match goal::write_text(graph, &mut text) {
        Ok(written) => written.map_err(io::Error::other),
        Err(_) => {
            Err(text.failed.unwrap_or_else(|| io::Error::other("the text cannot be formatted")))
        }
    }
}

/// A text writer that keeps the error of its output.
struct Text<'a> {
    out: &'a mut dyn Write,
    failed: Option<io::Error>,
}

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.out.write_all(text.as_bytes()).map_err(|error| {
            self.failed = Some(error);
            std::fmt::Error
        })
    }
}
