//! `apus serve` and SIGHUP: keys are replaced while connections continue (docs/operations.md, Rotate keys).

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use apus_udp::{Config, Connection, End, Host, Request, keyfile};
use apus_units::Span;

use crate::support::server::Server;
use crate::support::until;

fn apus(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apus")).args(arguments).output().expect("run")
}

/// Runs a command that must succeed; returns its output.
fn done(arguments: &[&str]) -> String {
    let output = apus(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A folder of key files, removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("apus-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a folder");
        Self(path)
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).to_str().expect("a path").to_owned()
    }

    /// Returns the line of a key file that begins with this mark.
    fn line(&self, file: &str, mark: &str) -> String {
        let text = fs::read_to_string(self.0.join(file)).expect("a key file");
        let line = text.lines().find(|line| line.starts_with(mark));
        line.unwrap_or_else(|| panic!("{mark} in {file}")).to_owned()
    }

    /// Replaces a key file as the documentation says: another file takes its name.
    fn write(&self, file: &str, lines: &[&str]) {
        let part = self.0.join("part");
        fs::write(&part, lines.join("\n") + "\n").expect("room");
        fs::set_permissions(&part, fs::Permissions::from_mode(0o600)).expect("its owner's");
        fs::rename(part, self.0.join(file)).expect("its name");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `apus serve`, and what it has written to standard error.
struct Service {
    server: Server,
    log: Arc<Mutex<String>>,
}

impl Service {
    fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_apus"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .env_remove("RUST_LOG")
            .env_remove("NOTIFY_SOCKET")
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("serve");
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, all) = (child.stderr.take().expect("stderr"), Arc::clone(&log));
        thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                *all.lock().expect("the log") += &(line + "\n");
            }
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
        Self { server: Server::of(child, address), log }
    }

    fn address(&self) -> &str {
        &self.server.address
    }

    /// Sends SIGHUP and waits until the log has these words after it.
    fn hang_up(&self, words: &[&str]) {
        let before = self.log.lock().expect("the log").len();
        self.server.signal("-HUP");
        until(&format!("the log has {words:?}"), || {
            let log = self.log.lock().expect("the log");
            log[before..].lines().any(|line| words.iter().all(|word| line.contains(word)))
        });
    }

    /// Ends the service in order.
    fn end(mut self) {
        self.server.signal("-TERM");
        let code = self.server.child.wait().expect("its end").code();
        assert_eq!(code, Some(0), "{}", self.log.lock().expect("the log"));
    }
}

/// Connects under a key file, as an application.
fn connect(service: &Service, key_file: &str) -> (Host, Connection) {
    let keys = keyfile::read(Path::new(key_file)).expect("keys");
    let mut config =
        Config::new("127.0.0.1:0".parse().expect("an address"), keys).expect("settings");
    // The session must not expire here although a busy machine runs the engine rarely.
    config.session.idle_timeout = Span::from_secs(600);
    let host = Host::start(config).expect("a host");
    let connection = host.connect(service.address().parse().expect("an address")).expect("connect");
    connection.receive().expect("the greeting");
    (host, connection)
}

fn assert_continues(connection: &Connection) {
    connection.submit(Request::message(&b"still"[..])).expect("room").wait().expect("delivered");
    assert_eq!(&connection.receive().expect("an answer").bytes[..], b"still");
}

fn ping(service: &Service, options: &[&str]) -> Output {
    apus(&[&["ping", service.address(), "--count", "3"], options].concat())
}

fn assert_pings(service: &Service, options: &[&str]) {
    let output = ping(service, options);
    assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
}

const IN_USE: &str = "SIGHUP: the keys of the file are in use";
const AS_BEFORE: &str = "SIGHUP: the keys stay as they were";

