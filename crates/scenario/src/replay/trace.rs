//! The records of a log, one line at a time.

use std::error::Error;
use std::fmt;
use std::io::{BufRead, Read};

use apus_cc::StateOverride;
use apus_units::{Span, Time, suggestion};

use super::cells::{self, Cell};
use super::event::Event;

/// A line of a log, see [`super`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Time of the event.
    pub time: Time,
    /// Type of the event.
    pub event: Event,
    /// End-to-end RTT; always present in an acknowledgement.
    pub rtt: Option<Span>,
    /// Part of the RTT in the fabric.
    pub fabric_delay: Span,
    /// Part of the RTT in the hosts.
    pub endpoint_delay: Span,
    /// Switches on the forward path; always present in an acknowledgement.
    pub hops: Option<u8>,
    /// Packets acknowledged for the first time.
    pub acked: u32,
    /// Number of acknowledged packets that were marked.
    pub marked: u32,
    /// Fill of the receiver's buffer in 32nds.
    pub receiver_level: u8,
    /// State that is overwritten before the event.
    pub set: StateOverride,
}

/// An error in a log: the place, the mistake, and a valid form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError(String);

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for TraceError {}

/// Columns that every log has.
const REQUIRED: [&str; 7] =
    ["time_ps", "event", "rtt_ps", "fabric_delay_ps", "endpoint_delay_ps", "hops", "acked"];
/// Columns that a log may have.
const OPTIONAL: [&str; 7] = [
    "marked",
    "receiver_level",
    "set_fabric_cwnd",
    "set_endpoint_cwnd",
    "set_last_decrease_ps",
    "set_smoothed_rtt_ps",
    "set_timeouts",
];
/// Maximum length of a line: bounds the memory for a file without line breaks.
const MAX_LINE: u64 = 64 * 1024;

/// A log, read line by line.
pub struct Trace<R> {
    name: String,
    input: R,
    line: Vec<u8>,
    number: u64,
    /// Names of the columns in the order of the file.
    columns: Vec<&'static str>,
}

