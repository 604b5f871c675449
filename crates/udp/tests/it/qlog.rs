//! Records of connections, read by the rules of draft-ietf-quic-qlog-main-schema-12 and RFC 7464.

use std::fs;
use std::path::{Path, PathBuf};

use apus_udp::qlog::EVENT_SCHEMA;
use apus_udp::{Access, Host, Qlog, Request};
use serde_json::Value;

use crate::support::{Faults, Relay, SHARED, config, host, steady, until};

/// A directory of this test, which is removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("apus-qlog-{name}-{}", std::process::id())))
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("a directory");
        let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        files
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Reads a record: its header, and its events as (name without namespace, data).
fn read(file: &Path) -> (Value, Vec<(String, Value)>) {
    let text = fs::read_to_string(file).expect("UTF-8");
    // RFC 7464 §2.2: each text follows a record separator and ends with a line feed.
    let mut texts = text.split('\u{1e}');
    assert_eq!(texts.next(), Some(""));
    let mut values = texts.map(|text| {
        assert_eq!(text.find('\n'), Some(text.len() - 1), "{text}");
        serde_json::from_str::<Value>(text).expect(text)
    });
    // §5 and §4: the members of QlogFileSeq and TraceSeq.
    let header = values.next().expect("a header");
    assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(header["serialization_format"], "application/qlog+json-seq");
    let trace = &header["trace"];
    assert_eq!(trace["event_schemas"], serde_json::json!([EVENT_SCHEMA]));
    let fields = &trace["common_fields"];
    assert_eq!(fields["time_format"], "relative_to_epoch");
    // §7.1: a monotonic clock has an unknown epoch.
    assert_eq!(fields["reference_time"]["clock_type"], "monotonic");
    assert_eq!(fields["reference_time"]["epoch"], "unknown");
    let date = fields["reference_time"]["wall_clock_time"].as_str().expect("a date");
    assert!(date.len() == 24 && date.starts_with("20") && date.ends_with('Z'), "{date}");
    let events = values
        .map(|event| {
            assert!(event["time"].as_f64().expect("milliseconds") >= 0.0, "{event}");
            assert!(event["data"].is_object(), "{event}");
            let (namespace, name) =
                event["name"].as_str().and_then(|n| n.split_once(':')).expect("a name");
            assert_eq!(namespace, "apus");
            (name.to_owned(), event["data"].clone())
        })
        .collect();
    (header, events)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("a number: {value}"))
}

fn with<'e>(events: &'e [(String, Value)], name: &str) -> Vec<&'e Value> {
    events.iter().filter(|(n, _)| n == name).map(|(_, data)| data).collect()
}

#[test]
fn a_record_has_every_packet_and_loss_and_swifts_state() {
    let directory = Directory::new("losses");
    let mut settings = config(SHARED);
    settings.qlog = Some(Qlog::new(&directory.0).expect("a directory"));
    let (server, client) = (host(config(SHARED)), host(settings));
    let region = server.register(vec![0; 100_000], Access::ALL).expect("region");
    let relay = Relay::new(server.local_addr(), Faults { loss: 50, ..Faults::default() }, 3);
    let here = client.connect(relay.address).expect("connect");
    let lost = || {
        let (_, counters) = here.flow_state(0).expect("connected");
        counters.fast_losses + counters.timeout_losses
    };
    while lost() == 0 {
        let write = Request::write(region.key(), 0, vec![1; 100_000]);
        here.submit(write).expect("room").wait().expect("written");
    }
    let (_, counters) = here.flow_state(0).expect("connected");
    let peer = here.peer();
    drop(here);
    drop(client);
    let files = directory.files();
    let (header, events) = read(&files[0]);
    assert_eq!((files.len(), &header["trace"]["vantage_point"]["type"]), (1, &"client".into()));
    let started = with(&events, "connection_started");
    assert_eq!((&started[0]["remote"]["port"], started.len()), (&peer.port().into(), 1));
    let data = |name| {
        let all = with(&events, name).into_iter();
        all.filter(|event| event["header"]["packet_type"] == "data").collect::<Vec<_>>()
    };
    let sent: Vec<u64> =
        data("packet_sent").iter().map(|e| number(&e["header"]["packet_number"])).collect();
    // Every transmission has a fresh packet number.
    assert!(sent.is_sorted_by(|a, b| a < b));
    assert!(sent.len() as u64 >= counters.packets_sent, "{} of {counters:?}", sent.len());
    for event in data("packet_sent") {
        let (raw, frame) = (&event["raw"], &event["frames"][0]);
        assert_eq!(frame["frame_type"], "write");
        assert_eq!(number(&raw["payload_length"]), number(&frame["length"]));
        assert!(number(&raw["length"]) > number(&raw["payload_length"]));
    }
    let losses = with(&events, "packets_lost");
    let packets: u64 = losses.iter().map(|event| number(&event["packets"])).sum();
    assert!(packets >= counters.fast_losses + counters.timeout_losses, "{losses:?}");
    assert!(losses.iter().all(|e| {
        ["reordering_threshold", "pto_expired"].contains(&e["trigger"].as_str().expect("a trigger"))
    }));
    let acks = with(&events, "packet_received");
    assert!(acks.iter().any(|event| event["frames"][0]["frame_type"] == "ack"));
    let metrics = with(&events, "recovery_metrics_updated");
    for name in [
        "smoothed_rtt",
        "congestion_window_packets",
        "fabric_window_packets",
        "endpoint_window_packets",
        "target_delay",
    ] {
        assert!(metrics.iter().any(|event| event[name].as_f64() > Some(0.0)), "{name}");
    }
    assert_eq!(events.last().map(|(name, _)| &**name), Some("connection_closed"));
}

