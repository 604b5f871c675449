//! A reference loop that changes of the project cannot make faster or slower, for the comparison of
//! benchmarks between machines (`tools/bench`). It reads a table in an order that each read determines, with
//! one multiplication per read, as in the event loop.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const STEPS: u64 = 100_000;
/// Number of entries of the table: 256 kB, more than the first-level cache and less than the second-level cache.
const ENTRIES: u64 = 1 << 15;

fn reference(c: &mut Criterion) {
    let table: Vec<u64> =
        (0..ENTRIES).map(|n| n.wrapping_mul(6_364_136_223_846_793_005).rotate_left(29)).collect();
    let mut group = c.benchmark_group("reference");
    group.throughput(Throughput::Elements(STEPS));
    group.bench_function("walk", |b| {
        b.iter(|| {
            (0..black_box(STEPS)).fold(1u64, |at, step| {
                let next = table[(at % ENTRIES) as usize] ^ step;
                next.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11
            })
        });
    });
    group.finish();
}

criterion_group!(benches, reference);
criterion_main!(benches);
