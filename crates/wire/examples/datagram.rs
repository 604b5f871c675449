//! A one-sided write of 5 bytes as a datagram, which is then read back.

use apus_units::{FlowId, OpId, PacketNumber};
use apus_wire::{Body, Header, RegionKey, Segment, SegmentKind, open, seal};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kind = SegmentKind::Write { region: RegionKey::new(7), address: 4096 };
    let op = OpId::new(1);
    let segment = Segment { op, kind, offset: 0, length: 5, op_length: 5, attached: None };
    let (flow, seq) = (FlowId::new(3), PacketNumber::new(1));
    let header = Header { flow, seq, body: Body::Data(segment) };
    let mut buffer = [0; 128];
    let length = seal(&header, b"bytes", &mut buffer)?;
    assert_eq!(open(&buffer[..length])?, (header, &b"bytes"[..]));
    buffer[length - 6] ^= 1; // damages the payload
    assert!(open(&buffer[..length]).is_err(), "the checksum does not match");
    Ok(())
}
