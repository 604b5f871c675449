//! `[packets]`: sizes on the wire, from the scenario or from the profiles of its algorithms.

use apus_algorithms::Registry;
use apus_sim::PacketSizes;
use apus_units::Bytes;

use super::declared::{Keys, Kind, key};
use super::section::Section;
use super::tree::{Table, Value};

/// Keys of `packets`.
pub(super) static PACKETS: Keys = Keys::of(&[
    key(
        "payload",
        Kind::Size,
        "Payload of a full data packet. Default: 4096B, unless the profile of the algorithm defines its own",
    )
    .within(1, MAX_PACKET),
    key(
        "header",
        Kind::Size,
        "Bytes that a data packet has in addition to its payload. Default: 64B, unless the profile of the algorithm defines its own",
    )
    .at_most(MAX_PACKET),
    key(
        "control",
        Kind::Size,
        "Size of a control packet, such as an acknowledgement or a read request. Default: 84B, unless the profile of the algorithm defines its own",
    )
    .within(1, MAX_PACKET),
]);

/// The largest IP packet, which no fabric exceeds.
const MAX_PACKET: u64 = 65_535;

/// Reads `[packets]` of the scenario with this root. Sizes that it does not set are those of the
/// algorithms' profiles, on which all algorithms of a run must agree.
pub(super) fn read_packets(root: &Section<'_>, registry: Registry) -> Option<PacketSizes> {
    let section = root.section_or_empty("packets")?;
    let keys = ["payload", "header", "control"];
    let all_set = keys.iter().all(|key| section.node(key).is_some());
    let own = own_sizes(root, registry);
    let first = own.first().map_or_else(PacketSizes::default, |(_, sizes)| *sizes);
    if let Some((name, other)) = own.iter().find(|(_, sizes)| *sizes != first && !all_set) {
        let message = format_args!(
            "has algorithms with different packets: `{}` has {}, `{name}` has {}; set `payload`, \
             `header` and `control` in `packets`",
            own[0].0,
            describe(first),
            describe(*other)
        );
        root.problem("algorithm", message);
    }
    // At most `MAX_PACKET`.
    let size = |key, own: u32| section.get_or(key, Bytes::new(own.into())).get() as u32;
    let sizes = PacketSizes {
        payload: size("payload", first.payload),
        header: size("header", first.header),
        control: size("control", first.control),
    };
    section.finish();
    Some(sizes)
}

fn describe(sizes: PacketSizes) -> String {
    let PacketSizes { payload, header, control } = sizes;
    format!("payload {payload}B, header {header}B and control {control}B")
}

/// Returns the algorithms of a scenario with the sizes of their profiles, or otherwise the default sizes.
/// Errors in the tables of the algorithms are reported when the algorithms are read.
fn own_sizes(root: &Section<'_>, registry: Registry) -> Vec<(String, PacketSizes)> {
    let Some(Value::Table(table)) = root.node("algorithm").map(|node| &node.value) else {
        return Vec::new();
    };
    let text = |table: &Table, key: &str| match table.get(key).map(|node| &node.value) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let of = |label: Option<&str>, table: &Table| {
        let name = text(table, "name").or(label.map(str::to_owned))?;
        let own = registry.packets(&name, text(table, "profile").as_deref());
        let sizes = own.map_or_else(PacketSizes::default, |own| PacketSizes {
            payload: own.payload,
            header: own.header,
            control: own.control,
        });
        Some((name, sizes))
    };
    if text(table, "name").is_some() {
        return of(None, table).into_iter().collect();
    }
    let labelled = table.entries.iter().filter_map(|(label, entry)| match &entry.node.value {
        Value::Table(inner) => of(Some(label), inner),
        _ => None,
    });
    labelled.collect()
}
