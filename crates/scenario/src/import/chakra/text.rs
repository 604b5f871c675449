//! All traces of a job as one text, since the files of a scenario are texts. The first line is [`HEAD`]; each
//! further line has the bytes of a rank's file in hexadecimal digits.

use std::fmt::Write;

use super::{ChakraError, RankTrace};

/// The first line.
const HEAD: &str = "chakra traces";

/// Returns the text of these files, which are not compressed, in the order of their ranks.
pub fn text_of(files: &[Vec<u8>]) -> String {
    let bytes: usize = files.iter().map(Vec::len).sum();
    let mut text = String::with_capacity(HEAD.len() + 1 + files.len() + 2 * bytes);
    text += HEAD;
    for file in files {
        text.push('\n');
        for byte in file {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
    }
    text
}

/// Reads such a text; `None` if the text is of another kind.
pub fn of_text(text: &str) -> Option<Result<Vec<RankTrace>, ChakraError>> {
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return None;
    }
    let trace = |(rank, line): (u32, &str)| RankTrace::parse(rank, &bytes_of(rank, line)?);
    Some((0..).zip(lines).map(trace).collect())
}

fn bytes_of(rank: u32, line: &str) -> Result<Vec<u8>, ChakraError> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    };
    line.as_bytes().chunks(2).map(byte).collect::<Option<_>>().ok_or_else(|| ChakraError {
        rank,
        offset: None,
        node: None,
        what: "its line must have two hexadecimal digits per byte".to_owned(),
    })
}
