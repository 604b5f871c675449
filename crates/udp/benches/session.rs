//! Cost of guarding one packet: seal and open in place, by payload and mode, header and numbers
//! included. An open has to copy a sealed packet first; the copy alone stands beside it.

use core::hint::black_box;
use std::net::SocketAddr;

use apus_udp::session::{Config, Event, KeyRing, Received, SessionId, Sessions, SharedKey};
use apus_units::{FlowId, OpId, PacketNumber, Time};
use apus_wire::{Body, Header, Segment, SegmentKind};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const NOW: Time = Time::from_ps(1_000_000);
/// Packets sealed ahead of an opening: below the replay window, so that none is refused.
const BATCH: usize = 256;

fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, n], 7000))
}

/// Two tables with a session between them, the first being the one that asked.
fn pair(ring: &KeyRing) -> ([Sessions; 2], SessionId) {
    let table = |n| Sessions::new(Config::default(), ring.clone(), [n; 32]).expect("defaults");
    let mut tables = [table(1), table(2)];
    let key = ring.ids().next().expect("a key");
    let id = tables[0].connect(NOW, address(2), key, b"").expect("room");
    for _ in 0..8 {
        for side in 0..2 {
            let mut out = [0; 512];
            while let Some((_, length)) = tables[side].poll_transmit(NOW, &mut out) {
                let from = address(side as u8 + 1);
                tables[1 - side].receive(NOW, from, &mut out[..length]);
                while let Some(event) = tables[1 - side].poll_event() {
                    if let Event::Incoming { session, .. } = event {
                        tables[1 - side].accept(NOW, session, b"").expect("it waits");
                    }
                }
            }
        }
    }
    assert!(tables[0].is_connected(id));
    (tables, id)
}

fn header(seq: u64, length: usize) -> Header {
    let body = Body::Data(Segment {
        op: OpId::new(0),
        kind: SegmentKind::Message,
        offset: 0,
        length: length as u32,
        op_length: length as u64,
    });
    Header { flow: FlowId::new(0), seq: PacketNumber::new(seq), body }
}

fn cost_per_packet(c: &mut Criterion) {
    let sealed = KeyRing::new([SharedKey::new([1; 32])]).expect("one key");
    for (mode, ring) in [("sealed", sealed), ("insecure", KeyRing::insecure())] {
        let mut group = c.benchmark_group(mode);
        for length in [64, 1_400, 4_096, 8_900] {
            group.throughput(Throughput::Bytes(length as u64));
            let ([mut sender, _], id) = pair(&ring);
            let mut buffer = vec![7; header(0, length).encoded_len() + length + sender.overhead()];
            let mut seq = 0;
            group.bench_function(format!("seal {length} B"), |b| {
                b.iter(|| {
                    seq += 1;
                    sender.seal(NOW, id, &header(seq, length), black_box(&mut buffer))
                });
            });
            // A pair of its own: the first receiver has seen none of those packets.
            let ([mut sender, mut receiver], id) = pair(&ring);
            let mut packets = Vec::new();
            group.bench_function(format!("copy and open {length} B"), |b| {
                b.iter_custom(|count| {
                    let mut spent = std::time::Duration::ZERO;
                    for _ in 0..count.div_ceil(BATCH as u64) {
                        packets.clear();
                        for seq in 0..BATCH as u64 {
                            let header = header(seq, length);
                            sender.seal(NOW, id, &header, &mut buffer).expect("connected");
                            packets.push(buffer.clone());
                        }
                        let start = std::time::Instant::now();
                        for packet in &packets {
                            buffer.copy_from_slice(packet);
                            let received = receiver.receive(NOW, address(1), &mut buffer);
                            assert!(matches!(received, Received::Packet { .. }));
                        }
                        spent += start.elapsed();
                    }
                    spent.mul_f64(
                        count as f64 / (count.div_ceil(BATCH as u64) * BATCH as u64) as f64,
                    )
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, cost_per_packet);
criterion_main!(benches);
