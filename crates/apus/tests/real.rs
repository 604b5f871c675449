//! The commands of the real transport, as processes on the loopback interface.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use apus_sim::columns::{FLOWS, OPS, SAMPLES};

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
        // Of two flows.
        assert!((0.5..=1.0).contains(&number(&perf.stdout, "jain")));
    }
    // The tables have the simulator's columns, each row as many fields as its header.
    let (tables, pcap) = (fresh("tables"), fresh("pcap"));
    let (out, capture) = (tables.to_str().expect("a path"), pcap.to_str().expect("a path"));
    let perf = ["perf", &server.1, "--duration", "2s", "--size", "20000", "--flows", "2"];
    let perf = run(&[&perf[..], &["--out", out, "--pcap", capture]].concat(), &security);
    assert!(perf.status.success(), "{}", String::from_utf8_lossy(&perf.stderr));
    for (table, least) in [(OPS, 1), (FLOWS, 2), (SAMPLES, 2)] {
        let text = fs::read_to_string(tables.join(table.file)).expect(table.file);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(table.header().trim_end()), "{}", table.file);
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
    assert!(why.contains("inline mode has exactly one engine"), "{why}");
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
        (&["--key-file", path][..], 1, "the peer takes no packets sealed with aes-256-gcm"),
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
