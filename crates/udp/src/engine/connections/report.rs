//! Reports on connections and peers for metrics.

use apus_units::FlowId;

use super::{Connection, Connections};
use crate::engine::endpoint::Endpoint;
use crate::report::{ConnectionReport, Paths, Report, Totals, Windows};
use crate::session::SessionId;

impl Connection {
    /// Returns the connection's counters over all its flows.
    pub(super) fn totals(&self, endpoint: &Endpoint) -> Totals {
        let mut totals = Totals::default();
        if let Some(state) = self.state() {
            totals.ops = state.ops.counts();
        }
        let counters = |&flow: &FlowId| endpoint.counters(flow);
        for counters in self.flows.iter().filter_map(counters) {
            totals.add_flow(&counters);
        }
        totals
    }

    fn report(&self, endpoint: &Endpoint, ports: &[u16], header_bytes: u32) -> ConnectionReport {
        let mut windows = Windows::default();
        for snapshot in self.flows.iter().filter_map(|&flow| endpoint.snapshot(flow)) {
            windows.add(&snapshot);
        }
        ConnectionReport {
            number: self.number,
            peer: self.peer.address,
            flows: self.flows.len(),
            mtu: self.mtu,
            windows,
            totals: self.totals(endpoint),
            paths: self.paths(endpoint, ports, header_bytes),
        }
    }
}

impl Connections {
    /// Returns the state of the ports of a connection.
    pub(in crate::engine) fn paths(
        &self,
        session: SessionId,
        endpoint: &Endpoint,
    ) -> Option<Paths> {
        let connection = self.get(session).filter(|c| c.state().is_some())?;
        Some(connection.paths(endpoint, self.mailbox.status.ports(), self.header_bytes()))
    }

    /// Returns the connected connections and the peers, up to the number that metrics list.
    pub(in crate::engine) fn report(&self, endpoint: &Endpoint) -> Report {
        let connected = || self.table.iter().flatten().filter(|c| c.state().is_some());
        let limit = self.config.metrics_limit as usize;
        let mut oldest: Vec<&Connection> = connected().map(|connection| &**connection).collect();
        oldest.sort_unstable_by_key(|connection| connection.number);
        let unlisted = oldest.len().saturating_sub(limit) as u64;
        oldest.truncate(limit);
        let (peers, other) = self
            .peers
            .report(connected().map(|c| (c.peer.address.ip(), c.peer_listed, c.totals(endpoint))));
        let ports = self.mailbox.status.ports();
        let header_bytes = self.header_bytes();
        let report = |connection: &&Connection| connection.report(endpoint, ports, header_bytes);
        let connections = oldest.iter().map(report).collect();
        Report { connections, unlisted, peers, other }
    }
}
