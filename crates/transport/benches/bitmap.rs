//! Cost of the SACK bitmap per packet and per ACK.

use core::hint::black_box;

use apus_transport::received::{AckedPackets, ReceivedPackets};
use apus_units::PacketNumber;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const PACKETS: u64 = 10_000;

/// Packet numbers in order, with every tenth exchanged with its successor.
fn arrivals() -> Vec<PacketNumber> {
    let mut numbers: Vec<_> = (0..PACKETS).map(PacketNumber::new).collect();
    for i in (0..numbers.len() - 1).step_by(10) {
        numbers.swap(i, i + 1);
    }
    numbers
}

fn bitmap(c: &mut Criterion) {
    let arrivals = arrivals();
    let mut group = c.benchmark_group("bitmap");
    group.throughput(Throughput::Elements(PACKETS));
    group.bench_function("record", |b| {
        b.iter(|| {
            let mut received = ReceivedPackets::default();
            for &packet in &arrivals {
                black_box(received.record(packet));
            }
            received
        });
    });
    let mut received = ReceivedPackets::default();
    let acks: Vec<_> = arrivals
        .iter()
        .map(|&packet| {
            received.record(packet);
            (received.largest().unwrap_or(packet), received.bitmap())
        })
        .collect();
    for every in [1, 16, 64] {
        group.bench_function(format!("on_ack/every {every}"), |b| {
            b.iter(|| {
                let mut acked = AckedPackets::default();
                for &(largest, bitmap) in acks.iter().step_by(every) {
                    for packet in acked.on_ack(largest, bitmap) {
                        black_box(packet);
                    }
                }
                acked
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bitmap);
criterion_main!(benches);
