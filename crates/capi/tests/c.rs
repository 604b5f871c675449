//! The header and its examples: compiled by the C compiler of this machine and run on loopback.
//! Skipped with a message if there is no compiler.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn output(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("apus-capi-{}-{name}", std::process::id()))
}

fn compiler() -> Option<String> {
    available("CC", "cc")
}

/// Returns the compiler that this variable names, or `usual`, if it is available.
fn available(variable: &str, usual: &str) -> Option<String> {
    let name = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
    if Command::new(&name).arg("--version").output().is_ok_and(|o| o.status.success()) {
        return Some(name);
    }
    // The test harness hides `eprintln` output of tests that pass.
    let _ = writeln!(std::io::stderr(), "skipped: no compiler `{name}`");
    None
}

/// Returns the library that cargo has built for these tests: the newest file of its name in their folder.
fn library(ending: &str) -> PathBuf {
    let deps = std::env::current_exe().expect("this test").parent().expect("a folder").to_owned();
    let folders = [deps.as_path(), deps.parent().expect("a folder")];
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let files = files.flatten().map(|entry| entry.path());
    let libraries = files.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // The ending includes the dot, because the compiler's `libapus-….rmeta` ends with an a too.
        let ending = format!(".{ending}");
        (name == format!("libapus{ending}") || name.starts_with("libapus-"))
            && name.ends_with(&ending)
    });
    let made = |path: &PathBuf| fs::metadata(path).and_then(|m| m.modified()).expect("a time");
    libraries.max_by_key(made).unwrap_or_else(|| panic!("libapus.{ending} in {}", deps.display()))
}

/// Compiles an example; every warning is an error.
fn compile(compiler: &str, example: &str, shared: bool) -> PathBuf {
    compile_file(&[compiler, "-std=c11"], &format!("examples/{example}.c"), shared)
}

/// Compiles a file; every warning is an error.
fn compile_file(compiler: &[&str], source: &str, shared: bool) -> PathBuf {
    let source = folder().join(source);
    let name = source.file_stem().expect("a name").to_string_lossy();
    let program = output(&format!("{name}-{shared}"));
    let library = library(if shared { "so" } else { "a" });
    let mut command = Command::new(compiler[0]);
    command
        .args(&compiler[1..])
        .args(["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(folder().join("include"))
        .arg(&source)
        .arg(&library)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program);
    if shared {
        let path = library.parent().expect("a folder").display().to_string();
        command.arg(format!("-Wl,-rpath,{path}"));
    }
    let done = command.output().expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // The program must refer to the library by its name, not by its path when the program was linked.
    let linked = library.display().to_string();
    let bytes = fs::read(&program).expect("the program");
    assert!(!bytes.windows(linked.len()).any(|place| place == linked.as_bytes()), "{linked}");
    program
}

fn run(command: &mut Command) -> String {
    run_to(command, 0)
}

/// Runs a program that must end with this exit code. Returns its output.
fn run_to(command: &mut Command, code: i32) -> String {
    let done = command.output().expect("run");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(code), "{said}{}", String::from_utf8_lossy(&done.stderr));
    said
}

#[test]
fn ping_pong_and_bulk_between_two_processes_in_c() {
    let Some(compiler) = compiler() else { return };
    let (program, key) = (compile(&compiler, "pingpong", false), output("key"));
    let _ = fs::remove_file(&key);
    run(Command::new(&program).arg("key").arg(&key));
    let mut server =
        Command::new(&program).arg("serve").arg(&key).stdout(Stdio::piped()).spawn().expect("run");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("listening on ").expect(&line);
    let said = run(Command::new(&program).arg("run").arg(&key).args([address, "200"]));
    assert!(said.contains("pings 200, p50 "), "{said}");
    assert!(said.contains("bulk 16777216 bytes each way"), "{said}");
    assert!(said.contains("status 18: the op reaches beyond the region's end"), "{said}");
    assert!(said.contains("status 1: unknown flow 7: the connection has 1"), "{said}");
    assert!(said.contains("status 1: `key_file` is NULL"), "{said}");
    assert!(said.contains("status 1: cipher: nothing is sealed without keys"), "{said}");
    assert!(said.contains("status 1: accept_ciphers: unknown cipher `aegis-128`"), "{said}");
    assert!(said.contains("status 20: the peer does not accept the cipher aes-256-gcm"), "{said}");
    // The client closed the connection, so the server's last wait ends.
    assert!(server.wait().expect("it ends").success());
    for file in [program, key] {
        fs::remove_file(file).expect("the file");
    }
}

