//! Links as a scenario describes them: rate, delay, and the memory of the ports.

use apus_units::{Bytes, Rate, Span};

use super::declared::{Amount, Key, Keys, Kind, key};
use super::section::{MAX_DELAY, Section, Setting};
use super::tree::Value;

/// Keys of links, in the topology and in the tables of its other links.
pub(super) const RATE: Key =
    key("rate", Kind::Rate, "Rate of the links").at_least(MIN_RATE.as_bps());

pub(super) const DELAY: Key =
    key("delay", Kind::Time, "One-way propagation delay of the links").at_most(MAX_DELAY.as_ps());

pub(super) const BUFFER: Key = key("buffer", Kind::SizeOrUnlimited, "Memory of each switch port");

/// Keys of links that differ from those of the hosts.
pub(super) static LINKS: Keys = Keys::of(&[RATE, DELAY, BUFFER]);

/// Minimum rate of a link: below it, a single packet would occupy the link for hours, and times might overflow.
const MIN_RATE: Rate = Rate::from_bps(1_000);

/// Links of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Links {
    pub(super) rate: Rate,
    pub(super) delay: Span,
    /// Memory of a port; [`Bytes::MAX`] is unlimited.
    pub(super) buffer: Bytes,
}

/// Reads links between switches: like those of the hosts except for the settings in their table.
pub(super) fn read_upper(
    section: &Section<'_>,
    key: &'static str,
    edge: Option<Links>,
    shared: bool,
    packet: u64,
) -> Option<Links> {
    let table = section.section_or_empty(key)?;
    // If the links of the hosts are invalid, that is reported already, and every key here would be missing.
    let links = read_links(&table, Some(edge?), shared, packet);
    table.finish();
    links
}

/// Reads a kind of link, completely or as differences from `default`.
pub(super) fn read_links(
    section: &Section<'_>,
    default: Option<Links>,
    shared: bool,
    packet: u64,
) -> Option<Links> {
    let rate = get_or_require(section, "rate", default.map(|links| links.rate));
    let delay = get_or_require(section, "delay", default.map(|links| links.delay));
    let buffer = if shared {
        section.no_effect("buffer", "where the ports share the memory of their switch");
        Some(Memory(Bytes::MAX))
    } else {
        get_or_require(section, "buffer", default.map(|links| Memory(links.buffer)))
    };
    if let Some(Memory(buffer)) = buffer {
        check_holds_packet(section, "buffer", buffer, packet);
    }
    Some(Links { rate: rate?, delay: delay?, buffer: buffer?.0 })
}

fn get_or_require<T: Setting>(
    section: &Section<'_>,
    key: &'static str,
    default: Option<T>,
) -> Option<T> {
    match default {
        Some(default) => Some(section.get_or(key, default)),
        None => section.require(key),
    }
}

/// Reports a memory that cannot hold the largest packet.
pub(super) fn check_holds_packet(section: &Section<'_>, key: &str, size: Bytes, packet: u64) {
    let holds = size.get() >= packet;
    section.check(holds, key, format_args!("of {size} does not hold one packet of {packet}B"));
}

/// A size, or [`Bytes::MAX`] for "unlimited".
pub(super) struct Memory(pub(super) Bytes);

impl Setting for Memory {
    const KIND: &'static str = "the memory of a switch port, like \"4MB\" or \"unlimited\"";

    fn read(value: &Value) -> Result<Self, Option<String>> {
        match value {
            Value::Text(text) if text == "unlimited" => Ok(Self(Bytes::MAX)),
            _ => Bytes::read(value).map(Self),
        }
    }

    fn value(&self) -> Value {
        if self.0 == Bytes::MAX { Value::Text("unlimited".to_owned()) } else { self.0.value() }
    }

    fn amount(&self) -> Amount {
        self.0.amount()
    }
}
