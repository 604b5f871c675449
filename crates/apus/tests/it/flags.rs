//! In every command, a flag that has no effect because of another flag or argument is an error that names both.

use std::fs;

use crate::support::command;
use crate::support::command::apus;
use crate::support::help;

/// An incast from two hosts to a third one.
const SCENARIO: &str = include_str!("support/incast.toml");

/// Command lines, and two words that the error must contain.
const CASES: &[(&str, [&str; 2])] = &[
    ("run mine.toml --topology no-such-file", ["--topology", "[FILE]"]),
    ("run mine.toml --topology no-such-file --traffic t.csv", ["FILE]", "--t"]),
    ("run mine.toml --traffic t.csv", ["--traffic", "[FILE]"]),
    ("run --traffic t.csv", ["--topology", "--traffic"]),
    ("run mine.toml --worst 3", ["--worst", "--out"]),
    ("run mine.toml --open", ["--open", "--out"]),
    // Standard error is not a terminal in tests.
    ("run mine.toml --live", ["--live", "terminal"]),
    ("run mine.toml --seed 1 --set seed=2", ["--set seed=2", "--seed replaces"]),
    ("whatif mine.toml --seed 1 --set seed=2", ["--set seed=2", "--seed replaces"]),
    ("emulate mine.toml --seed 1 --set seed=2", ["--set seed=2", "--seed replaces"]),
    (
        "run mine.toml --set algorithm.base_target=20us --set algorithm={name=\"dctcp\"}",
        ["--set algorithm.base_target", "`algorithm` replaces"],
    ),
    ("reproduce swift/fig17 --all", ["--all", "NAME"]),
    (
        "sweep mine.toml --out o --set duration=2ms --vary duration=1ms,2ms",
        ["--set duration=2ms", "--vary"],
    ),
    (
        "sweep mine.toml --out o --vary duration=1ms,2ms --vary duration=3ms",
        ["--vary duration", "twice"],
    ),
    ("sweep mine.toml --out o --merge a", ["FILE", "--merge"]),
    ("sweep --out o --merge a --vary duration=1ms,2ms", ["--vary", "--merge"]),
    ("sweep --out o --merge a --threads 2", ["--threads", "--merge"]),
    ("sweep --out o --merge a --watchdog off", ["--watchdog", "--merge"]),
    ("sweep --out o --merge a --shard 1/2", ["--shard", "--merge"]),
    ("diff a b --tolerance jain=1% --ignore jain", ["--tolerance jain", "--ignore jain"]),
    ("validate mine.toml --quick", ["--quick", "[quick]"]),
    (
        "tune mine.toml --set algorithm.base_target=20us",
        ["--set algorithm.base_target", "`apus tune`"],
    ),
    (
        "compare mine.toml --algorithms dctcp --set algorithm.base_target=20us",
        ["--set algorithm.base_target", "--algorithms dctcp"],
    ),
    ("compare mine.toml --algorithms swift --objective jain", ["--objective", "--tune-each"]),
    ("convert a.goal b.bin --to bin", ["--to", "b.bin"]),
    ("serve --insecure --key-file k", ["--insecure", "--key-file"]),
    ("ping localhost --insecure --peer-name a", ["--insecure", "--peer-name"]),
    ("perf localhost --insecure --peer-name a", ["--insecure", "--peer-name"]),
    ("serve --insecure --accept a", ["--insecure", "--accept"]),
    ("key a.key --name a --public", ["--name", "--public"]),
    ("key a.key --group b.key", ["--name", "--group"]),
    ("ping localhost --insecure --cipher aegis-128x", ["--insecure", "--cipher"]),
    ("perf localhost --insecure --interval 1ms", ["--out", "--interval"]),
    ("perf localhost --insecure --op fetch-add --size 8", ["--size 8", "remove --size"]),
    ("perf localhost --insecure --mode inline --engines 2", ["--mode inline", "--engines 2"]),
    ("serve --insecure --mode inline --engines 2", ["--mode inline", "--engines 2"]),
    (
        "serve --insecure --mode inline --listen 127.0.0.1:0 --listen [::1]:0",
        ["listen has 2 addresses", "inline"],
    ),
    ("serve --insecure --metrics-limit 3", ["--metrics-limit", "--metrics <"]),
    ("ping localhost --insecure --log off --log-format json", ["--log off", "--log-format"]),
    ("switch localhost --rate 1Gbps --param a=1", ["--algorithm", "--param"]),
    ("bench udp --listen 127.0.0.1:1 --peer localhost:1", ["--listen", "--peer"]),
    ("bench udp --listen 127.0.0.1:1 --json", ["--listen", "--json"]),
    ("bench udp --listen 127.0.0.1:1 --full", ["--listen", "--full"]),
    ("bench udp --listen 127.0.0.1:1 --turns 2", ["--listen", "--turns"]),
    ("bench udp --listen 127.0.0.1:1 --mtu 1500", ["--listen", "--mtu"]),
    ("bench udp --only writes --gap 0s", ["--only", "--gap"]),
    ("bench udp --listen 127.0.0.1:1 --duration 1s", ["--listen", "--duration"]),
];

/// Commands whose flags are independent of each other.
const INDEPENDENT: [&str; 10] = [
    "replay",
    "list",
    "explain",
    "schema",
    "help",
    "rerun",
    "job",
    "worlds",
    "report",
    "calibrate",
];

#[test]
fn void_flags_are_errors_that_name_both() {
    let folder = command::folder("flags");
    fs::write(folder.join("mine.toml"), SCENARIO).expect("file");
    fs::write(folder.join("t.csv"), "start_us,from,to,bytes\n0,0,1,1000\n").expect("file");
    for (line, names) in CASES {
        let words: Vec<&str> = line.split(' ').collect();
        if !command::is_built(&words) {
            continue;
        }
        let output = apus(&folder, &words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        for name in names {
            assert!(stderr.contains(name), "{line}: {name} is not in {stderr}");
        }
        assert!(output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn every_command_is_in_the_table() {
    for name in help::commands() {
        let tested = CASES.iter().any(|(line, _)| line.split(' ').next() == Some(name.as_str()));
        assert!(tested || INDEPENDENT.contains(&name.as_str()), "`{name}` has no case");
    }
}
