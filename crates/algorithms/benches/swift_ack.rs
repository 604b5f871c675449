//! Cost of one acknowledgement, the allowance after it included (goal: at most 25 ns).
//!
//! The delays vary around the target, so that increases, decreases and blocked decreases all occur. `many
//! flows` visits a million flows in an order that the cache cannot predict, and so measures the memory of their
//! state rather than the arithmetic.

use core::hint::black_box;

use apus_algorithms::{BuiltInSender, build};
use apus_cc::{AckEvent, AlgorithmFactory, FlowInfo, Sender};
use apus_units::{PacketNumber, Span, Time};
use criterion::{Criterion, criterion_group, criterion_main};

/// The `n`th acknowledgement of a flow, 2 us after the previous one.
fn ack(n: u64) -> AckEvent<'static> {
    let fabric_delay = Span::from_ns(20_000 + n * 7_919 % 40_000);
    let endpoint_delay = Span::from_ns(5_000 + n * 104_729 % 20_000);
    {
        let mut event = AckEvent::new(Time::from_ps(n * 2_000_000), fabric_delay + endpoint_delay);
        event.fabric_delay = fabric_delay;
        event.endpoint_delay = endpoint_delay;
        event.hops = 3;
        event.receiver_level = (n % 32) as u8;
        event.acked_seq = PacketNumber::new(n);
        event.next_seq = PacketNumber::new(n + 16);
        event.in_flight = 15;
        event.fields = apus_cc::Fields::NONE;
        event
    }
}

fn sender(name: &str, profile: &str) -> BuiltInSender {
    build(name, Some(profile), &[]).expect("the defaults are sound").sender(&FlowInfo::default())
}

fn cost_per_ack(c: &mut Criterion) {
    let acks: Vec<AckEvent> = (0..4096).map(ack).collect();
    for (name, profile) in
        [("swift", "paper"), ("swift", "falcon"), ("dctcp", "rfc8257"), ("constant", "constant")]
    {
        let mut flow = sender(name, profile);
        let mut n = 0;
        c.bench_function(&format!("{name} {profile}: one flow"), |b| {
            b.iter(|| {
                let mut event = acks[n % acks.len()];
                event.now = Time::from_ps(n as u64 * 2_000_000);
                event.acked_seq = PacketNumber::new(n as u64);
                event.next_seq = PacketNumber::new(n as u64 + 16);
                n += 1;
                flow.on_ack(black_box(&event));
                black_box(flow.allowance())
            });
        });
    }
    let config = build("swift", None, &[]).expect("the defaults are sound");
    let mut flows: Vec<BuiltInSender> =
        (0..1_000_000).map(|_| config.sender(&FlowInfo::default())).collect();
    let mut n = 0;
    c.bench_function("swift paper: many flows", |b| {
        b.iter(|| {
            let mut event = acks[n % acks.len()];
            event.now = Time::from_ps(n as u64 * 2_000);
            // A stride without a common divisor with a million.
            let at = n * 618_033 % flows.len();
            n += 1;
            let flow = &mut flows[at];
            flow.on_ack(black_box(&event));
            black_box(flow.allowance())
        });
    });
}

criterion_group!(benches, cost_per_ack);
criterion_main!(benches);
