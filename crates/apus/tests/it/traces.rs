//! Traces of simulated runs: captures, qlog and timelines, read by other programs.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::command;

/// Three messages to host 2, all of which end: at the end of the run each packet has reached the end of its link.
const TRAFFIC: &str = "start_us,from,to,bytes\n0,0,2,64000\n1,1,2,64000\n2,0,2,1000\n";

fn run(folder: &Path, more: &[&str]) {
    fs::write(folder.join("t.csv"), TRAFFIC).expect("file");
    let star = "star hosts=3 100Gbps 1us";
    let arguments = ["run", "--traffic", "t.csv", "--topology", star, "--out", "out"];
    let output = command::apus(folder, &[&arguments, more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns a table as a map from the key column to the row; rows map column names to cells.
fn table(path: &Path, key: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let text = fs::read_to_string(path).expect("a table");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers().expect("names").iter().map(str::to_owned).collect();
    let row = |record: csv::StringRecord| -> BTreeMap<String, String> {
        names.iter().cloned().zip(record.iter().map(str::to_owned)).collect()
    };
    let rows = reader.records().map(|record| row(record.expect("a record")));
    rows.map(|row| (row[key].clone(), row)).collect()
}

/// Returns the fields of each packet as decoded by tshark with our dissector; `None` without tshark.
fn tshark(file: &Path, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let dissector = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/wireshark/apus.lua");
    let mut command = Command::new("tshark");
    command.args(["-X", &format!("lua_script:{}", dissector.display())]);
    command.arg("-r").arg(file).args(["-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

const RECORD: [&str; 4] = [
    "--set",
    "record.packets=[\"switch 0 -> host 2\", \"host 2 -> *\"]",
    "--set",
    "record.events=3",
];

/// The capture has each packet that the tables count, and tshark decodes the flow, number and length of each packet.
#[test]
fn a_capture_of_simulated_packets_is_dissected() {
    let folder = command::folder("trace-packets");
    run(&folder, &RECORD);
    let ports = table(&folder.join("out/ports.csv"), "port");
    let count = |port: &str| ports[port]["sent_packets"].parse::<usize>().expect("a count");
    let fields = [
        "frame.interface_name",
        "_ws.col.Protocol",
        "apus.kind",
        "apus.length",
        "ip.src",
        "ip.dst",
        "ip.dsfield.ecn",
        "_ws.expert",
    ];
    let Some(packets) = tshark(&folder.join("out/packets.pcapng"), &fields) else {
        // The output of `eprintln` in a passing test is hidden.
        let _ = writeln!(std::io::stderr(), "skipped: tshark is not installed");
        return;
    };
    assert!(packets.iter().all(|packet| packet[1] == "Apus"), "{packets:?}");
    assert!(packets.iter().all(|packet| packet[7].is_empty()), "{packets:?}");
    let of = |port| packets.iter().filter(move |packet| packet[0] == port);
    let (there, back) = ("switch 0 -> host 2", "host 2 -> switch 0");
    assert_eq!(of(there).count(), count(there));
    assert_eq!(of(back).count(), count(back));
    // Without loss, every byte of the messages passes exactly once.
    let bytes: u64 = of(there).map(|packet| packet[3].parse::<u64>().expect("a length")).sum();
    assert_eq!(bytes, 64_000 + 64_000 + 1000);
    assert!(of(there).all(|packet| packet[2] == "0x01" && packet[5] == "10.0.0.2"));
    assert!(of(back).all(|packet| packet[2] == "0x05" && packet[4] == "10.0.0.2"));
}

/// A trace does not change the results, and results without a trace remove it.
#[test]
fn a_trace_changes_no_result_and_is_removed_with_the_next_run() {
    let folder = command::folder("trace-results");
    run(&folder, &RECORD);
    let traced = fs::read(folder.join("out/summary.json")).expect("results");
    assert!(folder.join("out/packets.pcapng").exists());
    run(&folder, &[]);
    assert_eq!(fs::read(folder.join("out/summary.json")).expect("results"), traced);
    assert!(!folder.join("out/packets.pcapng").exists());
    assert!(!folder.join("out/qlog").exists());
}

/// Each flow's file is a JSON text sequence (RFC 7464); its packets are those that the table of flows counts.
#[test]
fn flows_are_traced_as_qlog() {
    let folder = command::folder("trace-flows");
    run(&folder, &RECORD);
    let flows = table(&folder.join("out/flows.csv"), "flow");
    assert_eq!(flows.len(), 3);
    for (flow, row) in flows {
        let path = folder.join(format!("out/qlog/flow-{flow}.sqlog"));
        let text = fs::read_to_string(path).expect("a file");
        let mut records = text.split('\u{1e}').skip(1).map(|record| {
            assert!(record.ends_with('\n'));
            serde_json::from_str::<Value>(record).expect("JSON")
        });
        let header = records.next().expect("a header");
        assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
        assert_eq!(header["trace"]["vantage_point"]["type"], "client");
        let clock = &header["trace"]["common_fields"]["reference_time"];
        assert_eq!(clock["clock_type"], "simulated");
        let events: Vec<Value> = records.collect();
        let times: Vec<f64> = events.iter().filter_map(|event| event["time"].as_f64()).collect();
        assert!(times.len() == events.len() && times.is_sorted());
        let named = |name: &str| events.iter().filter(|e| e["name"] == name).count();
        assert_eq!(named("apus:connection_started"), 1);
        assert_eq!(named("apus:packet_sent").to_string(), row["packets_sent"]);
        // An acknowledgement with a delay sample shows the state of the algorithm.
        let states = named("apus:recovery_metrics_updated");
        assert!((1..=named("apus:packet_received")).contains(&states), "{states}");
        let lengths = events.iter().filter(|event| event["name"] == "apus:packet_sent");
        let sum: u64 =
            lengths.filter_map(|event| event["data"]["frames"][0]["length"].as_u64()).sum();
        assert_eq!(sum.to_string(), row["delivered_bytes"]);
    }
}

/// `tools/check-formats` reads the timeline with Perfetto's own schema.
#[test]
fn a_timeline_is_written_on_request() {
    let folder = command::folder("trace-timeline");
    run(&folder, &["--timeline"]);
    let timeline = fs::read(folder.join("out/timeline.perfetto-trace")).expect("a timeline");
    // A message of type `Trace` starts with the key of field 1, which is itself a message.
    assert_eq!(timeline[0], 0x0a);
    run(&folder, &[]);
    assert!(!folder.join("out/timeline.perfetto-trace").exists());
}

#[test]
fn settings_of_a_trace_without_effect_are_errors() {
    let folder = command::folder("trace-errors");
    let scenario = include_str!("support/incast.toml");
    fs::write(folder.join("mine.toml"), scenario).expect("file");
    for (setting, part) in [
        ("record.packets=[\"switch 0 -> host 99\"]", "names no port"),
        ("record.packets=[]", "the list is empty"),
        ("record.most_packets=5", "without `packets`"),
        ("record.most_events=5", "without `events`"),
    ] {
        let output = command::apus(&folder, &["run", "mine.toml", "--set", setting]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{setting}: {stderr}");
        assert!(stderr.contains(part), "{setting}: {stderr}");
    }
}
