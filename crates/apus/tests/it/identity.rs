//! Keys of hosts on the command line: creation, exchange and mutual proof.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::support::command::{apus, folder, refused, succeeds, texts};
use crate::support::server::serve;

/// Appends the public line of one key file to another.
fn tell(folder: &Path, of: &str, to: &str) {
    let line = succeeds(&apus(folder, &["key", of, "--public"]));
    assert!(line.starts_with("apus-peer-1 ") && line.lines().count() == 1, "{line}");
    let mut file = OpenOptions::new().append(true).open(folder.join(to)).expect("a key file");
    file.write_all(line.as_bytes()).expect("written");
}

#[test]
fn hosts_with_keys_of_their_own_find_each_other_by_name() {
    let folder = folder("names");
    let run = |words: &[&str]| apus(&folder, words);
    let made = succeeds(&run(&["key", "server.key", "--name", "server"]));
    assert!(made.contains("the keys of server are in server.key") && made.contains("apus-peer-1"));
    for name in ["one", "two"] {
        let file = format!("{name}.key");
        succeeds(&run(&["key", &file, "--name", name, "--group", "server.key"]));
        tell(&folder, "server.key", &file);
        tell(&folder, &file, "server.key");
    }
    tell(&folder, "two.key", "one.key");
    refused(&run(&["key", "server.key", "--name", "server"]), "keys are never overwritten");
    refused(&run(&["key", "a b.key", "--name", "a b"]), "`a b` is not a name");
    succeeds(&run(&["key", "shared.key"]));
    refused(&run(&["key", "shared.key", "--public"]), "no key pair of a host");

    let key_file = folder.join("server.key").display().to_string();
    let server = serve(&["--key-file", &key_file, "--accept", "one"]);
    let ping = |file: &str, more: &[&str]| {
        let words = ["ping", &server.address, "--count", "3", "--key-file", file];
        run(&[&words, more].concat())
    };
    succeeds(&ping("one.key", &["--peer-name", "server"]));
    for (output, message) in [
        (ping("one.key", &[]), "name the one to connect to"),
        (ping("one.key", &["--peer-name", "three"]), "no peer in use is called `three`"),
        (ping("two.key", &[]), "this server does not accept this peer"),
        (ping("shared.key", &["--peer-name", "server"]), "peers have no names"),
    ] {
        let (_, stderr) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(message), "{message} is not in {stderr}");
    }
    let unknown = run(&["serve", "--key-file", "server.key", "--accept", "three"]);
    refused(&unknown, "--accept three: the key file lists no peer of this name");
    let key = fs::read_to_string(folder.join("two.key")).expect("a key file");
    let own = key.lines().find(|line| line.starts_with("apus-self-1")).expect("its pair");
    assert!(!succeeds(&run(&["key", "two.key", "--public"])).contains(&own[own.len() - 64..]));
}
