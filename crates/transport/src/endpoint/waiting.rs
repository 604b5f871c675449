//! Flows with data that wait for ports of their host, on hosts with several ports.

use alloc::vec::Vec;

use apus_units::{FlowId, Ring};

/// Waiting flows, grouped by the ports that they wait for: a poll examines the first flow of each
/// list instead of every flow.
#[derive(Debug, Default)]
pub(super) struct WaitingFlows {
    lists: Vec<List>,
    /// Number of flows.
    len: usize,
    /// Number that the next flow gets. Numbers give the order in which flows began to wait.
    next: u64,
}

/// Flows that wait for any of the same ports.
#[derive(Debug)]
struct List {
    /// Set of ports, one bit each.
    ports: u64,
    flows: Ring<(u64, FlowId)>,
}

impl List {
    /// Returns the number of the first flow.
    fn first(&self) -> u64 {
        self.flows.front().map_or(u64::MAX, |(number, _)| *number)
    }
}

impl WaitingFlows {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Appends a flow that waits for any of `ports`.
    pub(super) fn push(&mut self, ports: u64, flow: FlowId) {
        let entry = (self.next, flow);
        self.next += 1;
        self.len += 1;
        if let Some(list) = self.lists.iter_mut().find(|list| list.ports == ports) {
            return list.flows.push_back(entry);
        }
        let mut flows = Ring::default();
        flows.push_back(entry);
        self.lists.push(List { ports, flows });
    }

    /// Removes the longest-waiting flow among those for which `has_room` is true.
    pub(super) fn pop(&mut self, has_room: impl Fn(u64) -> bool) -> Option<FlowId> {
        let with_room = self.lists.iter_mut().filter(|list| has_room(list.ports));
        let list = with_room.min_by_key(|list| list.first())?;
        let (_, flow) = list.flows.pop_front()?;
        self.len -= 1;
        if list.flows.is_empty() {
            self.lists.retain(|list| !list.flows.is_empty());
        }
        Some(flow)
    }

    /// Removes all flows, in the order in which they began to wait.
    pub(super) fn take(&mut self) -> impl Iterator<Item = FlowId> + use<> {
        let mut flows: Vec<(u64, FlowId)> = Vec::with_capacity(self.len);
        for list in self.lists.drain(..) {
            flows.extend(list.flows.iter().copied());
        }
        flows.sort_unstable();
        self.len = 0;
        flows.into_iter().map(|(_, flow)| flow)
    }
}
