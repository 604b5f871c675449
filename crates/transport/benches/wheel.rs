//! Cost of the timing wheel per operation, at the relevant sizes: from a thousand events of a
//! simulation to a million flows of a host.

use core::hint::black_box;

use apus_transport::wheel::TimingWheel;
use apus_units::{Span, Time};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// SplitMix64: cheap enough not to affect the measurement.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// Deadlines over 100 ms, the range of pacing delays and retransmission timeouts.
const HORIZON_PS: u64 = 100_000_000_000;

/// Pacing wheel: slots of 2^20 ps (about 1 us), two levels of 4096 (about 17 s).
fn pacing_wheel() -> TimingWheel<12> {
    TimingWheel::new(20, 2)
}

fn deadlines(keys: u32) -> Vec<Time> {
    let mut random = Random(1);
    (0..keys).map(|_| Time::from_ps(random.below(HORIZON_PS))).collect()
}

fn filled(deadlines: &[Time]) -> TimingWheel<12> {
    let mut wheel = pacing_wheel();
    wheel.reserve(deadlines.len() as u32);
    for (key, &at) in deadlines.iter().enumerate() {
        wheel.insert(key as u32, at);
    }
    wheel
}

fn insert_and_expire(c: &mut Criterion) {
    let mut group = c.benchmark_group("wheel");
    for keys in [1_000u32, 100_000, 1_000_000] {
        group.throughput(Throughput::Elements(u64::from(keys)));
        let deadlines = deadlines(keys);
        let mut empty = pacing_wheel();
        empty.reserve(keys);
        group.bench_function(BenchmarkId::new("insert", keys), |b| {
            b.iter_batched_ref(
                || empty.clone(),
                |wheel| {
                    for (key, &at) in deadlines.iter().enumerate() {
                        wheel.insert(key as u32, at);
                    }
                },
                BatchSize::LargeInput,
            );
        });
        let full = filled(&deadlines);
        group.bench_function(BenchmarkId::new("expire", keys), |b| {
            let mut out = Vec::new();
            b.iter_batched_ref(
                || full.clone(),
                |wheel| {
                    while wheel.pop_slot(Time::MAX, &mut out) {
                        black_box(&out);
                        out.clear();
                    }
                },
                BatchSize::LargeInput,
            );
        });
        group.bench_function(BenchmarkId::new("reschedule", keys), |b| {
            let mut random = Random(2);
            let mut wheel = full.clone();
            b.iter(|| {
                for _ in 0..keys {
                    let key = random.below(u64::from(keys)) as u32;
                    wheel.insert(key, Time::from_ps(random.below(HORIZON_PS)));
                }
            });
        });
    }
    group.finish();
}

/// The hold model of event queues (Jones, CACM '86): remove the earliest event, insert a later one.
/// Delays are as in a packet simulation: a serialisation or propagation time, 0.1 to 10 us.
fn hold(c: &mut Criterion) {
    const EVENTS: u64 = 100_000;
    let mut group = c.benchmark_group("wheel_hold");
    group.throughput(Throughput::Elements(EVENTS));
    for pending in [1_000u32, 10_000] {
        for granularity in [8u32, 10, 12] {
            let mut random = Random(3);
            let mut wheel = TimingWheel::<12>::new(granularity, 3);
            for key in 0..pending {
                wheel.insert(key, Time::from_ps(random.below(10_000_000)));
            }
            let mut out = Vec::new();
            let name = format!("{pending}/2^{granularity}ps");
            group.bench_function(name, |b| {
                b.iter(|| {
                    let mut events = 0;
                    while events < EVENTS {
                        wheel.pop_slot(Time::MAX, &mut out);
                        for &(at, key) in &out {
                            let delay = Span::from_ps(100_000 + random.below(9_900_000));
                            wheel.insert(key, at + delay);
                        }
                        events += out.len() as u64;
                        out.clear();
                    }
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, insert_and_expire, hold);
criterion_main!(benches);
