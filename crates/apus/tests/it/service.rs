//! `apus serve` as a service: signals, notifications, log, and the files of `packaging`.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use apus_udp::session::KeyRing;
use apus_udp::{Config, Connection, End, Host, Request, SubmitError};
use apus_units::Span;

use crate::support::server::Server;
use crate::support::until;

/// Connects to a service as a client with room for one message at a time.
fn connect(service: &Server) -> (Host, Connection) {
    let any = "127.0.0.1:0".parse().expect("an address");
    let mut settings = Config::new(any, KeyRing::insecure()).expect("defaults");
    settings.max_queued_messages = 1;
    // Sessions must not expire although a busy machine runs the engine rarely.
    settings.session.idle_timeout = Span::from_secs(600);
    let host = Host::start(settings).expect("a host");
    let connection = host.connect(service.address.parse().expect("an address")).expect("connect");
    connection.receive().expect("the greeting");
    (host, connection)
}

fn ask(connection: &Connection) {
    let message = connection.submit(Request::message(vec![1])).expect("room");
    message.wait().expect("delivered");
}

#[test]
fn sigterm_answers_what_was_asked_refuses_new_ops_and_ends_well() {
    let service = Server::start(&["--drain", "3600s"], &[]);
    let (_host, connection) = connect(&service);
    // The client has room for one of the two answers, so the other one stays outstanding.
    ask(&connection);
    ask(&connection);
    service.signal("-TERM");
    until("the client is told", || connection.is_peer_draining());
    let refused = connection.submit(Request::message(vec![1])).err();
    assert_eq!(refused, Some(SubmitError::PeerDraining));
    for _ in 0..2 {
        assert_eq!(connection.receive().expect("an answer").bytes[..], [1]);
    }
    assert_eq!(service.end().0, Some(0));
    until("the client hears of the end", || connection.ended() == Some(End::ClosedByPeer));
}

#[test]
fn a_drain_that_takes_too_long_is_a_failure_and_a_second_signal_ends_at_once() {
    for (drain, code) in [("0s", 1), ("3600s", 130)] {
        let service = Server::start(&["--drain", drain], &[]);
        let (_host, connection) = connect(&service);
        // The client never receives these answers.
        ask(&connection);
        ask(&connection);
        service.signal("-INT");
        if code == 130 {
            until("the client is told", || connection.is_peer_draining());
            // Earlier, it would be a repetition of the first signal.
            sleep(Duration::from_secs(1));
            service.signal("-TERM");
        }
        let (ended, log) = service.end();
        assert_eq!(ended, Some(code), "{log}");
        assert_eq!(log.contains("had not drained within 0ns"), code == 1, "{log}");
    }
}

#[test]
fn a_service_manager_is_told_of_the_start_and_the_end() {
    let path = std::env::temp_dir().join(format!("apus-service-{}", std::process::id()));
    let manager = UnixDatagram::bind(&path).expect("a socket");
    let service = Server::start(&[], &[("NOTIFY_SOCKET", path.to_str().expect("a path"))]);
    let mut bytes = [0; 256];
    let mut told = || {
        let length = manager.recv(&mut bytes).expect("a state");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    assert_eq!(told(), format!("READY=1\nSTATUS=listening on {}", service.address));
    service.signal("-TERM");
    assert_eq!(told(), "STOPPING=1");
    assert_eq!(service.end().0, Some(0));
    fs::remove_file(path).expect("the socket");
}

#[test]
fn the_log_has_the_events_of_its_filter_in_its_format() {
    let json = ["--log", "warn,apus_udp::connection=info", "--log-format", "json"];
    let service = Server::start(&json, &[("RUST_LOG", "trace")]);
    let address = service.address.clone();
    let (host, connection) = connect(&service);
    let own = host.local_addr().to_string();
    drop((connection, host));
    let mut service = service;
    let mut lines: Vec<serde_json::Value> = Vec::new();
    while lines.len() < 2 {
        let line = service.log_line();
        if !line.starts_with("insecure:") {
            lines.push(serde_json::from_str(&line).expect(&line));
        }
    }
    for (line, message) in lines.iter().zip(["connection opened", "connection closed"]) {
        assert_eq!(line["message"], message, "{line}");
        assert_eq!(
            (&line["level"], &line["target"]),
            (&"INFO".into(), &"apus_udp::connection".into())
        );
        assert_eq!((&line["host"], &line["peer"]), (&(&*address).into(), &(&*own).into()));
    }
    assert_eq!(lines[1]["end"], "the peer closed the connection");
    let wrong = ["serve", "--insecure", "--log", "verbose"];
    let output = Command::new(env!("CARGO_BIN_EXE_apus")).args(wrong).output().expect("run");
    assert_eq!(output.status.code(), Some(2));
}

fn packaging(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(file)
}

/// Replaces the installed command in the unit by the one of this build, because systemd checks that it exists.
#[test]
fn the_unit_for_systemd_is_valid_and_its_command_is_understood() {
    let unit = fs::read_to_string(packaging("systemd/apus.service")).expect("the unit");
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    let mut words = command.split_whitespace();
    assert_eq!(words.next(), Some("/usr/local/bin/apus"));
    // Without a key file the command ends before it opens a socket. Unknown options would be reported first.
    let words: Vec<String> = words.map(|word| word.replace("/etc/apus/", "/nowhere/")).collect();
    let output = Command::new(env!("CARGO_BIN_EXE_apus")).args(&words).output().expect("run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("/nowhere/apus.key"), "{said}");

    let dir = std::env::temp_dir().join(format!("apus-unit-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("apus.service");
    let installed = unit.replace("/usr/local/bin/apus", env!("CARGO_BIN_EXE_apus"));
    fs::write(&file, installed).expect("a unit");
    let verified = Command::new("systemd-analyze").arg("verify").arg(&file).output();
    fs::remove_dir_all(&dir).expect("the directory");
    match verified {
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "skipped: systemd-analyze: {error}");
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let about: Vec<&str> =
                said.lines().filter(|line| line.contains("apus.service")).collect();
            assert!(output.status.success() && about.is_empty(), "{said}");
        }
    }
}

#[test]
fn the_container_runs_a_command_that_is_understood() {
    let file = fs::read_to_string(packaging("container/Containerfile")).expect("the file");
    let list = |key: &str| -> Vec<String> {
        let line = file.lines().find_map(|line| line.strip_prefix(key)).expect(key);
        serde_json::from_str(line).expect("a list")
    };
    let (entry, arguments) = (list("ENTRYPOINT "), list("CMD "));
    assert_eq!(entry, ["/usr/local/bin/apus"]);
    let output = Command::new(env!("CARGO_BIN_EXE_apus")).args(&arguments).output().expect("run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/run/secrets/apus.key"), "only the key is missing: {said}");
    assert!(file.lines().any(|line| line == "STOPSIGNAL SIGTERM"));
}
