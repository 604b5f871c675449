//! Names of links and switches that fail.

use crate::set::Topology;
use apus_fabric::{Node, TopologyError};
use apus_units::PortId;

use crate::pattern::matches_pattern;
use crate::setup::Setup;

/// Things that fail as a whole: the egress ports of each, in ascending order.
pub(super) type Units = Vec<Vec<PortId>>;

/// Returns the ports of each link that `text` names, in ascending order, and the name as it is written back:
/// one port per link, or both with `<->`. Of parallel links that are named without a wildcard, only the first
/// counts.
pub(super) fn find_links(topology: &Topology, text: &str) -> Result<(String, Units), String> {
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
    let mut links = Vec::new();
    for (index, link) in (0u32..).zip(&topology.links) {
        let (a, b) = (topology.node_name(link.a), topology.node_name(link.b));
        let ab = matches_pattern(&a, from) && matches_pattern(&b, to);
        let ba = matches_pattern(&b, from) && matches_pattern(&a, to);
        let sides = [(0, ab || (both && ba)), (1, ba || (both && ab))];
        let ports = sides.into_iter().filter(|(_, hit)| *hit);
        let ports: Vec<PortId> = ports.map(|(side, _)| PortId::new(2 * index + side)).collect();
        if ports.is_empty() {
            continue;
        }
        links.push(ports);
        if !wildcard {
            break;
        }
    }
    if links.is_empty() {
        return Err(no_link(topology, from, to));
    }
    let arrow = if both { "<->" } else { "->" };
    Ok((format!("{from} {arrow} {to}"), links))
}

/// Returns the ports of all links of each switch that `text` names, in both directions.
pub(super) fn find_switches(topology: &Topology, text: &str) -> Result<(String, Units), String> {
    let text = text.trim();
    let ports = |node: Node| -> Vec<PortId> {
        let links = (0u32..).zip(&topology.links).filter(|(_, l)| l.a == node || l.b == node);
        links.flat_map(|(index, _)| [2 * index, 2 * index + 1]).map(PortId::new).collect()
    };
    let named = (0u32..).zip(&topology.switches).filter(|(_, s)| matches_pattern(&s.name, text));
    let switches: Units =
        named.map(|(index, _)| ports(Node::Switch(apus_units::SwitchId::new(index)))).collect();
    if switches.is_empty() {
        let names = topology.switches.iter().map(|switch| switch.name.as_str());
        let hint = apus_units::suggestion(text, names);
        return Err(format!("names \"{text}\", which is not a switch of the topology{hint}"));
    }
    Ok((text.to_owned(), switches))
}

impl Setup {
    /// Returns the names of the links that match, as `link` of `[[fault]]` names them.
    ///
    /// # Errors
    /// If none does, with the reason.
    pub fn links_named(&self, pattern: &str) -> Result<Vec<String>, String> {
        let topology = self.topology.build().map_err(|error| error.to_string())?;
        let (_, links) = find_links(&topology, pattern)?;
        Ok(links.iter().map(|ports| link_name(&topology, ports)).collect())
    }

    /// Returns the names of the links between switches, in both directions.
    ///
    /// # Errors
    /// If the topology cannot be built; the reader checks this beforehand.
    pub fn links_of_switches(&self) -> Result<Vec<String>, TopologyError> {
        let topology = self.topology.build()?;
        let links = (0u32..).zip(&topology.links);
        let links = links
            .filter(|(_, link)| matches!((link.a, link.b), (Node::Switch(_), Node::Switch(_))));
        let both = |index: u32| [2 * index, 2 * index + 1].map(PortId::new);
        Ok(links.map(|(index, _)| link_name(&topology, &both(index))).collect())
    }

    /// Returns the names of the switches that match, as `switch` of `[[fault]]` names them.
    ///
    /// # Errors
    /// If none does, with the reason.
    pub fn switches_named(&self, pattern: &str) -> Result<Vec<String>, String> {
        let topology = self.topology.build().map_err(|error| error.to_string())?;
        find_switches(&topology, pattern)?;
        let names = topology.switches.into_iter().map(|switch| switch.name);
        Ok(names.filter(|name| matches_pattern(name, pattern.trim())).collect())
    }
}

/// Returns the name of a link, by one of its ports or both.
fn link_name(topology: &Topology, ports: &[PortId]) -> String {
    let Some(&port) = ports.first() else { return String::new() };
    let link = &topology.links[port.index() / 2];
    let (a, b) = (topology.node_name(link.a), topology.node_name(link.b));
    match ports.len() {
        1 if port.index().is_multiple_of(2) => format!("{a} -> {b}"),
        1 => format!("{b} -> {a}"),
        _ => format!("{a} <-> {b}"),
    }
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

    use super::{find_links, find_switches};

    /// Two leaves with a host each, two spines; leaf 0 has two links to spine 0. Link `l` has port `2 l` from
    /// the first node upwards, and port `2 l + 1` back.
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
            let (_, links) = find_links(&topology, text).expect(text);
            let ports: Vec<u32> = links.iter().flatten().map(|port| port.get()).collect();
            assert_eq!(ports, expected, "{text}");
        }
    }

    #[test]
    fn a_switch_fails_with_all_its_links() {
        let ports = |text| -> Vec<Vec<u32>> {
            let (_, switches) = find_switches(&topology(), text).expect(text);
            switches.iter().map(|ports| ports.iter().map(|port| port.get()).collect()).collect()
        };
        assert_eq!(ports("spine 1"), [[8, 9, 12, 13]]);
        assert_eq!(ports("spine *"), [vec![4, 5, 6, 7, 10, 11], vec![8, 9, 12, 13]]);
        let unknown = find_switches(&topology(), "spin 1").expect_err("no such switch");
        assert_eq!(
            unknown,
            "names \"spin 1\", which is not a switch of the topology; did you mean `spine 1`?"
        );
    }

    #[test]
    fn an_unknown_end_is_named_with_similar_nodes() {
        let error = |text| find_links(&topology(), text).expect_err("no such link");
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
