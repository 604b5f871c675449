//! Timelines in Perfetto's trace format, for <https://ui.perfetto.dev>.
//!
//! A trace is a sequence of `TracePacket`s (protos/perfetto/trace/trace.proto of Perfetto). Tracks are
//! described first; events then refer to them. The messages below contain only the fields that are written,
//! with the numbers of that schema.

use std::io::{self, Write};

use apus_units::{Span, Time};
use prost::Message;

/// `TracePacket`.
#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

/// `TrackDescriptor`.
#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
}

/// `CounterDescriptor`.
#[derive(Clone, PartialEq, Message)]
struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    unit_name: Option<String>,
}

/// `TrackEvent`.
#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(double, optional, tag = "44")]
    double_counter_value: Option<f64>,
}

/// `DebugAnnotation`.
#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    uint_value: Option<u64>,
    #[prost(double, optional, tag = "5")]
    double_value: Option<f64>,
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

/// `TrackEvent.Type`.
const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;

/// Key of `Trace.packet`: field 1, with a length.
const PACKET_KEY: u8 = 0x0a;
/// All packets belong to one sequence, because they have one writer.
const SEQUENCE: u32 = 1;

/// A track of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

/// A value that is shown with an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detail<'a> {
    /// Whole number.
    Count(u64),
    /// Number.
    Number(f64),
    /// Text.
    Text(&'a str),
}

/// Writer of a timeline. Times have a resolution of one nanosecond. Dropping it does not flush: call
/// [`Timeline::finish`].
#[derive(Debug)]
pub struct Timeline<W> {
    out: W,
    tracks: u64,
    buffer: Vec<u8>,
}

impl<W: Write> Timeline<W> {
    /// Returns an empty timeline.
    pub fn new(out: W) -> Self {
        Self { out, tracks: 0, buffer: Vec::new() }
    }

    /// Adds a track of slices and instants, within `parent` if there is one. Slices of a track may be nested,
    /// but must not overlap otherwise. Tracks with the same name and parent are displayed as one.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn track(&mut self, name: &str, parent: Option<Track>) -> io::Result<Track> {
        self.describe(name, parent, None)
    }

    /// Adds a track of values over time, in `unit`.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn counter(&mut self, name: &str, unit: &str, parent: Option<Track>) -> io::Result<Track> {
        self.describe(name, parent, Some(CounterDescriptor { unit_name: Some(unit.to_owned()) }))
    }

    fn describe(
        &mut self,
        name: &str,
        parent: Option<Track>,
        counter: Option<CounterDescriptor>,
    ) -> io::Result<Track> {
        self.tracks += 1;
        let descriptor = TrackDescriptor {
            uuid: Some(self.tracks),
            name: Some(name.to_owned()),
            parent_uuid: parent.map(|parent| parent.0),
            counter,
        };
        self.put(&TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        Ok(Track(self.tracks))
    }

    /// Adds a slice from `begin` to `end`.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn slice(
        &mut self,
        track: Track,
        (begin, end): (Time, Time),
        name: &str,
        details: &[(&str, Detail<'_>)],
    ) -> io::Result<()> {
        self.event(track, begin, SLICE_BEGIN, Some(name), details)?;
        self.event(track, end, SLICE_END, None, &[])
    }

    /// Adds an event without duration.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn instant(
        &mut self,
        track: Track,
        at: Time,
        name: &str,
        details: &[(&str, Detail<'_>)],
    ) -> io::Result<()> {
        self.event(track, at, INSTANT, Some(name), details)
    }

    /// Sets the value of a counter from `at` onwards.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn value(&mut self, counter: Track, at: Time, value: f64) -> io::Result<()> {
        let event = TrackEvent {
            kind: Some(COUNTER),
            track_uuid: Some(counter.0),
            double_counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.put_event(at, event)
    }

    fn event(
        &mut self,
        track: Track,
        at: Time,
        kind: i32,
        name: Option<&str>,
        details: &[(&str, Detail<'_>)],
    ) -> io::Result<()> {
        let annotation = |(name, detail): &(&str, Detail<'_>)| {
            let mut annotation =
                DebugAnnotation { name: Some((*name).to_owned()), ..DebugAnnotation::default() };
            match *detail {
                Detail::Count(count) => annotation.uint_value = Some(count),
                Detail::Number(number) => annotation.double_value = Some(number),
                Detail::Text(text) => annotation.string_value = Some(text.to_owned()),
            }
            annotation
        };
        let event = TrackEvent {
            debug_annotations: details.iter().map(annotation).collect(),
            kind: Some(kind),
            track_uuid: Some(track.0),
            name: name.map(str::to_owned),
            double_counter_value: None,
        };
        self.put_event(at, event)
    }

    fn put_event(&mut self, at: Time, event: TrackEvent) -> io::Result<()> {
        let packet = TracePacket {
            timestamp: Some(at.as_ps() / Span::from_ns(1).as_ps()),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(event),
            track_descriptor: None,
        };
        self.put(&packet)
    }

    fn put(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.buffer.clear();
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        self.out.write_all(&[PACKET_KEY])?;
        self.out.write_all(&self.buffer)
    }

    /// Flushes the file and returns the writer.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use apus_units::{Span, Time};

    use super::{Detail, Timeline};

    /// The bytes were computed by hand from the encoding rules of protocol buffers and the field numbers of
    /// Perfetto's trace_packet.proto, track_descriptor.proto and track_event.proto.
    #[test]
    fn messages_have_the_fields_of_perfettos_schema() {
        let mut timeline = Timeline::new(Vec::new());
        let track = timeline.track("f", None).expect("memory");
        timeline
            .instant(track, Time::ZERO + Span::from_ns(300), "x", &[("n", Detail::Count(7))])
            .expect("memory");
        let file = timeline.finish().expect("memory");
        let descriptor = [0x0a, 8, 0xe2, 0x03, 5, 0x08, 1, 0x12, 1, b'f'];
        let expected = [
            0x0a, 22, 0x40, 0xac, 0x02, // timestamp 300
            0x50, 1, // sequence
            0x5a, 15, // track_event
            0x22, 5, 0x18, 7, 0x52, 1, b'n', // debug annotation: 7, "n"
            0x48, 3, // instant
            0x58, 1, // track
            0xba, 0x01, 1, b'x', // name
        ];
        assert_eq!(file[..10], descriptor);
        assert_eq!(file[10..], expected);
    }
}
