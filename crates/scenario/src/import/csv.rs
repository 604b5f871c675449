//! Traffic as CSV: a header `start_us,from,to,bytes`, then one message per line. Times are
//! microseconds since the start of the run, exact to the picosecond; nodes are hosts, numbered from
//! 0; bytes are payload. Blank lines and lines that begin with `#` are skipped.

use std::fmt::Write;

use apus_units::Span;

use super::text::{ImportError, content, number, wrong};
use super::traffic::{Message, Traffic};
use apus_units::shorten;

/// The only header.
pub const HEADER: &str = "start_us,from,to,bytes";

/// Reads it.
///
/// # Errors
/// With line and remedy.
pub fn parse_traffic(text: &str) -> Result<Traffic, ImportError> {
    let mut lines = content(text);
    match lines.next() {
        Some((_, header)) if words(header).eq(words(HEADER)) => {}
        Some((line, header)) => {
            let header = shorten(header);
            return wrong(line, format!("the header is `{header}`; it must be `{HEADER}`"));
        }
        None => {
            return wrong(1, format!("the header is missing; the first line must be `{HEADER}`"));
        }
    }
    let mut traffic = Traffic::default();
    for (line, row) in lines {
        let fields: Vec<&str> = words(row).collect();
        let [start, from, to, bytes] = fields.as_slice() else {
            let found = fields.len();
            return wrong(line, format!("{found} columns; there must be four: {HEADER}"));
        };
        let start = format!("{start}us").parse::<Span>().or_else(|_| {
            let start = shorten(start);
            let right = "write microseconds as a decimal number with at most 6 digits behind the \
                         point, like 12.5";
            wrong(line, format!("`{start}` is not a start time; {right}"))
        })?;
        let from = number(line, from, "a host")?;
        let to = number(line, to, "a host")?;
        let bytes = number(line, bytes, "a size in bytes")?;
        traffic.push(Message { line, start, from, to, bytes })?;
    }
    if traffic.messages.is_empty() {
        return wrong(1, "the file has no messages; add a line like `0,0,1,1000`");
    }
    Ok(traffic)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim)
}

/// Writes messages so that they read back.
#[must_use]
pub fn render<'a>(messages: impl Iterator<Item = &'a Message>) -> String {
    let mut text = format!("{HEADER}\n");
    for message in messages {
        let (start, from, to) = (message.start.as_ps(), message.from, message.to);
        let (us, ps) = (start / 1_000_000, start % 1_000_000);
        // Writing to a String cannot fail.
        let _ = if ps == 0 {
            writeln!(text, "{us},{from},{to},{}", message.bytes)
        } else {
            writeln!(text, "{us}.{ps:06},{from},{to},{}", message.bytes)
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{parse_traffic, render};
    use apus_units::Span;

    #[test]
    fn rows_are_read_and_read_back() {
        let text = "# a trace\nstart_us,from,to,bytes\n0,0,1,1000\n12.000001, 3, 0, 7\n";
        let traffic = parse_traffic(text).expect("read");
        let second = traffic.messages[1];
        assert_eq!((second.line, second.start), (4, Span::from_ps(12_000_001)));
        assert_eq!((second.from, second.to, second.bytes), (3, 0, 7));
        let again = parse_traffic(&render(traffic.messages.iter())).expect("again");
        let strip = |t: &super::Traffic| {
            t.messages.iter().map(|m| (m.start, m.from, m.to, m.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(strip(&again), strip(&traffic));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let head = "start_us,from,to,bytes\n";
        for (text, message) in [
            (String::new(), "1: the header is missing"),
            ("time,from,to,bytes\n".to_owned(), "1: the header is `time,from,to,bytes`"),
            (head.to_owned(), "1: the file has no messages"),
            (format!("{head}0,0,1"), "2: 3 columns; there must be four"),
            (format!("{head}0,0,1,5\n1e3,0,1,5"), "3: `1e3` is not a start time"),
            (format!("{head}-1,0,1,5"), "2: `-1` is not a start time"),
            (format!("{head}0,a,1,5"), "2: `a` is not a host"),
            (format!("{head}0,1,1,5"), "2: node 1 sends to itself"),
            (format!("{head}0,0,1,0"), "2: the size is 0"),
        ] {
            let error = parse_traffic(&text).expect_err(&text).to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