impl<R: BufRead> Trace<R> {
    /// Reads the header line; `name` is for messages.
    ///
    /// # Errors
    /// An unknown, missing or repeated column, or an input that cannot be read.
    pub fn new(name: &str, input: R) -> Result<Self, TraceError> {
        let (name, line, columns) = (name.to_owned(), Vec::new(), Vec::new());
        let mut trace = Self { name, input, line, number: 0, columns };
        if !trace.read_line()? {
            let header = REQUIRED.join(",");
            let message = format!("is empty; its first line must be `{header}`");
            return Err(trace.error(message));
        }
        let header = std::mem::take(&mut trace.line);
        let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&header);
        let all = || REQUIRED.into_iter().chain(OPTIONAL);
        for (index, cell) in cells::split(header).enumerate() {
            let place = Some((index, None));
            let Ok(text) = std::str::from_utf8(cell) else {
                return Err(trace.error_in(place, "is not text (UTF-8)"));
            };
            let Some(column) = all().find(|name| *name == text) else {
                let hint = suggestion(text, all());
                let message = format!("unknown column `{}`{hint}", cells::shorten(text));
                return Err(trace.error_in(place, message));
            };
            if trace.columns.contains(&column) {
                let message = format!("`{column}` occurs twice; remove one");
                return Err(trace.error_in(place, message));
            }
            trace.columns.push(column);
        }
        if let Some(missing) = REQUIRED.iter().find(|name| !trace.columns.contains(name)) {
            let message = format!(
                "the column `{missing}` is missing; the header line must name {}, in any order",
                REQUIRED.join(", ")
            );
            return Err(trace.error(message));
        }
        Ok(trace)
    }

    /// Returns the next record; `None` at the end. Empty lines are skipped.
    ///
    /// # Errors
    /// An error in the line, or an input that cannot be read.
    pub fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            if !self.read_line()? {
                return Ok(None);
            }
            if !self.line.trim_ascii().is_empty() {
                return self.parse().map(Some);
            }
        }
    }

    /// Returns an error in a column of the latest record.
    pub(super) fn error_at(&self, column: &'static str, message: impl fmt::Display) -> TraceError {
        let index = self.columns.iter().position(|name| *name == column);
        self.error_in(index.map(|index| (index, Some(column))), message)
    }

    fn error(&self, message: impl fmt::Display) -> TraceError {
        self.error_in(None, message)
    }

    /// Returns an error in a column. `column` counts from 0; messages count from 1.
    fn error_in(
        &self,
        column: Option<(usize, Option<&str>)>,
        message: impl fmt::Display,
    ) -> TraceError {
        let (name, line) = (&self.name, self.number.max(1));
        TraceError(match column {
            Some((index, Some(column))) => {
                format!("{name}:{line}: column {} (`{column}`): {message}", index + 1)
            }
            Some((index, None)) => format!("{name}:{line}: column {}: {message}", index + 1),
            None => format!("{name}:{line}: {message}"),
        })
    }

    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        let read = (&mut self.input).take(MAX_LINE + 1).read_until(b'\n', &mut self.line);
        self.number += 1;
        match read {
            Err(error) => Err(self.error(format!("cannot be read: {error}"))),
            Ok(length) if length as u64 > MAX_LINE => Err(self.error(format!(
                "the line is longer than {MAX_LINE} bytes; a record is one line of {} cells",
                self.columns.len().max(REQUIRED.len())
            ))),
            Ok(length) => Ok(length > 0),
        }
    }

    fn parse(&self) -> Result<Record, TraceError> {
        let count = cells::split(&self.line).count();
        if count != self.columns.len() {
            return Err(self.error(format!(
                "{count} cells, but the header line has {} columns",
                self.columns.len()
            )));
        }
        let mut event = None;
        let mut record = Record {
            time: Time::ZERO,
            event: Event::Ack,
            rtt: None,
            fabric_delay: Span::ZERO,
            endpoint_delay: Span::ZERO,
            hops: None,
            acked: 0,
            marked: 0,
            receiver_level: 0,
            set: StateOverride::default(),
        };
        // Columns with content, as bits by index.
        let mut filled = 0u32;
        for (index, (cell, &column)) in cells::split(&self.line).zip(&self.columns).enumerate() {
            if cell.is_empty() {
                continue;
            }
            filled |= 1 << index;
            let cell = Cell(cell);
            let set = &mut record.set;
            let done = match column {
                "time_ps" => cell.time().map(|time| record.time = time),
                "event" => cell.event().map(|word| event = Some(word)),
                "rtt_ps" => cell.span().map(|span| record.rtt = Some(span)),
                "fabric_delay_ps" => cell.span().map(|span| record.fabric_delay = span),
                "endpoint_delay_ps" => cell.span().map(|span| record.endpoint_delay = span),
                "hops" => cell.whole(u8::MAX.into()).map(|n| record.hops = Some(n as u8)),
                "acked" => cell.whole(u32::MAX.into()).map(|n| record.acked = n as u32),
                "marked" => cell.whole(u32::MAX.into()).map(|n| record.marked = n as u32),
                "receiver_level" => cell.whole(31).map(|n| record.receiver_level = n as u8),
                "set_fabric_cwnd" => cell.number().map(|x| set.fabric_cwnd = Some(x)),
                "set_endpoint_cwnd" => cell.number().map(|x| set.endpoint_cwnd = Some(x)),
                "set_last_decrease_ps" => cell.time().map(|time| set.last_decrease = Some(time)),
                "set_smoothed_rtt_ps" => cell.number().map(|x| set.smoothed_rtt_ps = Some(x)),
                _ => cell.whole(u32::MAX.into()).map(|n| set.timeouts = Some(n as u32)),
            };
            done.map_err(|why| self.error_in(Some((index, Some(column))), why))?;
        }
        let empty =
            |name| self.columns.iter().position(|c| *c == name).filter(|i| filled >> i & 1 == 0);
        let needed: &[&str] = match event {
            Some(Event::Ack) => &REQUIRED,
            _ => &REQUIRED[..2],
        };
        for name in needed {
            if empty(*name).is_some() {
                let of = event.map_or("every event", |_| "an `ack`");
                return Err(self.error_at(name, format!("is empty, but {of} needs it")));
            }
        }
        if record.marked > record.acked {
            let message =
                format!("{} packets marked of {} acknowledged", record.marked, record.acked);
            return Err(self.error_at("marked", message));
        }
        record.event = event.unwrap_or(Event::Ack);
        Ok(record)
    }
}
