//! Traffic and topology files of other simulators, run by the command.

use std::fs;

use crate::support::command::{apus as apus_in, folder, refused, succeeds, texts};
use serde_json::Value;

const FLOWS: &str = "2\n2 0 3 100 5000 0.0001\n4 2 3 100 1 0\nFirst line: number of flows\n";

/// In the format of the HPCC simulator: hosts 0, 2 and 4, switches 1 and 3.
const HPCC_TOPOLOGY: &str = "5 2 4\n1 3\n0 1 100Gbps 0.001ms 0\n2 1 100Gbps 0.001ms 0\n\
                             1 3 400Gbps 0.002ms 0\n3 4 100Gbps 0.001ms 0\n";

/// The files of the HPCC simulator run unchanged, and its scripts can read fct.txt.
#[test]
fn files_of_other_simulators_run_as_they_are() {
    let folder = folder("traffic");
    fs::write(folder.join("flow.txt"), FLOWS).expect("flows");
    fs::write(folder.join("topology.txt"), HPCC_TOPOLOGY).expect("topology");
    let traffic = ["run", "--traffic", "flow.txt", "--topology", "topology.txt"];
    let shown = succeeds(&apus_in(&folder, &[&traffic[..], &["--out", "out"]].concat()));
    assert!(shown.contains("2 ops done"), "{shown}");
    let times = fs::read_to_string(folder.join("out/fct.txt")).expect("fct.txt");
    let rows: Vec<Vec<&str>> = times.lines().map(|l| l.split(' ').collect()).collect();
    assert_eq!(rows.len(), 2, "{times}");
    // Node 4 sends 1 B to node 2 at the start; node 2 sends 5000 B to node 0 after 100 us.
    assert_eq!(rows[0][..6], ["0b000401", "0b000201", "10000", "100", "1", "0"]);
    assert_eq!(rows[1][..6], ["0b000201", "0b000001", "10000", "100", "5000", "100000"]);
    let number = |row: usize, column: usize| rows[row][column].parse::<f64>().expect("ns");
    assert!(number(1, 6) >= 4_000.0, "four links of 1 us: {times}");
    // The effective configuration needs neither file.
    fs::rename(folder.join("out/effective.toml"), folder.join("again.toml")).expect("rename");
    fs::remove_file(folder.join("flow.txt")).expect("remove");
    succeeds(&apus_in(&folder, &["run", "again.toml"]));

    refused(&apus_in(&folder, &traffic), "flow.txt: cannot be read");
    fs::write(folder.join("flow.txt"), "1\n2 0 3 100 5000\n").expect("flows");
    refused(&apus_in(&folder, &traffic), "flow.txt:2: 5 words; there must be six");
    fs::write(folder.join("flow.txt"), "1\n2 1 3 100 5000 0\n").expect("flows");
    refused(&apus_in(&folder, &traffic), "flow.txt:2: node 1 is not a host of the topology");
    refused(&apus_in(&folder, &["run", "--traffic", "flow.txt"]), "--topology");
    for (topology, message) in [
        ("star hosst=3 10Gbps 1us", "--topology star hosst=3 10Gbps 1us: unknown key"),
        ("absent.topo", "--topology absent.topo: cannot be used: the file"),
        ("star hosts=2 10Gbps 1us", "flow.txt:2: unknown host 2"),
    ] {
        let output = apus_in(&folder, &["run", "--traffic", "flow.txt", "--topology", topology]);
        refused(&output, message);
        let (_, stderr) = texts(&output);
        assert!(!stderr.contains("flow.toml"), "a file that does not exist is named: {stderr}");
    }
    let star = ["run", "--traffic", "flow.txt", "--topology", "star hosts=3 10Gbps 1us"];
    let shown = succeeds(&apus_in(&folder, &star));
    assert!(shown.contains("1 ops done"), "{shown}");
}

/// Two messages in each of three formats are measured from the first start to the last end, without the idle time
/// before and after.
#[test]
fn imported_traffic_is_measured_from_the_first_start_to_the_last_end() {
    let folder = folder("makespan");
    let files = [
        ("trace.csv", "start_us,from,to,bytes\n1000,0,1,100000\n1100,2,3,100000\n"),
        ("flow.txt", "2\n0 1 3 100 100000 0.001\n2 3 3 100 100000 0.0011\n"),
        (
            "matrix.cm",
            "Nodes 4\nConnections 2\n0->1 id 1 start 1000000000 size 100000\n\
             2->3 id 2 start 1100000000 size 100000\n",
        ),
    ];
    let run = |file: &str, more: &[&str]| {
        let star = ["run", "--traffic", file, "--topology", "star hosts=4 100Gbps 1us"];
        succeeds(&apus_in(&folder, &[&star[..], more].concat()))
    };
    let mut makespans = Vec::new();
    for (file, text) in files {
        fs::write(folder.join(file), text).expect("traffic");
        let number = |more: &[&str], pointer: &str| {
            let json: Value =
                serde_json::from_str(&run(file, &[&["--json"], more].concat())).expect("JSON");
            json["runs"][0].pointer(pointer).and_then(Value::as_f64).expect("a number")
        };
        let makespan = number(&[], "/makespan_us");
        // 100 us between the starts, and at least 8 us for 100 kB at 100 Gb/s.
        assert!((108.0..150.0).contains(&makespan), "{file}: {makespan}");
        let measured = number(&[], "/measured/seconds") * 1e6;
        assert!((measured - makespan).abs() < 1e-6, "{file}: {measured} us");
        let goodput = number(&[], "/goodput_gbps");
        assert!((goodput * makespan - 1600.0).abs() < 1e-6, "{file}: {goodput} Gb/s");
        let set = ["--set", "duration=5ms"];
        assert_eq!(
            number(&set, "/measured/seconds"),
            0.004,
            "{file}: a duration that is given counts"
        );
        assert_eq!(number(&set, "/makespan_us"), makespan, "{file}");
        let shown = run(file, &[]);
        assert!(shown.contains("makespan"), "{shown}");
        makespans.push(makespan);
    }
    assert!(makespans.iter().all(|makespan| *makespan == makespans[0]), "{makespans:?}");
}
