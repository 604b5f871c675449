//! Encoding and decoding of headers; the crate documentation shows the layout.

use apus_units::{FlowId, OpId, PacketNumber, Span};

use crate::bytes::{Reader, Writer};
use crate::control::{self, CreditEcho};
use crate::error::{DecodeError, EncodeError, Illegal};
use crate::extension::Extension;
use crate::header::{
    Ack, Attached, Body, Header, Nack, Order, RegionKey, Reject, RejectReason, Segment,
    SegmentKind, Signal, Trimmed,
};
use crate::layout::{COMMON_BYTES, Distance, header_bytes, kind, kind_of};
use crate::version::VERSION;

/// Bit of [`Ack::echo_marked`] in the byte of the receiver level; the level has 5 bits.
const ECHO_MARKED: u8 = 128;

/// Returns the offset of the authenticated part of a packet, in bytes: it follows the bytes that
/// switches may write, whose number is in the first byte. The offset of an invalid packet may
/// exceed its length.
#[inline]
#[must_use]
pub fn authenticated_from(packet: &[u8]) -> usize {
    1 + packet.first().map_or(0, |&writable| usize::from(writable))
}

/// Writes the header, without extension, to the start of `out` and returns its length.
///
/// # Errors
/// If the values of the header are illegal or `out` is too short; `out` is then unchanged.
#[inline]
pub fn encode(header: &Header, out: &mut [u8]) -> Result<usize, EncodeError> {
    encode_extended(header, &Extension::None, out)
}

/// Encodes a header with a congestion extension.
///
/// # Errors
/// See [`encode`]; also if the extension does not belong to the header's body.
#[inline]
pub fn encode_extended(
    header: &Header,
    extension: &Extension<'_>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    match &header.body {
        Body::Data(segment) => segment.check()?,
        Body::Ack(ack) => ack.check()?,
        Body::Signal(signal) => signal.check()?,
        Body::Trimmed(trimmed) => trimmed.check()?,
        Body::Reject(_) | Body::Nack(_) => {}
        Body::Control(control) => control.check()?,
    }
    extension.check(&header.body)?;
    let (needed, available) = (header.encoded_len() + extension.encoded_len(), out.len());
    let Some(out) = out.get_mut(..needed) else {
        return Err(EncodeError::BufferTooSmall { needed, available });
    };
    let mut writer = Writer(out);
    // At most 3 + MAX_HOPS * HOP_BYTES = 107.
    writer.put([extension.writable_len() as u8]);
    extension.write_writable(&mut writer);
    let extended = if extension.kind().is_some() { kind::EXTENDED } else { 0 };
    writer.put([VERSION, kind_of(header) | extended]);
    writer.put(header.flow.get().to_be_bytes());
    writer.put(header.seq.get().to_be_bytes());
    extension.write_authenticated(&mut writer);
    match &header.body {
        Body::Data(segment) => write_segment(&mut writer, header.seq, segment),
        Body::Ack(ack) => write_ack(&mut writer, ack),
        Body::Reject(reject) => write_reject(&mut writer, reject),
        Body::Signal(signal) => write_signal(&mut writer, signal),
        Body::Control(control) => control.write(&mut writer),
        Body::Trimmed(trimmed) => write_trimmed(&mut writer, trimmed),
        Body::Nack(nack) => write_nack(&mut writer, nack),
    }
    debug_assert!(writer.0.is_empty(), "encoded_len equals the bytes written");
    Ok(needed)
}

