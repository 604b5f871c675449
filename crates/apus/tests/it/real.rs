//! The commands of the real transport, as processes on the loopback interface.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use apus_sim::columns::{FlowRow, OpRow, SampleRow, Table};
use apus_udp::session::KeyRing;
use apus_udp::{Access, Config, Connection, End, Host, Region, Request};

/// Long against anything on a loopback interface.
const PATIENCE: Duration = Duration::from_secs(60);

fn apus(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.args(arguments);
    command
}

/// A server that ends with the test.
struct Server(Child, String);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(security: &[&str]) -> Server {
    let mut command = apus(&["serve", "--bind", "127.0.0.1:0"]);
    let mut child = command.args(security).stdout(Stdio::piped()).spawn().expect("serve");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
    Server(child, address)
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

#[test]
fn two_processes_with_a_key_exchange_messages_writes_and_reads() {
    let file = fresh("key");
    let path = file.to_str().expect("a path");
    assert!(run(&["key", path], &[]).status.success());
    let again = run(&["key", path], &[]);
    assert_eq!(again.status.code(), Some(2), "a key is never overwritten");
    let security = ["--key-file", path];
    let server = serve(&security);

    let ping = run(&["ping", &server.1, "--count", "50", "--json"], &security);
    assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stderr));
    assert_eq!(number(&ping.stdout, "count"), 50.0);
    assert!(number(&ping.stdout, "p50_us") <= number(&ping.stdout, "p99_us"));
    assert!(number(&ping.stdout, "fabric_p50_us") > 0.0);

    for op in ["write", "read"] {
        let perf = ["perf", &server.1, "--op", op, "--duration", "2s", "--size", "20000"];
        let perf = run(&[&perf[..], &["--flows", "2", "--json"]].concat(), &security);
        assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
        assert!(number(&perf.stdout, "goodput_gbps") > 0.0);
    }
    // The tables have the simulator's columns, each row as many fields as its header.
    let (tables, pcap) = (fresh("tables"), fresh("pcap"));
    let (out, capture) = (tables.to_str().expect("a path"), pcap.to_str().expect("a path"));
    let perf = ["perf", &server.1, "--duration", "2s", "--size", "20000", "--flows", "2"];
    let perf = run(&[&perf[..], &["--json", "--out", out, "--pcap", capture]].concat(), &security);
    assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
    // Ops per flow, by the table of ops; Jain's index of them, by its formula.
    let table = fs::read_to_string(tables.join("ops.csv")).expect("ops");
    let flow = Table::of::<OpRow>().names().position(|name| name == "flow").expect("a column");
    let mut ops = [0.0; 2];
    for row in table.lines().skip(1) {
        ops[row.split(',').nth(flow).expect("a field").parse::<usize>().expect("a flow")] += 1.0;
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
        let ping = run(&["ping", &server.1, "--count", "3", "--json"], &security);
        assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stderr));
    }
    let inline = run(&["ping", &server.1, "--mode", "inline"], &security);
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
    let target = ["ping", &server.1, "--count", "3", "--param", "base_target=50us"];
    let said = run(&target, &["--insecure"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn a_cipher_is_chosen_by_name_and_refused_by_name() {
    let file = fresh("cipher-key");
    let path = file.to_str().expect("a path");
    assert!(run(&["key", path], &[]).status.success());
    let server = serve(&["--key-file", path, "--cipher", "aegis-128x"]);
    let ping = |security: &[&str]| run(&["ping", &server.1, "--count", "3"], security);
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
    let silent = run(&["ping", &server.1], &[]);
    assert_eq!(silent.status.code(), Some(2), "neither key nor --insecure");
    let why = String::from_utf8_lossy(&silent.stderr);
    assert!(why.contains("`apus key FILE`") && why.contains("--insecure"), "{why}");
    let said = run(&["ping", &server.1, "--count", "3", "--mode", "inline"], &["--insecure"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(String::from_utf8_lossy(&said.stderr).contains("not encrypted"));
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let from = Instant::now();
    while !done() {
        assert!(from.elapsed() < PATIENCE, "it does not happen: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What Ctrl-C does.
fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

fn insecure_host() -> Host {
    let any = "127.0.0.1:0".parse().expect("an address");
    Host::start(Config::new(any, KeyRing::insecure()).expect("defaults")).expect("a host")
}

#[test]
fn a_server_that_is_interrupted_tells_its_peers_and_ends_well() {
    for mode in ["hybrid", "inline"] {
        let mut server = serve(&["--insecure", "--mode", mode]);
        let client = insecure_host();
        let connection = client.connect(server.1.parse().expect("an address")).expect("a server");
        connection.receive().expect("its greeting");
        interrupt(&server.0);
        until("the peer is told", || connection.ended().is_some());
        assert_eq!(connection.ended(), Some(End::ClosedByPeer), "{mode}");
        assert!(server.0.wait().expect("its end").success(), "{mode}");
    }
}

/// `apus perf` against a host of this test, once it has had a hundred ops done.
fn perf_under_way() -> (Child, Host, Connection, Region) {
    let server = insecure_host();
    let region = server.register(vec![0; 1000], Access::ReadWrite).expect("memory");
    let address = server.local_addr().to_string();
    let perf = apus(&["perf", &address, "--insecure", "--json", "--duration", "3600s"])
        .args(["--size", "1000", "--outstanding", "4"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("perf");
    let connection = server.accept().expect("perf");
    let greeting = [region.key().get().to_be_bytes(), 1000u64.to_be_bytes()].concat();
    connection.submit(Request::message(greeting)).expect("room").wait().expect("delivered");
    // Four are outstanding: of 100 ops that came, 96 have ended.
    let received = || server.stats().map(|s| s.payload_received.load(Ordering::Relaxed));
    until("a hundred ops", || received().sum::<u64>() >= 100 * 1000);
    (perf, server, connection, region)
}

#[test]
fn perf_that_is_interrupted_or_loses_its_server_says_what_it_has_and_that_it_is_partial() {
    for (interrupted, code, why) in
        [(true, 130, "interrupted"), (false, 1, "the peer closed the connection")]
    {
        let (perf, server, connection, _region) = perf_under_way();
        if interrupted {
            interrupt(&perf);
        } else {
            drop((connection, server));
        }
        let said = perf.wait_with_output().expect("its end");
        assert_eq!(said.status.code(), Some(code));
        assert!(number(&said.stdout, "ops") >= 96.0);
        let results: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
        let partial = results["partial"].as_str().expect("a reason");
        assert!(partial.contains(why), "{partial}");
        assert!(String::from_utf8_lossy(&said.stderr).contains(why));
    }
}

#[test]
fn a_server_logs_handshakes_under_another_key_and_in_the_other_mode() {
    let [own, other] = ["log-key", "log-other"].map(fresh);
    let paths = [&own, &other].map(|path| path.to_str().expect("a path"));
    for path in paths {
        assert!(run(&["key", path], &[]).status.success());
    }
    let mut child = apus(&["serve", "--bind", "127.0.0.1:0", "--key-file", paths[0]])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("serve");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
    let mut log = BufReader::new(child.stderr.take().expect("stderr"));
    let _server = Server(child, String::new());
    for (security, told, logged) in [
        (&["--key-file", paths[1]][..], "the same key", "its key is unknown to this host"),
        (&["--insecure"], "one side is insecure", "it is insecure, and this host has keys"),
    ] {
        let ping = run(&["ping", &address], security);
        assert_eq!(ping.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&ping.stderr).contains(told), "{told}");
        let mut line = String::new();
        log.read_line(&mut line).expect("a line");
        assert!(line.contains("handshake from 127.0.0.1:") && line.contains(logged), "{line}");
    }
    for path in [own, other] {
        fs::remove_file(path).expect("a key file");
    }
}
