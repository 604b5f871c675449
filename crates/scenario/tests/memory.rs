//! The estimate of a run's memory against its peak memory, counted by the allocator.
#![expect(unsafe_code, reason = "a global allocator that counts is unsafe by its interface")]

mod support;

use apus_scenario::Simulation;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::good;

/// The system's allocator, counting the bytes that are allocated.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract that `System` requires.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs a scenario. Returns its peak memory and the estimate.
fn measure(text: &str) -> (u64, u64) {
    let scenario = good(text);
    let setup = &scenario.runs[0].setup;
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let plan = setup.plan().expect("a plan");
    let simulation = Simulation::of(plan, 1).expect("a simulation");
    simulation.run("memory", &mut |_| {}).expect("a run");
    let peak = PEAK.load(Ordering::Relaxed) - before;
    (peak as u64, setup.estimated_memory().get())
}

/// A single test, since all tests of a file share the allocator's counts.
#[test]
fn memory_is_estimated_within_a_factor_of_two() {
    let star = |hosts: u32, algorithm: &str, workload: &str| {
        format!(
            "duration = \"50us\"\nalgorithm = {{ name = \"{algorithm}\" }}\n\
             topology = \"star hosts={hosts} 100Gbps 1us\"\n[[workload]]\n{workload}"
        )
    };
    let all_to_all = "kind = \"all-to-all\"\nsize = \"64kB\"\n";
    let one_op_each = "kind = \"poisson\"\nload = 0.5\nsize = \"64B\"\nflows = \"per-op\"\n";
    let many_ops = "kind = \"incast\"\nsize = \"64B\"\noutstanding = 64\nflows_per_pair = 500\n";
    // 40 ops per pair, all at once or 1 us apart, in two flows per pair.
    let trace = |gap_us: u32| {
        let pairs = || (0..24).flat_map(|a| (0..24).map(move |b| (a, b))).filter(|(a, b)| a != b);
        let row = |n: u32, (a, b): (u32, u32)| format!("{},{a},{b},64\n", n * gap_us);
        let rows = (0..40).flat_map(|n| pairs().map(move |pair| row(n, pair)));
        let rows: String = rows.collect();
        format!(
            "kind = \"trace\"\nflows_per_pair = 2\nflows = \"\"\"\nstart_us,from,to,bytes\n{rows}\"\"\"\n"
        )
    };
    let cases = [
        star(24, "swift", &trace(0)),
        star(24, "swift", &trace(1)),
        star(16, "swift", all_to_all),
        star(128, "swift", all_to_all),
        star(80, "bolt", all_to_all),
        star(80, "expresspass", all_to_all),
        star(80, "hpcc", all_to_all),
        star(12, "swift", one_op_each),
        star(12, "swift", many_ops),
        star(128, "swift", all_to_all).replace("star hosts=128", "fat-tree k=8"),
    ];
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|text| {
            let (measured, estimated) = measure(text);
            let ratio = estimated as f64 / measured as f64;
            let fits = (0.5..=2.0).contains(&ratio);
            (!fits).then(|| format!("estimated {estimated}, measured {measured}:\n{text}"))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