fn write_segment(writer: &mut Writer<'_>, seq: PacketNumber, segment: &Segment) {
    if let Some(distance) = Distance::of(seq, segment) {
        writer.put(distance.to_bytes());
    } else {
        writer.put(segment.op.get().to_be_bytes());
        writer.put(segment.offset.to_be_bytes());
        writer.put(segment.op_length.to_be_bytes());
    }
    // `Segment::check` has limited the length to MAX_PAYLOAD.
    writer.put((segment.length as u16).to_be_bytes());
    match segment.kind {
        SegmentKind::Write { region, address }
        | SegmentKind::ReadRequest { region, address }
        | SegmentKind::CompareAndSwap { region, address }
        | SegmentKind::FetchAdd { region, address } => {
            writer.put(region.get().to_be_bytes());
            writer.put(address.to_be_bytes());
        }
        SegmentKind::Message | SegmentKind::ReadResponse | SegmentKind::Cancel => {}
    }
    match segment.attached {
        None => {}
        Some(Attached::Credit(echo)) => {
            writer.put(echo.number.to_be_bytes());
            writer.put(echo.sent_at_ns.to_be_bytes());
        }
        Some(Attached::Order(order)) => {
            writer.put(order.awaited_behind.to_be_bytes());
            writer.put([u8::from(order.ack_now)]);
        }
    }
}

fn write_ack(writer: &mut Writer<'_>, ack: &Ack) {
    writer.put(ack.largest.get().to_be_bytes());
    writer.put(ack.bitmap.to_be_bytes());
    writer.put(ack.echo.get().to_be_bytes());
    writer.put(nanoseconds(ack.remote_queuing).to_be_bytes());
    writer.put([ack.hops]);
    writer.put(ack.marked.to_be_bytes());
    writer.put([ack.receiver_level | if ack.echo_marked { ECHO_MARKED } else { 0 }]);
    if let Some(missing) = ack.missing {
        writer.put(missing.to_be_bytes());
    }
}

/// Writes Bolt Listing 1: 24 bits of queue, 8 of link rate, 32 of transmission time.
fn write_signal(writer: &mut Writer<'_>, signal: &Signal) {
    // `Signal::check` has limited the queue to 24 bits.
    writer.put((signal.queue << 8 | u32::from(signal.link_rate)).to_be_bytes());
    writer.put(signal.sent.to_be_bytes());
}

fn write_reject(writer: &mut Writer<'_>, reject: &Reject) {
    writer.put(reject.op.get().to_be_bytes());
    writer.put([reject.reason as u8]);
}

fn write_trimmed(writer: &mut Writer<'_>, trimmed: &Trimmed) {
    writer.put(trimmed.op.get().to_be_bytes());
    writer.put(trimmed.offset.to_be_bytes());
    // `Trimmed::check` has limited the length to MAX_PAYLOAD.
    writer.put((trimmed.length as u16).to_be_bytes());
    writer.put([flags(trimmed.last_hop, trimmed.is_answer)]);
}

fn write_nack(writer: &mut Writer<'_>, nack: &Nack) {
    writer.put(nack.packet.get().to_be_bytes());
    writer.put([flags(nack.last_hop, nack.marked)]);
}

fn flags(first: bool, second: bool) -> u8 {
    u8::from(first) | u8::from(second) << 1
}

fn read_flags(reader: &mut Reader<'_>) -> Result<(bool, bool), Illegal> {
    let [flags] = reader.take();
    if flags > 3 {
        return Err(Illegal::TrimFlags);
    }
    Ok((flags & 1 != 0, flags & 2 != 0))
}

/// Returns a span in the 4 bytes of remote queuing (Swift App. B). Rounded to the nearest
/// nanosecond, so that no bias is added to the delay, and saturating.
fn nanoseconds(span: Span) -> u32 {
    let ns = span.saturating_add(Span::from_ps(500)).as_ps() / 1_000;
    u32::try_from(ns).unwrap_or(u32::MAX)
}

/// The result of [`decode_extended`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The header.
    pub header: Header,
    /// Its congestion extension.
    pub extension: Extension<'a>,
    /// Number of bytes of both; the payload follows.
    pub length: usize,
}

/// Decodes the header at the start of `bytes` and returns it with its length, an extension included. Bytes
/// after the header are ignored, and nothing is authenticated: see [`open`](crate::open).
///
/// # Errors
/// If the bytes are too few, have an unknown version or kind, or contain illegal values.
#[inline]
pub fn decode(bytes: &[u8]) -> Result<(Header, usize), DecodeError> {
    decode_extended(bytes).map(|decoded| (decoded.header, decoded.length))
}