/// A server with one-sided reads, whose peers have keys of their own and different rights.
#[test]
fn key_value_server_with_identities_and_live_regions_in_c() {
    let Some(compiler) = compiler() else { return };
    let program = compile(&compiler, "kv", true);
    let files = ["server", "writer", "reader", "guest"].map(|name| (name, output(name)));
    let mut lines = Vec::new();
    for (name, file) in &files {
        let _ = fs::remove_file(file);
        let mut make = Command::new(&program);
        make.arg("key").arg(file).arg(name);
        if *name != "server" {
            make.arg(&files[0].1);
        }
        lines.push(run(&mut make));
    }
    let append = |file: &Path, line: &str| {
        let mut file = fs::OpenOptions::new().append(true).open(file).expect("a key file");
        file.write_all(line.as_bytes()).expect("written");
    };
    for (n, (_, file)) in files.iter().enumerate().skip(1) {
        append(&files[0].1, &lines[n]);
        append(file, &lines[0]);
    }
    let mut server = Command::new(&program);
    let mut server =
        server.arg("serve").arg(&files[0].1).stdout(Stdio::piped()).spawn().expect("run");
    let mut said = BufReader::new(server.stdout.take().expect("stdout"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("listening on ").expect(&line).to_owned();
    let client = |n: usize, may_put: bool, code: i32| {
        let mut command = Command::new(&program);
        command.arg("run").arg(&files[n].1).args([&*address, "server"]);
        if may_put {
            command.arg("w");
        }
        run_to(&mut command, code)
    };
    let refused = client(3, true, 1);
    assert_eq!(
        refused,
        "not connected: status 5: the peer refused the connection: guest is not welcome\n"
    );
    let rest = "missing key: not found\nwrite: the region does not allow this kind of access\n\
                fetch_add: the region does not allow this kind of access\n";
    assert_eq!(client(1, true, 0), format!("connected to server\n40 puts, 40 gets found\n{rest}"));
    assert_eq!(client(2, false, 0), format!("connected to server\n0 puts, 40 gets found\n{rest}"));
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut said, &mut rest).expect("text");
    assert_eq!(rest, "writer: 40 puts\nreader: 0 puts\n82 gets\n");
    assert!(server.wait().expect("it ends").success());
    for (_, file) in files {
        fs::remove_file(file).expect("the file");
    }
    fs::remove_file(program).expect("the program");
}

#[test]
fn swift_holds_its_target_in_another_stack() {
    let Some(compiler) = compiler() else { return };
    let program = compile(&compiler, "swift", true);
    let said = run(&mut Command::new(&program));
    fs::remove_file(program).expect("the program");
    let number = |after: &str| {
        let rest = said.split_once(after).unwrap_or_else(|| panic!("{after}: {said}")).1;
        let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        digits.parse::<f64>().unwrap_or_else(|e| panic!("{after}: {e}: {said}"))
    };
    // base_target and one hop of hop_scale (1 us by default), without flow scaling.
    assert_eq!(number("target "), 51.0, "{said}");
    assert!((number("RTT ") / 51.0 - 1.0).abs() < 0.1, "{said}");
    assert!(said.contains("status 1: "), "{said}");
}

#[test]
fn the_header_is_one_of_cpp_too() {
    let Some(compiler) = available("CXX", "c++") else { return };
    let program = compile_file(&[&compiler, "-std=c++11"], "tests/c/header.cc", true);
    let said = run(&mut Command::new(&program));
    fs::remove_file(program).expect("the program");
    assert_eq!(said, "1 its deadline passed: `bind` is NULL\n");
}

#[test]
fn a_forked_process_leaves_the_connections_of_its_parent_alone() {
    let Some(compiler) = compiler() else { return };
    let program = compile_file(&[&compiler, "-std=c11"], "tests/c/fork.c", true);
    run(&mut Command::new(&program));
    fs::remove_file(program).expect("the program");
}

#[test]
fn a_thread_that_is_ending_may_call_the_library() {
    let Some(compiler) = compiler() else { return };
    let program = compile_file(&[&compiler, "-std=c11"], "tests/c/thread_end.c", true);
    run(&mut Command::new(&program));
    fs::remove_file(program).expect("the program");
}

/// The header declares exactly the functions of the library.
#[test]
fn header_and_library_have_the_same_functions() {
    let header = fs::read_to_string(folder().join("include/apus.h")).expect("the header");
    let mut sources = String::new();
    let entries = fs::read_dir(folder().join("src")).expect("src").flatten();
    for file in entries.filter(|entry| entry.path().is_file()) {
        sources += &fs::read_to_string(file.path()).expect("a source");
    }
    let names = |text: &str, before: &str| -> Vec<String> {
        let mut names: Vec<String> = text
            .match_indices(before)
            .map(|(at, _)| {
                let rest = &text[at + before.len() - "apus_".len()..];
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
            })
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let exported = names(&sources, "extern \"C\" fn apus_");
    assert!(exported.len() > 30, "{exported:?}");
    // A declaration is a name right before its arguments, outside of comments.
    let code: String = header
        .split("/*")
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { part.split_once("*/").map_or("", |p| p.1) })
        .collect();
    let declared: Vec<String> = names(&code, "apus_")
        .into_iter()
        .filter(|name| code.contains(&format!("{name}(")))
        .collect();
    assert_eq!(exported, declared);
}
