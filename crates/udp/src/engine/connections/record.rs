//! Records of connections (qlog).

use apus_traces::qlog::PacketPath;
use apus_transport::RttSample;
use apus_units::{FlowId, Time};
use apus_wire::Header;

use super::{Connection, Connections, Owner};
use crate::engine::endpoint::Endpoint;
use crate::qlog::{Qlog, Recorded};
use crate::session::SessionId;

impl Connections {
    /// Returns `true` if a connection is recorded.
    #[inline]
    pub(in crate::engine) fn records(&self) -> bool {
        self.records > 0
    }

    /// Begins to record a connected connection. Reports in the log if the record cannot be written.
    pub(in crate::engine) fn begin_record(&mut self, now: Time, session: SessionId, qlog: &Qlog) {
        let (host, algorithm) = (self.mailbox.status.address, self.config.algorithm.info().name);
        let Some(connection) = self.get_mut(session) else { return };
        if connection.record.is_some() || connection.state().is_none() {
            return;
        }
        let (peer, by_peer, flows) = (connection.peer, connection.by_peer, connection.flows.len());
        let host = peer.local.map_or(host, |ip| (ip, host.port()).into());
        let recorded = Recorded { host, peer: peer.address, by_peer, flows, algorithm };
        match qlog.begin(now, &recorded) {
            Ok(Some(record)) => {
                connection.record = Some(Box::new(record));
                self.records += 1;
            }
            Ok(None) => {
                self.log.not_recorded(now, peer.address, "as many were recorded as allowed")
            }
            Err(error) => self.log.not_recorded(now, peer.address, &error.to_string()),
        }
    }

    fn recorded(&mut self, owner: Owner) -> Option<(&mut Connection, usize)> {
        let connection = self.get_mut(owner.session)?;
        connection.record.is_some().then_some((connection, owner.index))
    }

    /// Records a packet of `length` bytes of a flow that was sealed or received.
    #[cold]
    pub(in crate::engine) fn record_packet(
        &mut self,
        now: Time,
        sent: bool,
        flow: FlowId,
        header: &Header,
        length: usize,
        path: Option<PacketPath>,
    ) {
        let Some(owner) = self.owner(flow) else { return };
        let Some((connection, index)) = self.recorded(owner) else { return };
        let path = path.filter(|_| connection.ports.is_some());
        if let Some(record) = &mut connection.record {
            record.packet(now, sent, index, header, length, path);
        }
    }

    /// Records that an acknowledgement of a flow was handled.
    #[cold]
    pub(in crate::engine) fn record_ack(
        &mut self,
        now: Time,
        flow: FlowId,
        sample: Option<&RttSample>,
        endpoint: &Endpoint,
    ) {
        let Some(owner) = self.owner(flow) else { return };
        if let Some((connection, index)) = self.recorded(owner) {
            connection.record_flow(now, index, sample, endpoint);
        }
    }

    /// Records that timers of the transport ran.
    #[cold]
    pub(in crate::engine) fn record_timeouts(&mut self, now: Time, endpoint: &Endpoint) {
        for connection in self.table.iter_mut().flatten().filter(|c| c.record.is_some()) {
            for index in 0..connection.flows.len() {
                connection.record_flow(now, index, None, endpoint);
            }
        }
    }
}

impl Connection {
    fn record_flow(
        &mut self,
        now: Time,
        index: usize,
        sample: Option<&RttSample>,
        endpoint: &Endpoint,
    ) {
        let flow = self.flows[index];
        let state = endpoint.snapshot(flow).zip(endpoint.counters(flow));
        if let (Some(record), Some((state, counters))) = (&mut self.record, state) {
            record.flow(now, index, &state, &counters, sample);
        }
    }
}