/// Decodes a header with the congestion extension.
///
/// # Errors
/// See [`decode`].
#[inline]
pub fn decode_extended(bytes: &[u8]) -> Result<Decoded<'_>, DecodeError> {
    let available = bytes.len();
    let truncated = |needed| DecodeError::Truncated { needed, available };
    let start = authenticated_from(bytes);
    let short = truncated(COMMON_BYTES + start - 1);
    let &version = bytes.get(start).ok_or(short)?;
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    let &kind_byte = bytes.get(start + 1).ok_or(short)?;
    let extended = kind_byte & kind::EXTENDED != 0;
    let kind = kind_byte & !kind::EXTENDED;
    let unknown = DecodeError::Kind(kind_byte);
    let least = header_bytes(kind).ok_or(unknown)?;
    let plain = kind & !(kind::ATTACHED | kind::WHOLE);
    let may_extend =
        matches!(plain, kind::WRITE..=kind::CANCEL | kind::COMPARE_AND_SWAP | kind::FETCH_ADD);
    if extended && !may_extend {
        return Err(unknown);
    }
    let writable = bytes.get(1..start).ok_or(short)?;
    let (extension, authenticated) = if extended {
        let behind = start - 1 + COMMON_BYTES;
        let fields = bytes.get(behind..).ok_or(truncated(behind + 1))?;
        Extension::read(writable, fields).map_err(|error| match error {
            DecodeError::Truncated { needed, .. } => truncated(behind + needed),
            other => other,
        })?
    } else if writable.is_empty() {
        (Extension::None, 0)
    } else {
        return Err(Illegal::WritableLength.into());
    };
    let least = least + start - 1 + authenticated;
    let body = bytes.get(start - 1 + authenticated..least).ok_or(truncated(least))?;
    let length = least + control::padding(kind, body);
    let header = bytes.get(..length).ok_or(truncated(length))?;

    let mut reader = Reader(&header[start + 2..]);
    let flow = FlowId::new(u32::from_be_bytes(reader.take()));
    let seq = PacketNumber::new(reader.u64());
    reader.skip(authenticated);
    let body = match kind {
        kind::ACK | kind::SPREAD_ACK => Body::Ack(read_ack(&mut reader, kind)?),
        kind::REJECT => Body::Reject(read_reject(&mut reader)?),
        kind::SIGNAL => Body::Signal(read_signal(&mut reader)?),
        kind::TRIMMED => Body::Trimmed(read_trimmed(&mut reader)?),
        kind::NACK => Body::Nack(read_nack(&mut reader)?),
        kind if control::body_bytes(kind).is_some() => {
            Body::Control(control::read(&mut reader, kind)?)
        }
        _ => Body::Data(read_segment(&mut reader, kind, seq)?),
    };
    debug_assert!(reader.0.is_empty(), "header_bytes equals the bytes read");
    extension.check(&body)?;
    Ok(Decoded { header: Header { flow, seq, body }, extension, length })
}

