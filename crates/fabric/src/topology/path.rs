//! Paths through named switches.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use apus_cc::SwitchHalf;
use apus_units::{HostId, PortId, SwitchId};

use super::{Node, Topology};
use crate::routing::MAX_SWITCHES;

impl<W: SwitchHalf> Topology<W> {
    /// Returns the egress ports from `from` to `to` through these switches, in this order. If
    /// several links connect two of them, the first link is used.
    ///
    /// # Errors
    /// If a name is not that of a switch, two successive nodes are not linked (the text says
    /// which), or the path has more switches than a packet may visit.
    pub fn path(
        &self,
        from: HostId,
        through: &[String],
        to: HostId,
    ) -> Result<Vec<PortId>, String> {
        if through.len() > usize::from(MAX_SWITCHES) {
            return Err(format!(
                "has {} switches, but a packet visits at most {MAX_SWITCHES}; name fewer",
                through.len()
            ));
        }
        let switches = through.iter().map(|name| {
            let found = self.switches.iter().position(|switch| switch.name == *name);
            found
                .map(|index| Node::Switch(SwitchId::new(index as u32)))
                .ok_or_else(|| format!("names no switch \"{name}\""))
        });
        let ends = |host| core::iter::once(Ok(Node::Host(host)));
        let nodes: Vec<Node> =
            ends(from).chain(switches).chain(ends(to)).collect::<Result<_, _>>()?;
        nodes
            .windows(2)
            .map(|pair| {
                let (a, b) = (pair[0], pair[1]);
                self.ports().find(|(_, x, y)| (*x, *y) == (a, b)).map(|(port, ..)| port).ok_or_else(
                    || {
                        let name = |node: Node| self.node_name(node);
                        format!("goes from {} to {}, which no link connects", name(a), name(b))
                    },
                )
            })
            .collect()
    }
}
