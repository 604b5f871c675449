//! The usual topology kinds. Each function documents its numbering; see [`Topology`] for the
//! numbers of ports.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use apus_cc::SwitchHalf;
use apus_units::{HostId, SwitchId};

use super::{Node, SwitchSpec, Tier, Topology, TopologyError};

fn host(n: u32) -> Node {
    Node::Host(HostId::new(n))
}

fn switch(n: u32) -> Node {
    Node::Switch(SwitchId::new(n))
}

fn named(kind: &'static str, count: u32) -> impl Iterator<Item = SwitchSpec> {
    (0..count).map(move |n| SwitchSpec::new(format!("{kind} {n}")))
}

impl<W: SwitchHalf> Topology<W> {
    /// Returns `hosts` hosts on one switch, "switch 0". Link `h` is that of host `h`.
    #[must_use]
    pub fn star(hosts: u32, tier: &Tier<W>) -> Self {
        Self {
            hosts,
            switches: named("switch", 1).collect(),
            links: (0..hosts).map(|h| tier.link(host(h), switch(0))).collect(),
        }
    }

    /// Returns two switches, "left" and "right", connected by one link, on which left is the lower
    /// end. Hosts `0..left` are on the left, all other hosts on the right. Links: the links of
    /// hosts in their order, then the middle link.
    #[must_use]
    pub fn dumbbell(left: u32, right: u32, edge: &Tier<W>, middle: &Tier<W>) -> Self {
        let side = |h: u32| switch(u32::from(h >= left));
        let mut links: Vec<_> = (0..left + right).map(|h| edge.link(host(h), side(h))).collect();
        links.push(middle.link(switch(0), switch(1)));
        let switches = ["left", "right"].map(|name| SwitchSpec::new(name.to_string()));
        Self { hosts: left + right, switches: switches.into(), links }
    }

    /// Returns a chain of switches, "switch 0" and so on, each with `hosts_per_switch` hosts: host
    /// `h` is on switch `h / hosts_per_switch`. Links: those of the hosts in their order, then
    /// those from switch `i`, the lower end, to switch `i + 1`.
    #[must_use]
    pub fn parking_lot(
        switches: u32,
        hosts_per_switch: u32,
        edge: &Tier<W>,
        chain: &Tier<W>,
    ) -> Self {
        let hosts = switches * hosts_per_switch;
        let mut links: Vec<_> =
            (0..hosts).map(|h| edge.link(host(h), switch(h / hosts_per_switch))).collect();
        links.extend((1..switches).map(|s| chain.link(switch(s - 1), switch(s))));
        Self { hosts, switches: named("switch", switches).collect(), links }
    }

    /// Returns two tiers of switches: every leaf has a link to every spine. Host `h` is on "leaf
    /// `h / hosts_per_leaf`". Switches: the leaves, then the spines. Links: the links of hosts in
    /// their order, then those of leaf 0 to spine 0, spine 1 and so on, then those of leaf 1 and so
    /// on.
    ///
    /// A leaf is oversubscribed by `hosts_per_leaf` times the host rate over `spines` times the
    /// spine rate.
    #[must_use]
    pub fn leaf_spine(
        leaves: u32,
        hosts_per_leaf: u32,
        spines: u32,
        edge: &Tier<W>,
        up: &Tier<W>,
    ) -> Self {
        let hosts = leaves * hosts_per_leaf;
        let mut links: Vec<_> =
            (0..hosts).map(|h| edge.link(host(h), switch(h / hosts_per_leaf))).collect();
        for leaf in 0..leaves {
            links.extend((0..spines).map(|s| up.link(switch(leaf), switch(leaves + s))));
        }
        Self {
            hosts,
            switches: named("leaf", leaves).chain(named("spine", spines)).collect(),
            links,
        }
    }

    /// Returns the three-tier fat tree of `k`-port switches (Al-Fares, Loukissas and Vahdat,
    /// SIGCOMM 2008): `k` pods of `k / 2` edge and `k / 2` aggregation switches, and `k^2 / 4`
    /// cores. With `hosts_per_edge` = `k / 2` it has `k^3 / 4` hosts; more hosts per edge
    /// oversubscribe it.
    ///
    /// With m = k / 2: pod p has edges p m to p m + m - 1 and the aggregations of the same numbers;
    /// its i-th aggregation has links to cores i m to i m + m - 1. Host `h` is on "edge
    /// `h / hosts_per_edge`". Switches: edges, aggregations ("agg 5"), cores. Links: those of the
    /// hosts in their order, then edge to aggregation by edge, then aggregation to core by
    /// aggregation.
    ///
    /// # Errors
    /// If `k` is odd or 0.
    pub fn fat_tree(
        k: u32,
        hosts_per_edge: u32,
        edge: &Tier<W>,
        aggregation: &Tier<W>,
        core: &Tier<W>,
    ) -> Result<Self, TopologyError> {
        if k == 0 || !k.is_multiple_of(2) {
            return Err(TopologyError(format!(
                "a fat tree of {k}-port switches does not exist; k must be even and at least 2"
            )));
        }
        let half = k / 2;
        let edges = k * half;
        let hosts = edges * hosts_per_edge;
        let agg = |n: u32| switch(edges + n);
        let mut links: Vec<_> =
            (0..hosts).map(|h| edge.link(host(h), switch(h / hosts_per_edge))).collect();
        for e in 0..edges {
            let pod = e / half;
            links.extend((0..half).map(|i| aggregation.link(switch(e), agg(pod * half + i))));
        }
        for a in 0..edges {
            let group = (a % half) * half;
            links.extend((0..half).map(|j| core.link(agg(a), switch(2 * edges + group + j))));
        }
        let switches = named("edge", edges)
            .chain(named("agg", edges))
            .chain(named("core", half * half))
            .collect();
        Ok(Self { hosts, switches, links })
    }
}
