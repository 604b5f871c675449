//! Conversion between an algorithm's packet fields and the congestion extension of a packet.
//!
//! The simulator passes fields and telemetry as values; between processes they are sent as bytes.
//! Both use the same precision, so that an algorithm gets equal values: times in whole nanoseconds
//! modulo 2^32, bytes sent modulo 2^40.

use apus_cc::{FieldLayout, Fields, HopTelemetry, MAX_FIELD_BYTES, Telemetry};
use apus_units::{Bytes, Span, Time};
use apus_wire::{
    Extension, HOP_BYTES, Hop, Hops, MAX_HOPS, OwnFields, link_rate_code, rate_of_code,
};

/// Buffer for the bytes of an extension until it is encoded.
pub type ExtensionBuffer = [u8; MAX_HOPS * HOP_BYTES];

/// Returns the extension that carries these fields for an algorithm with this layout. `telemetry`
/// is the telemetry that an acknowledgement returns
/// ([`Endpoint::telemetry`](crate::Endpoint::telemetry)). The extension refers to `buffer`.
#[must_use]
pub fn extension_of<'b>(
    fields: Fields,
    layout: Option<FieldLayout>,
    telemetry: Option<&Telemetry>,
    buffer: &'b mut ExtensionBuffer,
) -> Extension<'b> {
    match fields {
        Fields::NONE => return Extension::None,
        Fields::TELEMETRY => return Extension::Telemetry(Hops::room(MAX_HOPS)),
        Fields::TELEMETRY_ECHO => {
            let hops = telemetry.map_or(&[][..], Telemetry::hops);
            let (places, _) = buffer.as_chunks_mut::<HOP_BYTES>();
            for (place, hop) in places.iter_mut().zip(hops) {
                *place = written(hop).to_bytes();
            }
            let used = hops.len().min(MAX_HOPS) * HOP_BYTES;
            let path = telemetry.map_or(0, Telemetry::path);
            return Extension::TelemetryEcho(Hops::noted(path, &buffer[..used]));
        }
        _ => {}
    }
    let Some(FieldLayout { id, writable, authenticated, echo }) = layout else {
        return Extension::None;
    };
    let (bytes, is_echo, writable, authenticated) = match (fields.as_data(id), fields.as_echo(id)) {
        (Some(bytes), _) => (bytes, false, writable, authenticated),
        (None, Some(bytes)) => (bytes, true, 0, echo),
        (None, None) => return Extension::None,
    };
    buffer[..MAX_FIELD_BYTES].copy_from_slice(bytes);
    let (writable, rest) = buffer.split_at(usize::from(writable));
    let authenticated = &rest[..usize::from(authenticated)];
    Extension::Own(OwnFields { id, is_echo, writable, authenticated })
}

/// Returns the fields that arrived with a packet, and the telemetry if every hop of it is valid (a
/// link rate with an unknown code is not). Fields that do not have the algorithm's layout are
/// ignored.
#[must_use]
pub fn fields_of(
    extension: &Extension<'_>,
    layout: Option<FieldLayout>,
) -> (Fields, Option<Telemetry>) {
    match extension {
        Extension::None => (Fields::NONE, None),
        Extension::Telemetry(hops) => (Fields::TELEMETRY, read(hops)),
        Extension::TelemetryEcho(hops) => (Fields::TELEMETRY_ECHO, read(hops)),
        Extension::Own(own) => (own_fields(own, layout).unwrap_or_default(), None),
    }
}

fn own_fields(own: &OwnFields<'_>, layout: Option<FieldLayout>) -> Option<Fields> {
    let layout = layout.filter(|layout| layout.id == own.id)?;
    let lengths =
        if own.is_echo { (0, layout.echo) } else { (layout.writable, layout.authenticated) };
    if (own.writable.len(), own.authenticated.len()) != (lengths.0.into(), lengths.1.into()) {
        return None;
    }
    let mut bytes = [0; MAX_FIELD_BYTES];
    for (place, byte) in bytes.iter_mut().zip(own.writable.iter().chain(own.authenticated)) {
        *place = *byte;
    }
    Some(if own.is_echo { Fields::echo(own.id, bytes) } else { Fields::data(own.id, bytes) })
}

/// Returns the encoding of a hop, as a switch writes it.
#[must_use]
pub fn written(hop: &HopTelemetry) -> Hop {
    Hop {
        link_rate: link_rate_code(hop.link_rate),
        // Modulo 2^32 by intent.
        at: (hop.at.as_ps() / Span::from_ns(1).as_ps()) as u32,
        sent: hop.sent.get(),
        queue: u32::try_from(hop.queue.get()).unwrap_or(u32::MAX),
    }
}

fn read(hops: &Hops<'_>) -> Option<Telemetry> {
    let mut telemetry = Telemetry::default();
    // The path value covers all ports, so it is added with the first hop only.
    let mut path = hops.path();
    for hop in hops.iter() {
        let hop = HopTelemetry {
            at: Time::ZERO + Span::from_ns(u64::from(hop.at)),
            sent: Bytes::new(hop.sent),
            queue: Bytes::new(u64::from(hop.queue)),
            link_rate: rate_of_code(hop.link_rate)?,
        };
        telemetry.push(hop, path);
        path = 0;
    }
    Some(telemetry)
}