#[test]
fn a_shared_key_is_replaced_on_sighup_while_connections_continue_and_a_broken_file_changes_nothing()
{
    for mode in ["shared", "inline"] {
        let folder = Folder::new(&format!("rotated-{mode}"));
        let [old, new, own] = ["old.key", "new.key", "server.key"].map(|file| folder.path(file));
        done(&["key", &old]);
        done(&["key", &new]);
        let [old_line, new_line] = ["old.key", "new.key"].map(|f| folder.line(f, "apus-key-1"));
        folder.write("server.key", &[&old_line]);
        let service = Service::start(&["--key-file", &own, "--log", "info", "--mode", mode], &[]);
        // Without a connection, the command waits for the first one.
        folder.write("server.key", &[&old_line, &new_line]);
        service.hang_up(&[IN_USE, &own, "shared_keys=2", "added=1", "removed=0", "changed=0"]);
        let (_host, connection) = connect(&service, &old);
        assert_continues(&connection);
        assert_pings(&service, &["--key-file", &new]);

        let retired = format!("retired {old_line}");
        folder.write("server.key", &[&retired, &new_line]);
        service.hang_up(&[IN_USE, "shared_keys=2", "retired=1", "added=0", "changed=1"]);
        assert_continues(&connection);
        assert_pings(&service, &["--key-file", &new]);
        let late = ping(&service, &["--key-file", &old]);
        assert_eq!(late.status.code(), Some(1), "a retired key opens no connection");

        // Wrong files: each error names the file, the fault and the remedy.
        let key = "not a key; write `apus-key-1`";
        folder.write("server.key", &["# new", &new_line, "apus-key-1 short"]);
        service.hang_up(&["ERROR", AS_BEFORE, &format!("{own}: line 3 is {key}")]);
        folder.write("server.key", &[&retired]);
        service.hang_up(&["ERROR", AS_BEFORE, &format!("{own}: no key found; write a line")]);
        let open = fs::Permissions::from_mode(0o644);
        fs::set_permissions(&own, open).expect("a mode");
        service.hang_up(&["ERROR", AS_BEFORE, &own, "(mode 644); apply `chmod 600`"]);
        fs::remove_file(&own).expect("the file");
        service.hang_up(&["ERROR", AS_BEFORE, &format!("{own}: this key file cannot be read")]);
        assert_continues(&connection);
        assert_pings(&service, &["--key-file", &new]);

        folder.write("server.key", &[&new_line]);
        service.hang_up(&[IN_USE, "shared_keys=1", "retired=0", "removed=1"]);
        until("the connection of the removed key ends", || connection.ended().is_some());
        assert_eq!(connection.ended(), Some(End::ClosedByPeer), "{mode}");
        assert_pings(&service, &["--key-file", &new]);
        service.end();
    }
}

