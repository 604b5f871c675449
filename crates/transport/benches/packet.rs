//! Cost of a data packet at both of its hosts: sending, receiving, acknowledging, and processing
//! the acknowledgement.

use apus_algorithms::build;
use apus_cc::FlowInfo;
use apus_transport::{Arrival, Endpoint, EndpointConfig, Op, OpKind};
use apus_units::{FlowId, Span, Time};
use apus_wire::RegionKey;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const PACKETS: u64 = 10_000;

/// Sends packets over `flows` flows in turn. Each packet takes 5 us to the peer and is acknowledged
/// separately, as in the simulator.
fn exchange(flows: u32, algorithm: &str) {
    let factory = build(algorithm, None, &[]).expect("an algorithm with its defaults");
    let mut hosts = [0, 1].map(|_| Endpoint::new(EndpointConfig::default()));
    let kind = OpKind::Write { region: RegionKey::new(1), address: 0 };
    let length = PACKETS / u64::from(flows) * 4096;
    for flow in 0..flows {
        for host in &mut hosts {
            host.open(FlowId::new(flow), &factory, &FlowInfo::default());
        }
        let op = Op { kind, length, user: 0 };
        hosts[0].submit(Time::ZERO, FlowId::new(flow), op).expect("an op");
    }
    let mut now = Time::ZERO;
    let mut acknowledgements = Vec::new();
    let mut done = 0;
    while done < flows {
        let [sender, receiver] = &mut hosts;
        sender.handle_timeout(now);
        let there = arrival(now + Span::from_us(5));
        while let Some(packet) = sender.poll_data(now) {
            receiver.handle_packet(&there, &packet.header);
            acknowledgements.extend(receiver.poll_ack(there.now).map(|packet| packet.header));
        }
        now += Span::from_us(10);
        let back = arrival(now);
        for header in acknowledgements.drain(..) {
            sender.handle_packet(&back, &header);
        }
        while sender.poll_completion().is_some() {
            done += 1;
        }
    }
}

/// Returns an arrival at `now`, over one switch.
fn arrival(now: Time) -> Arrival {
    Arrival { now, nic_received_at: now, hops: 1, marked: false, receiver_level: 0 }
}

fn packet(c: &mut Criterion) {
    let mut group = c.benchmark_group("host_packet");
    group.throughput(Throughput::Elements(PACKETS));
    for flows in [1, 100] {
        group.bench_function(BenchmarkId::new("swift", flows), |b| {
            b.iter(|| exchange(flows, "swift"));
        });
    }
    group.finish();
}

criterion_group!(benches, packet);
criterion_main!(benches);
