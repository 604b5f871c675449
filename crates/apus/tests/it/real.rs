//! The commands of the real transport, as processes on the loopback interface.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::Ordering;

use apus_sim::columns::{FlowRow, OpRow, SampleRow, Table};
use apus_udp::session::KeyRing;
use apus_udp::{Access, Config, Connection, End, Host, Mode, Region, Request};

use crate::support::server::{Server, serve};
use crate::support::{interrupt, until};

fn apus(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str], security: &[&str]) -> Output {
    apus(arguments).args(security).output().expect("run")
}

fn number(json: &[u8], name: &str) -> f64 {
    let json: serde_json::Value = serde_json::from_slice(json).expect("JSON");
    json[name].as_f64().unwrap_or_else(|| panic!("{name} in {json}"))
}

fn fresh(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("apus-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

/// Returns these columns of ops.csv; their cells contain no quotes.
fn op_columns<const N: usize>(tables: &Path, columns: [&str; N]) -> Vec<[String; N]> {
    let table = fs::read_to_string(tables.join("ops.csv")).expect("ops.csv");
    let all = Table::of::<OpRow>();
    let indices =
        columns.map(|column| all.names().position(|name| name == column).expect("a column"));
    let cell = |row: &str, index| row.split(',').nth(index).expect("a field").to_owned();
    table.lines().skip(1).map(|row| indices.map(|index| cell(row, index))).collect()
}

#[test]
fn two_processes_with_a_key_exchange_messages_writes_and_reads() {
    let file = fresh("key");
    let path = file.to_str().expect("a path");
    assert!(run(&["key", path], &[]).status.success());
    let again = run(&["key", path], &[]);
    assert_eq!(again.status.code(), Some(2), "a key is never overwritten");
    let security = ["--key-file", path];
    let server = serve(&security);

    let ping = run(&["ping", &server.address, "--count", "50", "--json"], &security);
    assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stderr));
    assert_eq!(number(&ping.stdout, "count"), 50.0);
    assert!(number(&ping.stdout, "p50_us") <= number(&ping.stdout, "p99_us"));
    assert!(number(&ping.stdout, "fabric_p50_us") > 0.0);

    for (op, size) in
        [("write", &["--size", "20000"][..]), ("read", &["--size", "20000"]), ("fetch-add", &[])]
    {
        let perf =
            ["perf", &server.address, "--op", op, "--duration", "2s", "--flows", "2", "--json"];
        let perf = run(&[&perf[..], size].concat(), &security);
        assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
        assert!(number(&perf.stdout, "goodput_gbps") > 0.0);
    }
    // Ops that are smaller than a packet: the payload is that of a full packet, in whole words.
    let small =
        ["perf", &server.address, "--duration", "1s", "--size", "64", "--mtu", "1280", "--json"];
    let small = run(&small, &security);
    assert!(small.status.success(), "{}", String::from_utf8_lossy(&small.stderr));
    let payload = (1280 - Config::mtu_for(0)) / 8 * 8;
    assert_eq!(number(&small.stdout, "packet_bytes"), f64::from(payload));
    // The tables have the simulator's columns, and each row has as many fields as the header.
    let (tables, pcap) = (fresh("tables"), fresh("pcap"));
    let (out, capture) = (tables.to_str().expect("a path"), pcap.to_str().expect("a path"));
    let perf = ["perf", &server.address, "--duration", "2s", "--size", "20000", "--flows", "2"];
    let perf = run(&[&perf[..], &["--json", "--out", out, "--pcap", capture]].concat(), &security);
    assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
    // Ops per flow that ended in the measured time, counted from the table of ops, and their Jain index by its formula.
    // Times have a resolution of 1 ns; the conversion from seconds to microseconds may round down.
    let end = number(&perf.stdout, "seconds") * 1e6 + 0.0005;
    let mut ops = [0.0; 2];
    for [flow, complete] in op_columns(&tables, ["flow", "complete_us"]) {
        // Ops that ended in the drain have later times, and unfinished ops have none.
        if complete.parse().is_ok_and(|complete: f64| complete <= end) {
            ops[flow.parse::<usize>().expect("a flow")] += 1.0;
        }
    }
    let [a, b]: [f64; 2] = ops;
    assert_eq!(number(&perf.stdout, "ops"), a + b);
    let jain = (a + b).powi(2) / (2.0 * (a * a + b * b));
    assert!((number(&perf.stdout, "jain") - jain).abs() < 1e-9, "{ops:?}");
    let (ops, flows, samples) =
        (Table::of::<OpRow>(), Table::of::<FlowRow>(), Table::of::<SampleRow>());
    for (table, least) in [(ops, 1), (flows, 2), (samples, 2)] {
        let text = fs::read_to_string(tables.join(table.file)).expect(table.file);
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some(&*table.names().collect::<Vec<_>>().join(",")),
            "{}",
            table.file
        );
        let rows: Vec<&str> = lines.collect();
        assert!(rows.len() >= least, "{} has {} rows", table.file, rows.len());
        for row in rows {
            assert_eq!(row.split(',').count(), table.columns.len(), "{}: {row}", table.file);
        }
    }
    assert_eq!(fs::read(&pcap).expect("a capture")[..4], [0x0a, 0x0d, 0x0d, 0x0a], "a pcapng file");
    fs::remove_dir_all(tables).expect("the tables");
    fs::remove_file(pcap).expect("the capture");
    fs::remove_file(file).expect("the key file");
}

