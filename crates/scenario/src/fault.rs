//! `[[fault]]`: links that fail, lose, corrupt or reorder packets on a schedule.
use crate::set::Topology;
use apus_units::{PortId, Span, Time};

use super::declared::{Keys, Kind, key};
use super::pattern::matches_pattern;
use super::section::{MAX_DELAY, Section, Setting};
use apus_sim::plan::{Fault, FaultKind};

/// Keys of `fault`.
pub(super) static FAULT: Keys = Keys::of(&[
    key(
        "link",
        Kind::Text,
        "The link, like \"leaf 0 -> spine 1\", or with `<->` both directions. `*` stands for any text in a name, and the fault is one of every link that matches; without it, of the first of parallel links",
    ),
    key("at", Kind::Time, "When the fault begins").or("0s"),
    key("until", Kind::Time, "When the fault ends, which may be in the drain; never if not given"),
    key(
        "kind",
        Kind::Word(&["down", "loss", "corrupt", "reorder"]),
        "\"down\": queued and arriving packets are dropped, and routes do not change; \"reorder\": packets are held back by `delay`, so that others overtake them",
    ),
    key("probability", Kind::Number, "Probability per packet").above_0_to(1.0),
    key("delay", Kind::Time, "Time by which packets are held back").within(1, MAX_DELAY.as_ps()),
]);

/// A fault as a scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct FaultSpec {
    /// "leaf 0 -> spine *", or with `<->` for both directions.
    pub(super) link: String,
    pub(super) at: Span,
    pub(super) until: Option<Span>,
    pub(super) kind: FaultKind,
    /// In ascending order.
    ports: Vec<PortId>,
}

impl FaultSpec {
    /// Returns the fault of each direction.
    pub(super) fn plan(&self) -> impl Iterator<Item = Fault> + '_ {
        self.ports.iter().map(|&port| Fault {
            port,
            at: Time::ZERO + self.at,
            until: self.until.map_or(Time::MAX, |until| Time::ZERO + until),
            kind: self.kind,
        })
    }
}

/// Reads the faults of a run of length `duration` with a drain of at most `drain`.
pub(super) fn read_faults(
    root: &Section<'_>,
    topology: Option<&Topology>,
    (duration, drain): (Span, Span),
) -> Option<Vec<FaultSpec>> {
    let tables = root.sections("fault");
    let mut faults: Vec<FaultSpec> = Vec::new();
    let mut complete = true;
    for table in tables {
        match read_fault(&table, topology?, (duration, drain)) {
            Some(fault) => {
                let overlaps = |other: &&FaultSpec| {
                    let end = |f: &FaultSpec| f.until.unwrap_or(Span::MAX);
                    let together = other.at < end(&fault) && fault.at < end(other);
                    let shared = |port| fault.ports.binary_search(port).is_ok();
                    together && other.ports.iter().any(shared)
                };
                if let Some(other) = faults.iter().find(overlaps) {
                    let message = format_args!(
                        "`{}` overlaps another fault of that link, from {} on; end one before the \
                         other begins",
                        fault.link, other.at
                    );
                    table.problem("link", message);
                }
                faults.push(fault);
            }
            None => complete = false,
        }
        table.finish();
    }
    complete.then_some(faults)
}

fn read_fault(
    table: &Section<'_>,
    topology: &Topology,
    (duration, drain): (Span, Span),
) -> Option<FaultSpec> {
    let link: Option<String> = table.require("link");
    let found = link.as_ref().and_then(|link| match find_ports(topology, link) {
        Ok(found) => Some(found),
        Err(why) => {
            table.problem("link", why);
            None
        }
    });
    let at: Span = table.get_or_default("at");
    table.check(at < duration, "at", format_args!("is {at}, but the run ends at {duration}"));
    let until: Option<Span> = table.get("until");
    if let Some(until) = until {
        let message = format_args!("is {until}; it must be after {at}, when the fault begins");
        table.check(until > at, "until", message);
        let end = duration.saturating_add(drain);
        let message = format_args!(
            "is {until}, which has no effect: the run ends at {end} at the latest, with its drain"
        );
        table.check(until < end, "until", message);
    }
    if table.node("kind").is_none() {
        table.missing("kind", "\"down\", \"loss\", \"corrupt\" or \"reorder\"");
        return None;
    }
    let word = table.word("kind")?;
    if word == "down" {
        table.no_effect("probability", "on a link that is down");
    }
    if word != "reorder" {
        table.no_effect("delay", "unless packets are reordered (kind = \"reorder\")");
    }
    let kind = match word {
        "down" => FaultKind::Down,
        "loss" => FaultKind::Loss(table.require("probability")?),
        "corrupt" => FaultKind::Corrupt(table.require("probability")?),
        "reorder" => {
            let (probability, delay) = (table.require("probability"), table.require("delay"));
            FaultKind::Reorder(probability?, delay?)
        }
        other => unreachable!("the word {other} is not declared"),
    };
    let (link, ports) = found?;
    table.record("link", link.value());
    Some(FaultSpec { link, at, until, kind, ports })
}

