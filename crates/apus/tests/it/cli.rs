//! The small commands as processes: what `list`, `bench` and `key` print, write and refuse.

use std::fs;
use std::path::Path;

use crate::support::command::{apus as apus_in, folder, refused, succeeds};
use serde_json::Value;

#[test]
fn list_names_what_there_is() {
    for (what, parts) in [
        ("scenarios", &["swift/table3", "swift/fig17", "swift/fig20", "bench/incast-100"][..]),
        ("experiments", &["swift/table3", "swift/fig17", "swift/fig20"]),
        ("algorithms", &["swift", "dctcp", "constant"]),
        ("policies", &["ecmp", "plb", "reps", "adaptive", "round-robin"]),
        ("topologies", &["star", "dumbbell", "leaf-spine", "fat-tree"]),
        ("workloads", &["incast", "permutation", "all-to-all", "flows"]),
        ("metrics", &["fabric_rtt_us.mean", "throughput_gbps"]),
    ] {
        let stdout = succeeds(&apus_in(Path::new("/"), &["list", what]));
        for part in parts {
            assert!(stdout.lines().any(|line| line.starts_with(part)), "{part}: {stdout}");
        }
        // Benchmarks, contests and real runs are not experiments.
        let others = ["bench/", "contest/", "real/"];
        let other = |line: &str| others.iter().any(|other| line.starts_with(other));
        assert!(what != "experiments" || !stdout.lines().any(other), "{stdout}");
    }
}

/// Every kind of class port has a single queue here, so that a benchmark sends the same packets with each kind.
#[test]
fn bench_times_every_kind_of_class_port() {
    let case = ["bench", "incast-100", "--set", "duration=1ms", "--repeat", "1", "--warm-up", "0"];
    let measured = |ports: &str| -> (Value, Value) {
        let more = [ports, "--json"];
        let shown = succeeds(&apus_in(Path::new("/"), &[&case[..], &more[..]].concat()));
        let report: Value = serde_json::from_str(&shown).expect("JSON");
        let case = &report["cases"][0];
        (case["packet_hops"].clone(), case["events"].clone())
    };
    let (strict, general) = (measured("--class-ports"), measured("--class-ports=general"));
    assert_eq!(strict, measured("--class-ports=strict"));
    assert_eq!(strict, measured("--class-ports=weighted"), "one class has all of the weight");
    assert_eq!(strict.0, general.0, "packet-hops");
    assert!(general.1.as_u64() > strict.1.as_u64(), "general ports have events of their own");
    refused(&apus_in(Path::new("/"), &["bench", "--class-ports=fifo"]), "general");
    refused(&apus_in(Path::new("/"), &["bench", "--threads", "1024"]), "cores");
}

/// The version names the build in the same form as results do: `apus 0.1.0+` and 16 digits of a hash of the sources.
#[test]
fn version_names_the_build() {
    let shown = succeeds(&apus_in(Path::new("/"), &["--version"]));
    assert_eq!(shown, format!("apus {}\n", apus::api::BUILD));
    let hash = shown.trim_end().strip_prefix(concat!("apus ", env!("CARGO_PKG_VERSION"), "+"));
    let hash = hash.expect("the version of the package and a hash");
    assert!(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{shown}");
}

#[cfg(feature = "real")]
#[test]
fn key_makes_a_key_once() {
    let folder = folder("key");
    let stdout = succeeds(&apus_in(&folder, &["key", "group.key"]));
    let text = fs::read_to_string(folder.join("group.key")).expect("key file");
    let line = text.lines().last().expect("a key");
    assert!(line.starts_with("apus-key-1 ") && line.len() == 11 + 64, "a secret of 32 bytes");
    assert!(!stdout.contains(&line[11..]), "the secret is not shown");
    refused(&apus_in(&folder, &["key", "group.key"]), "group.key: the file exists");
    refused(&apus_in(&folder, &["key", "nowhere/x.key"]), "nowhere/x.key: the key file cannot be");
}

/// Sparse files that are one byte longer than the limit for reading.
#[test]
fn files_that_would_fill_the_memory_are_refused() {
    let folder = folder("long");
    for (name, bytes) in [("long.toml", (64u64 << 20) + 1), ("long.goal", (4 << 30) + 1)] {
        let file = fs::File::create(folder.join(name)).expect("a file");
        file.set_len(bytes).expect("a hole");
    }
    let data = "it is larger than the limit of 4096 MiB";
    let star = "star hosts=8 100Gbps 1us";
    for (arguments, message) in [
        (&["run", "long.toml"][..], "it is larger than the limit of 64 MiB"),
        (&["job", "long.goal"], data),
        (&["convert", "long.goal", "short.goal"], data),
        (&["diff", "long.goal", "long.goal"], data),
        (&["run", "--traffic", "long.goal", "--topology", star], data),
    ] {
        refused(&apus_in(&folder, arguments), message);
    }
    // The files would be written in full if the folder were copied.
    fs::remove_dir_all(folder).expect("files");
}
