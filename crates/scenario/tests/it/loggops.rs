//! `host.model = "loggops"`: GOAL schedules take the times that LogGOPSim prints.

use std::fs;
use std::path::Path;

use apus_scenario::Simulation;

use crate::support::{assert_reads_back, good, read, run_scenario};

/// Name, number of ranks, and the time in us that LogGOPSim 76451de prints for the last rank with its default
/// parameters (run on 2026-11-22).
const SAMPLES: [(&str, u32, f64); 7] = [
    ("allreduce_ring_8", 8, 88_157.3),
    ("allreduce_recdoub_8", 8, 11_043.012),
    ("allreduce_2groups_4", 8, 3_719.364),
    ("alltoall_w2_8", 8, 16_026.322),
    ("bcast_16", 16, 1_600.84),
    ("binary_tree_32", 32, 27.5),
    ("incast_9", 9, 48_015.952),
];

/// A scenario of a sample. The fabric is faster than the model: 1 us, and 400 Gb/s instead of 1.3 Gb/s.
fn scenario(name: &str, hosts: u32, host: &str, algorithm: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jobs/tests/data");
    let operations = fs::read_to_string(folder.join(format!("{name}.goal"))).expect(name);
    format!(
        "duration = \"1s\"\n\
         topology = \"star hosts={hosts} 400Gbps 500ns buffer=64MiB\"\n\
         algorithm = {{ {algorithm} }}\n\
         host = {{ model = \"loggops\"{host} }}\n\
         [[workload]]\nkind = \"job\"\noperations = '''\n{operations}'''\n"
    )
}

#[test]
fn goal_samples_take_the_times_that_loggopsim_prints_exactly() {
    for (name, ranks, expected) in SAMPLES {
        for algorithm in ["name = \"constant\", window = 64", "name = \"swift\""] {
            let summary = run_scenario(&scenario(name, ranks, "", algorithm));
            let job = summary.jobs.first().expect("a job");
            assert_eq!((job.unfinished, job.unexpected), (0, 0), "{name}");
            let time = job.completion_us.expect("ends");
            assert!((time - expected).abs() < 1e-6, "{name}, {algorithm}: {time}, not {expected}");
        }
    }
}

/// In each of 14 steps the stream of a rank first sends 1 MiB, for o + (s-1)O. The neighbour's message, which
/// left at the same time, arrives in the meantime and then occupies the stream for o + (s-1) max(O, G).
#[test]
fn parameters_of_the_model_are_keys_of_the_host() {
    let host = ", latency = \"3us\", overhead = \"1us\", overhead_per_byte = \"250ps\", gap = \"2us\", gap_per_byte = \"500ps\", eager = \"1KiB\"";
    let text = scenario("allreduce_ring_8", 8, host, "name = \"constant\", window = 64");
    let summary = run_scenario(&text);
    let expected = 14.0 * ((1.0 + 0.25 * 1_048_575e-3) + (1.0 + 0.5 * 1_048_575e-3));
    let time = summary.jobs[0].completion_us.expect("ends");
    assert!((time - expected).abs() < 1e-6, "{time}, not {expected}");
    assert_reads_back(&good(&text));
}

#[test]
fn settings_of_the_model_without_effect_are_errors() {
    let problem = |text: &str| read(text).expect_err("refused").to_string();
    let sample = |host: &str| scenario("incast_9", 9, host, "name = \"swift\"");
    let ideal = sample(", gap = \"1us\"").replace("loggops", "ideal");
    assert!(problem(&ideal).contains("host.gap` has no effect without the model \"loggops\""));
    let done = sample("") + "done = \"local\"\n";
    assert!(problem(&done).contains("has no effect with `host.model = \"loggops\"`"));
    let engine = sample(", engine = { batch = 1 }");
    assert!(problem(&engine).contains("host.engine` has no effect"), "{}", problem(&engine));
    let (alone, _) = done.split_once("[[workload]]").expect("workload");
    let incast = format!("{alone}[[workload]]\nkind = \"incast\"\nsize = \"1MB\"\nreceiver = 0\n");
    assert!(problem(&incast).contains("has no effect without a job"), "{}", problem(&incast));
    let external = format!("{alone}[[workload]]\nkind = \"external\"\n");
    assert!(problem(&external).contains("do not run"), "{}", problem(&external));
}

/// The sum of the times of all operations exceeds the range of times, but the sum of one rank does not.
#[test]
fn a_job_of_many_ranks_may_take_hours() {
    let rank = |rank: u32| format!("rank {rank} {{\nl1: calc 10800000000000\n}}\n");
    let ranks: String = (0..2048).map(rank).collect();
    let text = scenario("incast_9", 2048, "", "name = \"swift\"");
    let (settings, _) = text.split_once("operations").expect("a job");
    let long = settings.replace("\"1s\"", "\"11000s\"");
    let scenario = good(&format!("{long}operations = '''\nnum_ranks 2048\n{ranks}'''\n"));
    let plan = scenario.runs[0].setup.plan().expect("a plan");
    Simulation::new(&plan).map(drop).expect("a simulation");
}