/// The steps of docs/operations.md: the pair of the server, then that of the client.
#[test]
fn key_pairs_are_replaced_on_sighup_while_connections_continue() {
    let folder = Folder::new("rotated-pairs");
    let [server, client] = ["server.key", "client.key"].map(|file| folder.path(file));
    done(&["key", &server, "--name", "server"]);
    done(&["key", &client, "--name", "client", "--group", &server]);
    let pair = |file: &str| [folder.line(file, "apus-key-1"), folder.line(file, "apus-self-1")];
    let public = |file: &str| done(&["key", &folder.path(file), "--public"]).trim().to_owned();
    let named = |line: &str, name: &str| {
        let mut words: Vec<&str> = line.split(' ').collect();
        words[1] = name;
        words.join(" ")
    };
    let retired = |line: &str| format!("retired {line}");
    let [group, server_pair] = pair("server.key");
    let [_, client_pair] = pair("client.key");
    let (server_public, client_public) = (public("server.key"), public("client.key"));
    folder.write("server.key", &[&group, &server_pair, &client_public]);
    folder.write("client.key", &[&group, &client_pair, &server_public]);
    let options = ["--key-file", &server, "--log", "info", "--accept", "client"];
    let service = Service::start(&options, &[]);
    let (_host, connection) = connect(&service, &client);
    let by_name = ["--key-file", &*client, "--peer-name", "server"];
    assert_pings(&service, &by_name);

    // The pair of the server. The new key takes over the name at the client.
    done(&["key", &folder.path("server-2.key"), "--name", "server", "--group", &server]);
    let [_, server_pair_2] = pair("server-2.key");
    let server_public_2 = public("server-2.key");
    folder.write("server.key", &[&group, &server_pair, &server_pair_2, &client_public]);
    service.hang_up(&[IN_USE, "key_pairs=2", "added=1", "changed=0"]);
    assert_pings(&service, &by_name);
    let before = retired(&named(&server_public, "server-old"));
    folder.write("client.key", &[&group, &client_pair, &server_public_2, &before]);
    assert_pings(&service, &by_name);
    folder.write("server.key", &[&group, &retired(&server_pair), &server_pair_2, &client_public]);
    service.hang_up(&[IN_USE, "key_pairs=2", "retired=1", "changed=1"]);
    assert_pings(&service, &by_name);
    assert_continues(&connection);

    // The pair of the client. The new key takes over the name at the server, which --accept gives.
    done(&["key", &folder.path("client-2.key"), "--name", "client", "--group", &client]);
    let [_, client_pair_2] = pair("client-2.key");
    let client_public_2 = public("client-2.key");
    let (old_pair, old_client) =
        (retired(&server_pair), retired(&named(&client_public, "client-old")));
    folder.write("server.key", &[&group, &old_pair, &server_pair_2, &client_public_2, &old_client]);
    service.hang_up(&[IN_USE, "peers=2", "retired=2", "added=1", "changed=1"]);
    assert_continues(&connection);
    assert_ne!(ping(&service, &by_name).status.code(), Some(0), "the old pair is retired");
    let old = retired(&client_pair);
    folder.write("client.key", &[&group, &old, &client_pair_2, &server_public_2]);
    assert_pings(&service, &by_name);
    assert_continues(&connection);

    // A file that has lost its last lines does not turn the server into one that every holder of the shared key may use.
    folder.write("server.key", &[&group]);
    service.hang_up(&["ERROR", AS_BEFORE, &server, "no line `apus-self-1`"]);
    assert_pings(&service, &by_name);
    // The old keys are no longer needed.
    folder.write("server.key", &[&group, &server_pair_2, &client_public_2]);
    service.hang_up(&[IN_USE, "key_pairs=1", "peers=1", "retired=0", "removed=2"]);
    until("the connection of the removed keys ends", || connection.ended().is_some());
    assert_pings(&service, &by_name);
    // A peer of --accept that is no longer listed.
    folder.write("server.key", &[&group, &server_pair_2]);
    service.hang_up(&["WARN", "no longer lists this peer of --accept", "client"]);
    assert_ne!(ping(&service, &by_name).status.code(), Some(0));
    service.end();
}

#[test]
fn an_insecure_server_says_on_sighup_that_it_has_no_key_file_and_continues() {
    let service = Service::start(&["--insecure"], &[]);
    service.hang_up(&["WARN", "SIGHUP: nothing to read again, because --insecure has no key file"]);
    assert_pings(&service, &["--insecure"]);
    service.end();
}

