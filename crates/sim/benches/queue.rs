//! Cost of an event in the queue alone, measured by the hold model of event queues (Jones, CACM '86): remove
//! the earliest event and insert a later one. Delays are those of links, 0.1 to 10 us.

#[expect(dead_code, reason = "the benchmark needs only some of it")]
#[path = "../src/queue.rs"]
mod queue;

use apus_units::{Span, Time};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use queue::EventQueue;

/// Number of events of one measured step.
const EVENTS: u64 = 100_000;

/// A linear congruential generator (Knuth's MMIX), cheap enough not to dominate the measurement.
struct Random(u64);

impl Random {
    fn delay(&mut self) -> Span {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Span::from_ps(100_000 + (self.0 >> 33) % 9_900_000)
    }
}

fn hold(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue_hold");
    group.throughput(Throughput::Elements(EVENTS));
    for pending in [100u32, 1_000, 10_000] {
        let mut random = Random(1);
        let mut queue = EventQueue::new(pending);
        for entity in 0..pending {
            queue.push(entity, Time::ZERO + random.delay());
        }
        group.bench_function(BenchmarkId::from_parameter(pending), |b| {
            b.iter(|| {
                for _ in 0..EVENTS {
                    if let Some((now, entity)) = queue.pop_before(Time::MAX) {
                        queue.push(entity, now + random.delay());
                    }
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, hold);
criterion_main!(benches);
