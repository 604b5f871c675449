//! A datagram in the switch, with access to its congestion fields as values and as bytes.

use apus_cc::{CongestionHeader, Ecn, FieldLayout, Fields, Signal, Telemetry};
use apus_transport::{fields_of, written};
use apus_wire::{Hop, MAX_SIGNAL_QUEUE, SIGNAL_BYTES, SwitchView, decode_extended, link_rate_code};

/// Mask of the ECN codepoint in the traffic class of an IP packet. The value is also the codepoint CE (RFC 3168 §5).
const ECN: u8 = 3;

/// A datagram that the switch forwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Datagram {
    /// UDP payload.
    pub(super) bytes: Vec<u8>,
    /// Client that the datagram comes from or goes to.
    pub(super) client: u32,
    /// DSCP and ECN.
    pub(super) tos: u8,
    /// TTL with which the datagram leaves.
    pub(super) ttl: u8,
    /// Bytes that the datagram occupies on a link.
    pub(super) wire_bytes: u32,
}

impl Datagram {
    /// Returns the congestion fields if they have the layout of the switch's algorithm. Other fields are unknown.
    pub(super) fn header(&self, layout: Option<FieldLayout>) -> CongestionHeader {
        let ecn = match self.tos & ECN {
            0 => Ecn::NotCapable,
            ECN => Ecn::Congested,
            _ => Ecn::Capable,
        };
        let decoded = decode_extended(&self.bytes);
        let fields = decoded.map_or(Fields::NONE, |it| fields_of(&it.extension, layout).0);
        CongestionHeader { ecn, fields }
    }

    /// Returns the telemetry. It is empty if the datagram has no room for telemetry, or if a part of it cannot be
    /// decoded.
    pub(super) fn telemetry(&self) -> Telemetry {
        let decoded = decode_extended(&self.bytes);
        decoded.ok().and_then(|it| fields_of(&it.extension, None).1).unwrap_or_default()
    }

    /// Writes the ECN codepoint, and those bytes of the fields that a switch may write. Returns `true` if one of these
    /// bytes has changed.
    pub(super) fn write(&mut self, header: &CongestionHeader, layout: Option<FieldLayout>) -> bool {
        if header.ecn == Ecn::Congested {
            self.tos |= ECN;
        }
        let Some(layout) = layout else { return false };
        let Some(fields) = header.fields.as_data(layout.id) else { return false };
        let Some(mut view) = SwitchView::new(&mut self.bytes) else { return false };
        let writable = view.writable();
        let length = writable.len().min(layout.writable.into());
        let changed = writable[..length] != fields[..length];
        writable[..length].copy_from_slice(&fields[..length]);
        changed
    }

    /// Appends the hop that `after` contains and `before` does not. If there is no room for the hop, the hop is only
    /// counted.
    pub(super) fn write_hop(&mut self, before: &Telemetry, after: &Telemetry) {
        if let Some(mut view) = SwitchView::new(&mut self.bytes) {
            let hop = after.hops().get(before.hops().len()).map_or(Hop::default(), written);
            view.note_hop(&hop, before.path() ^ after.path());
        }
    }

    /// Returns the datagram that carries a signal to the source of this one. Returns `None` if this datagram has no
    /// congestion fields: only a data packet of Apus, which has some, can cause a signal.
    pub(super) fn signal(&mut self, signal: &Signal) -> Option<[u8; SIGNAL_BYTES]> {
        let queue = u32::try_from(signal.queue.get()).unwrap_or(u32::MAX).min(MAX_SIGNAL_QUEUE);
        let view = SwitchView::new(&mut self.bytes)?;
        view.signal(queue, link_rate_code(signal.link_rate), signal.sent)
    }
}
