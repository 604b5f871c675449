//! The algorithm's fields of a packet as its congestion extension, and back.
//!
//! The simulator hands fields and telemetry over as they are; between processes they travel as bytes.
//! Both homes meet here, so that an algorithm sees the same in either: times in whole nanoseconds
//! modulo 2^32, bytes sent modulo 2^40.

use apus_cc::bolt::{BoltEcho, BoltFields, link_rate_code, rate_of_code};
use apus_cc::rcp::{RcpEcho, RcpFields};
use apus_cc::{AlgorithmFields, HopTelemetry, Telemetry};
use apus_units::{Bytes, Span, Time};
use apus_wire::{Bolt, Extension, HOP_BYTES, Hop, Hops, MAX_HOPS};

/// Where the telemetry of one acknowledgement is written before it is encoded.
pub type HopBuffer = [u8; MAX_HOPS * HOP_BYTES];

/// The extension that carries these fields. `telemetry` is what an acknowledgement brings back
/// ([`Endpoint::telemetry`](crate::Endpoint::telemetry)); it is written to `buffer`.
#[must_use]
pub fn extension_of<'b>(
    fields: AlgorithmFields,
    telemetry: Option<&Telemetry>,
    buffer: &'b mut HopBuffer,
) -> Extension<'b> {
    match fields {
        AlgorithmFields::None => Extension::None,
        AlgorithmFields::Bolt(fields) => Extension::Bolt(Bolt {
            first: fields.has(BoltFields::FIRST),
            last: fields.has(BoltFields::LAST),
            favoured: fields.has(BoltFields::FAVOURED),
            inc: fields.has(BoltFields::INC),
            dec: fields.has(BoltFields::DEC),
            sent: fields.sent(),
        }),
        AlgorithmFields::BoltEcho(echo) => Extension::BoltEcho { granted: echo.granted() },
        AlgorithmFields::Telemetry => Extension::Telemetry(Hops::room(MAX_HOPS)),
        AlgorithmFields::TelemetryEcho => {
            let hops = telemetry.map_or(&[][..], Telemetry::hops);
            let (places, _) = buffer.as_chunks_mut::<HOP_BYTES>();
            for (place, hop) in places.iter_mut().zip(hops) {
                *place = written(hop).to_bytes();
            }
            let used = hops.len().min(MAX_HOPS) * HOP_BYTES;
            let path = telemetry.map_or(0, Telemetry::path);
            Extension::TelemetryEcho(Hops::noted(path, &buffer[..used]))
        }
        AlgorithmFields::Rcp(fields) => {
            let (rate, rtt) = fields.steps();
            Extension::Rcp { rate, rtt }
        }
        AlgorithmFields::RcpEcho(echo) => Extension::RcpEcho { rate: echo.steps() },
    }
}

/// What arrived with a packet: the fields, and the telemetry if they say that there is some and every
/// hop of it is legible (a rate that has no name is not).
#[must_use]
pub fn fields_of(extension: &Extension<'_>) -> (AlgorithmFields, Option<Telemetry>) {
    let fields = match *extension {
        Extension::None => AlgorithmFields::None,
        Extension::Bolt(bolt) => {
            let flags = [
                (bolt.first, BoltFields::FIRST),
                (bolt.last, BoltFields::LAST),
                (bolt.favoured, BoltFields::FAVOURED),
                (bolt.inc, BoltFields::INC),
                (bolt.dec, BoltFields::DEC),
            ];
            let set = flags.iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag);
            AlgorithmFields::Bolt(BoltFields::new(set, bolt.sent))
        }
        Extension::BoltEcho { granted } => AlgorithmFields::BoltEcho(BoltEcho::new(granted)),
        Extension::Telemetry(_) => AlgorithmFields::Telemetry,
        Extension::TelemetryEcho(_) => AlgorithmFields::TelemetryEcho,
        Extension::Rcp { rate, rtt } => AlgorithmFields::Rcp(RcpFields::from_steps(rate, rtt)),
        Extension::RcpEcho { rate } => AlgorithmFields::RcpEcho(RcpEcho::from_steps(rate)),
    };
    let telemetry = match extension {
        Extension::Telemetry(hops) | Extension::TelemetryEcho(hops) => read(hops),
        _ => None,
    };
    (fields, telemetry)
}

/// A hop as a switch writes it.
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
    // The path as a whole stands for its ports, and goes in with the first of them.
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