/// The egress ports in front of the links that `text` names, in ascending order, and the name as it is
/// written back: one port per link, or with `<->` both. Of parallel links that are named without a
/// wildcard, the first.
fn find_ports(topology: &Topology, text: &str) -> Result<(String, Vec<PortId>), String> {
    let (ends, both) = match text.split_once("<->") {
        Some(ends) => (Some(ends), true),
        None => (text.split_once("->"), false),
    };
    let Some((from, to)) = ends else {
        return Err("must name two nodes, like \"leaf 0 -> spine 1\", or with `<->` for both \
                    directions; `*` stands for any text"
            .to_owned());
    };
    let (from, to) = (from.trim(), to.trim());
    let wildcard = from.contains('*') || to.contains('*');
    let mut ports = Vec::new();
    for (index, link) in (0u32..).zip(&topology.links) {
        let (a, b) = (topology.node_name(link.a), topology.node_name(link.b));
        let ab = matches_pattern(&a, from) && matches_pattern(&b, to);
        let ba = matches_pattern(&b, from) && matches_pattern(&a, to);
        let sides = [(0, ab || (both && ba)), (1, ba || (both && ab))];
        ports.extend(sides.into_iter().filter(|(_, hit)| *hit).map(|(side, _)| 2 * index + side));
        if !wildcard && !ports.is_empty() {
            break;
        }
    }
    if ports.is_empty() {
        return Err(no_link(topology, from, to));
    }
    let arrow = if both { "<->" } else { "->" };
    Ok((format!("{from} {arrow} {to}"), ports.into_iter().map(PortId::new).collect()))
}

/// Returns the reason why no link matches: the name of an end is unknown, or no link has these
/// ends.
fn no_link(topology: &Topology, from: &str, to: &str) -> String {
    let mut names: Vec<String> = topology
        .links
        .iter()
        .flat_map(|link| [topology.node_name(link.a), topology.node_name(link.b)])
        .collect();
    names.sort_unstable();
    names.dedup();
    let unknown = |end: &&str| !names.iter().any(|name| matches_pattern(name, end));
    match [from, to].into_iter().find(unknown) {
        Some(end) => {
            let hint = apus_units::suggestion(end, names.iter().map(String::as_str));
            format!("names \"{end}\", which is not a node of the topology{hint}")
        }
        None => format!("names \"{from}\" and \"{to}\", which no link connects"),
    }
}

#[cfg(test)]
mod tests {
    use crate::set::{LinkSpec, PortConfig, Topology};
    use apus_fabric::{Node, SwitchSpec};
    use apus_units::{Bytes, HostId, Rate, Span, SwitchId};

    use super::find_ports;

    /// Two leaves with a host each, two spines; leaf 0 has two links to spine 0. Link `l` has the
    /// ports `2 l` upwards, from the first node, and `2 l + 1` back.
    fn topology() -> Topology {
        let names = ["leaf 0", "leaf 1", "spine 0", "spine 1"];
        let switch = |index| Node::Switch(SwitchId::new(index));
        let ends = [
            (Node::Host(HostId::new(0)), switch(0)),
            (Node::Host(HostId::new(1)), switch(1)),
            (switch(0), switch(2)),
            (switch(0), switch(2)),
            (switch(0), switch(3)),
            (switch(1), switch(2)),
            (switch(1), switch(3)),
        ];
        let port = PortConfig::new(Rate::from_bps(1_000_000_000), Bytes::new(10_000));
        let link =
            |(a, b)| LinkSpec { a, b, delay: Span::from_us(1), ab: port.clone(), ba: port.clone() };
        Topology {
            hosts: 2,
            switches: names.map(|name| SwitchSpec::new(name.to_owned())).into(),
            links: ends.map(link).into(),
        }
    }

    #[test]
    fn a_wildcard_selects_every_link_that_fits() {
        let topology = topology();
        for (text, expected) in [
            ("leaf 0 -> spine 0", &[4][..]),
            ("spine 0 -> leaf 0", &[5]),
            ("leaf 0 <-> spine 0", &[4, 5]),
            ("spine 0 <-> leaf 0", &[4, 5]),
            ("leaf 0 -> *", &[1, 4, 6, 8]),
            ("leaf 0->spine*", &[4, 6, 8]),
            ("leaf * -> spine 1", &[8, 12]),
            ("leaf * <-> spine 1", &[8, 9, 12, 13]),
            ("* -> host *", &[1, 3]),
            ("host 1 -> *", &[2]),
        ] {
            let (_, ports) = find_ports(&topology, text).expect(text);
            let ports: Vec<u32> = ports.iter().map(|port| port.get()).collect();
            assert_eq!(ports, expected, "{text}");
        }
    }

    #[test]
    fn an_unknown_end_is_named_with_similar_nodes() {
        let error = |text| find_ports(&topology(), text).expect_err("no such link");
        assert_eq!(
            error("lef 0 -> spine 0"),
            "names \"lef 0\", which is not a node of the topology; did you mean `leaf 0`?"
        );
        assert!(error("agg * -> spine 0").starts_with("names \"agg *\", which is not a node"));
        assert_eq!(
            error("host * -> spine *"),
            "names \"host *\" and \"spine *\", which no link connects"
        );
        assert!(error("leaf 0").contains("must name two nodes"));
    }
}