#[test]
fn a_record_that_cannot_be_made_takes_no_place_of_another() {
    let directory = Directory::new("missing");
    let qlog = Qlog::new(&directory.0).expect("a directory").max_connections(1);
    let (server, client) = (host(steady(SHARED)), host(steady(SHARED)));
    let connect = || client.connect(server.local_addr()).expect("connect");
    fs::remove_dir(&directory.0).expect("empty");
    let failed = connect();
    failed.record(&qlog);
    // The engine executes commands in order, so the record has failed when this command returns.
    failed.flow_state(0).expect("connected");
    drop(failed);
    fs::create_dir(&directory.0).expect("a directory");
    let here = connect();
    here.record(&qlog);
    here.flow_state(0).expect("connected");
    assert_eq!(directory.files().len(), 1);
}

#[test]
fn a_single_connection_is_recorded_on_request_within_its_size() {
    let directory = Directory::new("ring");
    let most = 256 << 10;
    let qlog = Qlog::new(&directory.0).expect("a directory").max_bytes(most).max_connections(1);
    let (server, client) = (host(steady(SHARED)), host(steady(SHARED)));
    let others: Vec<Host> = (0..2).map(|_| host(steady(SHARED))).collect();
    let here = client.connect(server.local_addr()).expect("connect");
    here.record(&qlog);
    here.record(&qlog);
    // The engine executes commands in order, so the record has begun when this command returns.
    here.flow_state(0).expect("connected");
    for other in &others {
        // The maximum number of connections is recorded.
        other.connect(server.local_addr()).expect("connect").record(&qlog);
    }
    until("both files are there", || {
        let message = Request::message(vec![1; 64]);
        here.submit(message).expect("room").wait().expect("delivered");
        server.try_accept().is_some_and(|there| {
            std::thread::spawn(move || while there.receive().is_ok() {});
            false
        }) || directory.files().len() == 2
    });
    drop(here);
    drop(client);
    let files = directory.files();
    assert_eq!(files.len(), 2, "{files:?}");
    let sizes: Vec<u64> = files.iter().map(|f| fs::metadata(f).expect("a file").len()).collect();
    assert!(sizes.iter().sum::<u64>() <= most, "{sizes:?}");
    let (previous, current) = (read(&files[0]), read(&files[1]));
    assert!(files[0].to_string_lossy().ends_with(".previous.sqlog"));
    assert_eq!(previous.0, current.0, "each file can be read alone");
    assert_eq!(current.1.last().map(|(name, _)| &**name), Some("connection_closed"));
    // No event is missing between the two records.
    let numbers: Vec<u64> = [&previous.1, &current.1]
        .into_iter()
        .flat_map(|events| with(events, "packet_sent"))
        .filter(|event| event["header"]["packet_type"] == "data")
        .map(|event| number(&event["header"]["packet_number"]))
        .collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
}