#[test]
fn a_server_and_a_client_of_several_engines_find_each_other() {
    let security = ["--insecure", "--engines", "3"];
    let server = serve(&security);
    for _ in 0..4 {
        let ping = run(&["ping", &server.address, "--count", "3", "--json"], &security);
        assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stderr));
    }
    let inline = run(&["ping", &server.address, "--mode", "inline"], &security);
    assert_eq!(inline.status.code(), Some(2));
    let why = String::from_utf8_lossy(&inline.stderr);
    assert!(why.contains("--engines 3") && why.contains("--mode inline"), "{why}");
}

#[test]
fn wrong_settings_are_wrong_input_and_parameters_of_the_default_can_be_set() {
    for wrong in [&["bench", "udp", "--mtu", "100"][..], &["ping", "127.0.0.1", "--mtu", "100"]] {
        assert_eq!(run(wrong, &["--insecure"]).status.code(), Some(2), "{wrong:?}");
    }
    let unknown = run(&["ping", "127.0.0.1", "--param", "base_targt=1us"], &["--insecure"]);
    assert_eq!(unknown.status.code(), Some(2));
    let server = serve(&["--insecure"]);
    let target = ["ping", &server.address, "--count", "3", "--param", "base_target=50us"];
    let said = run(&target, &["--insecure"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn too_many_ops_under_way_are_refused_before_the_directory_is_emptied() {
    let dir = fresh("too-many-ops");
    fs::create_dir(&dir).expect("a directory");
    fs::write(dir.join("manifest.toml"), "old").expect("a file");
    let out = dir.to_str().expect("a path");
    for outstanding in ["1048577", "18446744073709551615"] {
        let said = run(&["perf", "127.0.0.1:1", "--outstanding", outstanding, "--out", out], &[]);
        let why = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{why}");
        assert!(why.contains("at most 1048576 ops"), "{why}");
        assert!(dir.join("manifest.toml").exists());
    }
    fs::remove_dir_all(dir).expect("the directory");
}

#[test]
fn a_cipher_is_chosen_by_name_and_refused_by_name() {
    let file = fresh("cipher-key");
    let path = file.to_str().expect("a path");
    assert!(run(&["key", path], &[]).status.success());
    let server = serve(&["--key-file", path, "--cipher", "aegis-128x"]);
    let ping = |security: &[&str]| run(&["ping", &server.address, "--count", "3"], security);
    let said = ping(&["--key-file", path, "--cipher", "aegis-128x"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    for (security, code, words) in [
        (&["--key-file", path][..], 1, "the peer does not accept the cipher aes-256-gcm"),
        (&["--key-file", path, "--cipher", "aegis-128"], 2, "did you mean `aegis-128x`?"),
        (&["--insecure", "--cipher", "aegis-128x"], 2, "--insecure"),
    ] {
        let said = ping(security);
        let why = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(code), "{security:?}: {why}");
        assert!(why.contains(words), "{why}");
    }
    fs::remove_file(file).expect("the key file");
}

#[test]
fn insecure_mode_is_explicit_and_says_so() {
    let server = serve(&["--insecure"]);
    let silent = run(&["ping", &server.address], &[]);
    assert_eq!(silent.status.code(), Some(2), "neither key nor --insecure");
    let why = String::from_utf8_lossy(&silent.stderr);
    assert!(why.contains("`apus key FILE`") && why.contains("--insecure"), "{why}");
    let said = run(&["ping", &server.address, "--count", "3", "--mode", "inline"], &["--insecure"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(String::from_utf8_lossy(&said.stderr).contains("not encrypted"));
}

/// Starts `apus switch` in front of a server; it ends with the test.
fn switch(server: &str, arguments: &[&str]) -> Server {
    let mut command = apus(&["switch", server, "--bind", "127.0.0.1:0"]);
    let mut child = command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("switch");
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().expect("stderr")).read_line(&mut line).expect("a line");
    let words: Vec<&str> = line.split(' ').collect();
    let [_, _, address, ..] = words[..] else { panic!("{line}") };
    let address = address.to_owned();
    Server::of(child, address)
}

#[test]
fn bolt_runs_through_a_switch_that_signals_and_limits_the_rate() {
    let bolt = ["--insecure", "--algorithm", "bolt"];
    let server = serve(&bolt);
    let ports = ["--rate", "100Mbps", "--buffer", "1MB", "--delay", "10us"];
    let mut switch = switch(&server.address, &[&ports[..], &bolt[1..], &["--json"]].concat());
    for op in ["write", "read"] {
        let perf = ["perf", &switch.address, "--op", op, "--duration", "1s", "--json"];
        let perf = run(&perf, &bolt);
        assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
        let goodput = number(&perf.stdout, "goodput_gbps");
        assert!(goodput < 0.1, "{goodput} Gb/s through ports of 0.1 Gb/s");
    }
    interrupt(&switch.child);
    assert!(switch.child.wait().expect("its end").success());
    let mut text = String::new();
    switch.child.stdout.take().expect("stdout").read_to_string(&mut text).expect("results");
    let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(results["clients"], 2, "{results}");
    for port in [&results["to_server"], &results["to_clients"]] {
        assert!(port["signals"].as_u64() > Some(0), "{results}");
        assert!(port["max_queue_bytes"].as_u64() > Some(10_000), "{results}");
        let drops = port["drops"].as_object().expect("causes").values();
        let drops: u64 = drops.map(|count| count.as_u64().expect("a count")).sum();
        let (received, sent) = (port["received"].as_u64(), port["sent"].as_u64());
        assert!(
            received > Some(0) && sent > Some(0) && drops <= received.unwrap_or(0),
            "{results}"
        );
    }
}

#[test]
fn a_switch_refuses_impossible_settings() {
    let cases = [
        (&["--rate", "0bps"][..], "the rate is 0"),
        (&["--rate", "1Gbps", "--buffer", "1kB"], "the buffer of 1kB has no room"),
        (&["--rate", "1Gbps", "--algorithm", "bolt", "--param", "ccthreshold=1"], "cc_threshold"),
        (&["--rate", "1Gbps", "--algorithm", "expresspass"], "limit credits"),
        (&["--rate", "1Gbps", "--algorithm", "dctcp"], "ECN threshold"),
        (&["--rate", "1Gbps", "--algorithm", "swift"], "swift has no switch half"),
        (&["--rate", "1"], "the unit is missing"),
    ];
    for (arguments, words) in cases {
        let bind = ["--bind", "127.0.0.1:0"];
        let said = run(&[&["switch", "127.0.0.1"], arguments].concat(), &bind);
        let why = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{arguments:?}: {why}");
        assert!(why.contains(words), "{arguments:?}: {why}");
        assert!(said.stdout.is_empty());
    }
}

fn insecure_host(mode: Mode) -> Host {
    let any = "127.0.0.1:0".parse().expect("an address");
    let mut config = Config::new(any, KeyRing::insecure()).expect("defaults");
    config.mode = mode;
    Host::start(config).expect("a host")
}

#[test]
fn a_server_that_is_interrupted_tells_its_peers_and_ends_well() {
    for mode in ["shared", "inline"] {
        let mut server = serve(&["--insecure", "--mode", mode]);
        let client = insecure_host(Mode::Shared);
        let connection =
            client.connect(server.address.parse().expect("an address")).expect("a server");
        connection.receive().expect("its greeting");
        interrupt(&server.child);
        until("the peer is told", || connection.ended().is_some());
        assert_eq!(connection.ended(), Some(End::ClosedByPeer), "{mode}");
        assert!(server.child.wait().expect("its end").success(), "{mode}");
    }
}

/// Starts `apus perf` with four outstanding ops of `size` bytes to a host of this test, and returns once `ops` ops have
/// arrived. In inline mode the host does not answer afterwards.
fn perf_under_way(
    mode: Mode,
    options: &[&str],
    (ops, size): (u64, usize),
) -> (Child, Host, Connection, Region) {
    let server = insecure_host(mode);
    let region = server.register(vec![0; size], Access::ALL).expect("memory");
    let address = server.local_addr().to_string();
    let perf = apus(&["perf", &address, "--insecure", "--json"])
        .args(["--size", &size.to_string(), "--outstanding", "4"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("perf");
    let connection = server.accept().expect("perf");
    let greeting = [region.key().get().to_be_bytes(), (size as u64).to_be_bytes()].concat();
    connection.submit(Request::message(greeting)).expect("room").wait().expect("delivered");
    let received = || server.stats().map(|s| s.payload_received.load(Ordering::Relaxed));
    until("the ops arrive", || {
        let arrived = received().sum::<u64>() >= ops * size as u64;
        if !arrived {
            server.drive();
        }
        arrived
    });
    (perf, server, connection, region)
}

#[test]
fn perf_that_is_interrupted_or_loses_its_server_says_what_it_has_and_that_it_is_partial() {
    for (interrupted, code, why) in
        [(true, 130, "interrupted"), (false, 1, "the peer closed the connection")]
    {
        let (perf, server, connection, _region) =
            perf_under_way(Mode::Shared, &["--duration", "3600s"], (100, 1000));
        if interrupted {
            interrupt(&perf);
        } else {
            drop((connection, server));
        }
        let said = perf.wait_with_output().expect("its end");
        assert_eq!(said.status.code(), Some(code));
        // Of the 100 ops that arrived, at most four were outstanding, so 96 have ended.
        assert!(number(&said.stdout, "ops") >= 96.0);
        let results: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
        let partial = results["partial"].as_str().expect("a reason");
        assert!(partial.contains(why), "{partial}");
        assert!(String::from_utf8_lossy(&said.stderr).contains(why));
    }
}

#[test]
fn perf_whose_server_stops_answering_reports_the_unfinished_ops() {
    let tables = fresh("unfinished");
    let out = ["--out", tables.to_str().expect("a path")];
    // The measurement is interrupted, because the time until a hundred ops have arrived is unknown.
    let (perf, _server, _connection, _region) =
        perf_under_way(Mode::Inline, &[&out[..], &["--duration", "3600s"]].concat(), (100, 1000));
    interrupt(&perf);
    let said = perf.wait_with_output().expect("its end");
    assert_eq!(said.status.code(), Some(130), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(number(&said.stdout, "unfinished"), 4.0);
    assert!(number(&said.stdout, "oldest_unfinished_us") > 0.0);
    let rows = op_columns(&tables, ["op", "outcome", "complete_us", "latency_us"]);
    let (done, open): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row[1] == "done");
    assert_eq!(done.len() as f64, number(&said.stdout, "ops"));
    assert_eq!(open, vec![["", "unfinished", "", ""].map(str::to_owned); 4]);
    let flows = fs::read_to_string(tables.join("flows.csv")).expect("flows.csv");
    let column = Table::of::<FlowRow>().names().position(|name| name == "unfinished_ops");
    let row = flows.lines().nth(1).expect("one flow");
    assert_eq!(row.split(',').nth(column.expect("a column")), Some("4"));
    fs::remove_dir_all(tables).expect("the tables");
}

/// The percentiles are at least the ages of the four ops, and have no upper bound.
#[test]
fn perf_of_which_no_op_ends_reports_lower_bounds_after_the_drain() {
    let options = ["--duration", "20ms", "--drain", "20ms"];
    // The host may receive some packets while it waits for the end of its greeting, but not a whole op.
    let (perf, _server, _connection, _region) =
        perf_under_way(Mode::Inline, &options, (0, 16 << 20));
    let said = perf.wait_with_output().expect("its end");
    let why = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(1), "{why}");
    assert!(why.contains("no op ended in the time given"), "{why}");
    assert_eq!((number(&said.stdout, "ops"), number(&said.stdout, "unfinished")), (0.0, 4.0));
    let results: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert!(results["p50_us"].is_null() && results["upper"]["p50_us"].is_null(), "{results}");
    // The age is measured time plus drain, whatever the load of the machine.
    let (p50, oldest) = (&results["lower"]["p50_us"], &results["oldest_unfinished_us"]);
    assert!(p50.as_f64() >= Some(40_000.0) && p50.as_f64() <= oldest.as_f64(), "{results}");
}

#[test]
fn ping_whose_server_ends_reports_the_message_without_an_answer() {
    let server = insecure_host(Mode::Shared);
    let address = server.local_addr().to_string();
    let ping = apus(&["ping", &address, "--insecure", "--json", "--count", "1000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ping");
    let connection = server.accept().expect("ping");
    let greeting = [0u64.to_be_bytes(); 2].concat();
    connection.submit(Request::message(greeting)).expect("room").wait().expect("delivered");
    for _ in 0..3 {
        let message = connection.receive().expect("a message");
        connection
            .submit(Request::message(message.bytes.to_vec()))
            .expect("room")
            .wait()
            .expect("sent");
    }
    connection.receive().expect("a fourth message");
    drop((connection, server));
    let said = ping.wait_with_output().expect("its end");
    assert_eq!(said.status.code(), Some(1), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!((number(&said.stdout, "count"), number(&said.stdout, "unfinished")), (3.0, 1.0));
    assert!(number(&said.stdout, "oldest_unfinished_us") > 0.0);
    let results: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert!(results["max_us"].is_null() && results["lower"]["max_us"].is_f64(), "{results}");
}

#[test]
fn a_server_logs_handshakes_under_another_key_and_in_the_other_mode() {
    let [own, other] = ["log-key", "log-other"].map(fresh);
    let paths = [&own, &other].map(|path| path.to_str().expect("a path"));
    for path in paths {
        assert!(run(&["key", path], &[]).status.success());
    }
    let mut child = apus(&["serve", "--listen", "127.0.0.1:0", "--key-file", paths[0]])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("serve");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
    let mut log = BufReader::new(child.stderr.take().expect("stderr"));
    let _server = Server::of(child, String::new());
    for (security, told, logged) in [
        (&["--key-file", paths[1]][..], "the same key", "its key is unknown to this host"),
        (&["--insecure"], "one side is insecure", "it is insecure, and this host has keys"),
    ] {
        let ping = run(&["ping", &address], security);
        assert_eq!(ping.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&ping.stderr).contains(told), "{told}");
        let mut line = String::new();
        // Other lines report numbers of dropped packets.
        while !line.contains("handshake from") {
            line.clear();
            assert_ne!(log.read_line(&mut line).expect("a line"), 0, "the server has ended");
        }
        assert!(line.contains("handshake from 127.0.0.1:") && line.contains(logged), "{line}");
    }
    for path in [own, other] {
        fs::remove_file(path).expect("a key file");
    }
}