#[test]
fn a_service_manager_is_told_of_each_reload_and_of_a_wrong_key_file() {
    let folder = Folder::new("reload-states");
    let (key, socket) = (folder.path("a.key"), folder.path("socket"));
    done(&["key", &key]);
    let manager = UnixDatagram::bind(&socket).expect("a socket");
    manager.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a limit");
    let service = Service::start(&["--key-file", &key], &[("NOTIFY_SOCKET", &socket)]);
    let mut bytes = [0; 1024];
    let mut told = || {
        let length = manager.recv(&mut bytes).expect("a state");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let ready = format!("READY=1\nSTATUS=listening on {}", service.address());
    assert_eq!(told(), ready);
    let mut reloaded = || {
        service.server.signal("-HUP");
        let begun = told();
        let time = begun.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect(&begun).to_owned();
        (time.parse::<u64>().expect("microseconds"), told())
    };
    let first = reloaded();
    assert_eq!(first.1, ready);
    folder.write("a.key", &["apus-key-1 short"]);
    let second = reloaded();
    let wrong = format!("{ready}; the keys stay as they were: {key}: line 1 is not a key; write");
    assert!(second.1.starts_with(&wrong), "{}", second.1);
    assert!(first.0 > 0 && second.0 >= first.0, "{} and {}", first.0, second.0);
    service.end();
}

#[test]
fn quotas_of_a_server_are_options_that_refuse_more_and_are_checked() {
    let folder = Folder::new("quotas");
    let key = folder.path("shared.key");
    done(&["key", &key]);
    let service = Service::start(&["--key-file", &key, "--quota-sessions", "1"], &[]);
    let (host, connection) = connect(&service, &key);
    let refused = ping(&service, &["--key-file", &key]);
    let why = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("quota"), "{why}");
    assert_continues(&connection);
    drop((connection, host));
    service.end();

    let pair = folder.path("pair.key");
    done(&["key", &pair, "--name", "server"]);
    for (file, option, value, words) in [
        (&key, "--quota-sessions", "0", "quota_sessions"),
        (&key, "--quota-pending", "257", "quota_pending"),
        (&key, "--handshake-rate", "3", "handshake_rate"),
        (&key, "--quota-ops", "5000", "quota_ops has no effect"),
        (&key, "--quota-queued-bytes", "99999999", "quota_queued_bytes has no effect"),
        (&pair, "--quota-ops", "1023", "quota_ops"),
        (&pair, "--quota-queued-bytes", "5", "quota_queued_bytes"),
    ] {
        let wrong = apus(&["serve", "--listen", "127.0.0.1:0", "--key-file", file, option, value]);
        let why = String::from_utf8_lossy(&wrong.stderr);
        assert_eq!(wrong.status.code(), Some(2), "{option} {value}: {why}");
        assert!(why.contains(words) && why.contains(value) || why.contains("no effect"), "{why}");
    }
    let all = ["--quota-sessions", "8", "--quota-pending", "8", "--handshake-rate", "64"];
    let own = ["--quota-ops", "1048576", "--quota-queued-bytes", "16777216"];
    let service = Service::start(&[&["--key-file", &pair][..], &all, &own].concat(), &[]);
    service.end();
}

/// Ends the process when it is dropped.
struct Listening(std::process::Child);

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_line_without_end_to_a_server_of_measurements_is_an_error_that_names_its_sender_and_the_bound()
{
    use std::io::Write;
    use std::net::TcpStream;

    let bound = "a line of more than 65536 bytes arrived";
    let bound_with_key = "a line of more than 8388608 bytes arrived";
    let mut listening = Command::new(env!("CARGO_BIN_EXE_apus"))
        .args(["bench", "udp", "--insecure", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map(Listening)
        .expect("run");
    let mut line = String::new();
    let mut out = BufReader::new(listening.0.stdout.take().expect("stdout"));
    while !line.starts_with("listening on ") {
        line.clear();
        assert_ne!(out.read_line(&mut line).expect("a line"), 0, "it has ended");
    }
    let address = line.trim().strip_prefix("listening on ").expect("an address");
    let mut stream = TcpStream::connect(address).expect("a stream");
    let own = stream.local_addr().expect("an address");
    while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
    let mut errors = BufReader::new(listening.0.stderr.take().expect("stderr"));
    let mut line = String::new();
    while !line.contains(bound) {
        line.clear();
        assert_ne!(errors.read_line(&mut line).expect("a line"), 0, "it has ended");
    }
    assert!(line.starts_with(&format!("{own}: {bound}")), "{line}");

    let mut end = Command::new(env!("CARGO_BIN_EXE_apus"))
        .arg("bench-udp-end")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run");
    let mut input = end.stdin.take().expect("stdin");
    while input.write_all(&[b'x'; 1 << 16]).is_ok() {}
    let mut why = String::new();
    end.stderr.take().expect("stderr").read_to_string(&mut why).expect("text");
    assert_eq!(end.wait().expect("its end").code(), Some(2), "{why}");
    assert!(why.contains(&format!("standard input: {bound_with_key}")), "{why}");
}
