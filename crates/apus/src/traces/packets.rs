//! Simulated packets as a capture, with the headers that they would have between processes.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};

use apus_cc::{Ecn, Fields, Telemetry};
use apus_sim::record::{PacketRecord, Recording};
use apus_traces::pcapng::{Captured, Direction, Pcapng};
use apus_transport::{ExtensionBuffer, extension_of, written};
use apus_units::{HostId, Span};
use apus_wire::{
    Extension, HOP_BYTES, Hops, MAX_EXTENSION_BYTES, MAX_HEADER_BYTES, MAX_PAYLOAD, encode_extended,
};

/// UDP port of all hosts: the first dynamic port; dynamic ports are assigned to no protocol.
const PORT: u16 = 49_152;

/// Bytes after the payload in the insecure mode (`apus_udp::session`): session, packet number and checksum.
const GUARD_BYTES: usize = 12;

/// Returns the address of a host: 10.0.0.0 plus its number.
pub(super) fn address(host: HostId) -> SocketAddr {
    (Ipv4Addr::from(0x0a00_0000u32.wrapping_add(host.get())), PORT).into()
}

/// Writes the packets of a trace. Each port is an interface.
pub(super) fn write(out: impl Write, recording: &Recording) -> io::Result<()> {
    let mut file = Pcapng::new(out, 0)?;
    let mut interfaces = BTreeMap::new();
    let mut ports: Vec<_> = recording.traced.packets.iter().map(|packet| packet.port).collect();
    ports.sort_unstable();
    ports.dedup();
    for port in ports {
        interfaces.insert(port, file.interface(&recording.port_name(port))?);
    }
    let mut datagram = Vec::new();
    for record in &recording.traced.packets {
        let headers = encode(record, recording, &mut datagram)?;
        let packet = &record.packet;
        let ecn = match packet.congestion.ecn {
            Ecn::NotCapable => 0b00,
            Ecn::Capable => 0b10,
            Ecn::Congested => 0b11,
        };
        file.write(&Captured {
            interface: interfaces[&record.port],
            unix_ns: record.left.as_ps() / Span::from_ns(1).as_ps(),
            direction: Direction::Out,
            from: address(packet.src),
            to: address(packet.dst),
            traffic_class: packet.class.get() << 5 | ecn,
            ttl: packet.ttl,
            datagram: &datagram,
            kept: headers,
        })?;
    }
    file.finish().map(drop)
}

/// Writes the datagram that carries a packet in the insecure mode, with zeros after the headers. Returns the length of
/// its headers.
fn encode(
    record: &PacketRecord,
    recording: &Recording,
    datagram: &mut Vec<u8>,
) -> io::Result<usize> {
    let header = &record.packet.payload;
    let mut buffer: ExtensionBuffer = [0; _];
    let extension = match (record.packet.congestion.fields, record.telemetry.as_deref()) {
        (Fields::TELEMETRY, Some(telemetry)) => noted(telemetry, &mut buffer),
        (fields, telemetry) => {
            let flow = record.connection.and_then(|flow| recording.flows.get(flow as usize));
            let layout = flow.and_then(|flow| flow.fields);
            extension_of(fields, layout, telemetry, &mut buffer)
        }
    };
    datagram.clear();
    datagram.resize(MAX_HEADER_BYTES + MAX_EXTENSION_BYTES, 0);
    let headers = encode_extended(header, &extension, datagram).map_err(io::Error::other)?;
    // Packets of a simulation may be longer than a datagram can be.
    let payload = header.payload_len().min(MAX_PAYLOAD as usize - headers - 100);
    datagram.truncate(headers);
    datagram.resize(headers + payload + GUARD_BYTES, 0);
    Ok(headers)
}

/// Returns the telemetry that switches have appended so far, without the space reserved for more.
fn noted<'b>(telemetry: &Telemetry, buffer: &'b mut ExtensionBuffer) -> Extension<'b> {
    let (places, _) = buffer.as_chunks_mut::<HOP_BYTES>();
    for (place, hop) in places.iter_mut().zip(telemetry.hops()) {
        *place = written(hop).to_bytes();
    }
    let used = telemetry.hops().len() * HOP_BYTES;
    Extension::Telemetry(Hops::noted(telemetry.path(), &buffer[..used.min(buffer.len())]))
}