/// Reads a segment. `kind` is one of the seven data kinds, possibly in the short form or with an
/// attachment; `seq` is the number of the packet.
fn read_segment(reader: &mut Reader<'_>, kind: u8, seq: PacketNumber) -> Result<Segment, Illegal> {
    let whole = kind & kind::WHOLE != 0;
    let (op, range) = if whole {
        (Distance::from_bytes(reader.take()).op(seq), None)
    } else {
        (OpId::new(reader.u64()), Some((reader.u64(), reader.u64())))
    };
    let length = u32::from(u16::from_be_bytes(reader.take()));
    let (offset, op_length) = range.unwrap_or((0, u64::from(length)));
    let mut target = || (RegionKey::new(reader.u64()), reader.u64());
    let attached = kind & kind::ATTACHED;
    let kind = match kind & !(kind::ATTACHED | kind::WHOLE) {
        kind::WRITE => {
            let (region, address) = target();
            SegmentKind::Write { region, address }
        }
        kind::READ_REQUEST => {
            let (region, address) = target();
            SegmentKind::ReadRequest { region, address }
        }
        kind::COMPARE_AND_SWAP => {
            let (region, address) = target();
            SegmentKind::CompareAndSwap { region, address }
        }
        kind::FETCH_ADD => {
            let (region, address) = target();
            SegmentKind::FetchAdd { region, address }
        }
        kind::MESSAGE => SegmentKind::Message,
        kind::CANCEL => SegmentKind::Cancel,
        _ => SegmentKind::ReadResponse,
    };
    let attached = match attached {
        0 => None,
        kind::CREDITED => {
            let (number, sent_at_ns) = (reader.u32(), reader.u32());
            Some(Attached::Credit(CreditEcho { number, sent_at_ns }))
        }
        _ => {
            let awaited_behind = u16::from_be_bytes(reader.take());
            let ack_now = match reader.take() {
                [0] => false,
                [1] => true,
                _ => return Err(Illegal::OrderFlags),
            };
            Some(Attached::Order(Order { awaited_behind, ack_now }))
        }
    };
    let segment = Segment { op, kind, offset, length, op_length, attached };
    segment.check()?;
    // Each header has only one valid form.
    if !whole && Distance::of(seq, &segment).is_some() {
        return Err(Illegal::LongForm);
    }
    Ok(segment)
}

fn read_ack(reader: &mut Reader<'_>, kind: u8) -> Result<Ack, Illegal> {
    let ack = Ack {
        largest: PacketNumber::new(reader.u64()),
        bitmap: u128::from_be_bytes(reader.take()),
        echo: PacketNumber::new(reader.u64()),
        remote_queuing: Span::from_ns(u64::from(u32::from_be_bytes(reader.take()))),
        hops: u8::from_be_bytes(reader.take()),
        marked: u32::from_be_bytes(reader.take()),
        receiver_level: 0,
        echo_marked: false,
        missing: None,
    };
    let [level] = reader.take();
    let missing = (kind == kind::SPREAD_ACK).then(|| u16::from_be_bytes(reader.take()));
    let (receiver_level, echo_marked) = (level & !ECHO_MARKED, level & ECHO_MARKED != 0);
    let ack = Ack { receiver_level, echo_marked, missing, ..ack };
    ack.check()?;
    Ok(ack)
}

fn read_signal(reader: &mut Reader<'_>) -> Result<Signal, Illegal> {
    let first = u32::from_be_bytes(reader.take());
    let signal = Signal {
        queue: first >> 8,
        link_rate: first as u8, // the lowest byte
        sent: u32::from_be_bytes(reader.take()),
    };
    signal.check()?;
    Ok(signal)
}

fn read_reject(reader: &mut Reader<'_>) -> Result<Reject, Illegal> {
    let op = OpId::new(reader.u64());
    let reason = match u8::from_be_bytes(reader.take()) {
        1 => RejectReason::NoRegion,
        2 => RejectReason::NotAllowed,
        3 => RejectReason::OutOfBounds,
        4 => RejectReason::TooLong,
        5 => RejectReason::Withdrawn,
        _ => return Err(Illegal::RejectReason),
    };
    Ok(Reject { op, reason })
}

fn read_trimmed(reader: &mut Reader<'_>) -> Result<Trimmed, Illegal> {
    let (op, offset) = (OpId::new(reader.u64()), reader.u64());
    let length = u32::from(u16::from_be_bytes(reader.take()));
    let (last_hop, is_answer) = read_flags(reader)?;
    let trimmed = Trimmed { op, is_answer, offset, length, last_hop };
    trimmed.check()?;
    Ok(trimmed)
}

fn read_nack(reader: &mut Reader<'_>) -> Result<Nack, Illegal> {
    let packet = PacketNumber::new(reader.u64());
    let (last_hop, marked) = read_flags(reader)?;
    Ok(Nack { packet, last_hop, marked })
}
