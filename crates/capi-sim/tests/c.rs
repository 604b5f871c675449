//! The header, its examples and the back ends of ASTRA-sim and SimAI: compiled by the compilers of this machine. Skipped with a message
//! if there is none.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn has(program: &str) -> bool {
    let answers = Command::new(program).arg("--version").output();
    let has = answers.is_ok_and(|output| output.status.success());
    if !has {
        // Output of a passing test by `eprintln` is hidden.
        let _ = writeln!(std::io::stderr(), "skipped: no `{program}`");
    }
    has
}

/// The library that cargo has built for these tests: the newest of its name in their folder.
fn library() -> PathBuf {
    let deps = std::env::current_exe().expect("this test").parent().expect("a folder").to_owned();
    let folders = [deps.as_path(), deps.parent().expect("a folder")];
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let libraries = files.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libapus_simulator") && name.ends_with(".so")
    });
    let made = |path: &PathBuf| fs::metadata(path).and_then(|m| m.modified()).expect("a time");
    libraries.max_by_key(made).unwrap_or_else(|| panic!("a library in {}", deps.display()))
}

/// Compiles sources with every warning an error, and runs the program with a scenario.
fn run(compiler: &[&str], sources: &[PathBuf], includes: &[PathBuf], arguments: &[&str]) -> String {
    let name = sources[0].file_stem().expect("a name").to_string_lossy();
    let program = std::env::temp_dir().join(format!("apus-sim-{}-{name}", std::process::id()));
    let library = library();
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    for include in includes {
        command.arg("-I").arg(include);
    }
    let path = library.parent().expect("a folder").display().to_string();
    command.args(sources).arg(&library).arg(format!("-Wl,-rpath,{path}")).arg("-o").arg(&program);
    let done = command.output().expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // The program needs the library by its name, not where it was when the program was linked.
    let linked = library.display().to_string();
    let bytes = fs::read(&program).expect("the program");
    assert!(!bytes.windows(linked.len()).any(|place| place == linked.as_bytes()), "{linked}");
    let said = output(Command::new(&program).args(arguments));
    fs::remove_file(program).expect("the program");
    said
}

fn output(command: &mut Command) -> String {
    let done = command.output().expect("run");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    said
}

fn scenario() -> String {
    folder().join("examples/ring.toml").display().to_string()
}

/// Number before `us`.
fn microseconds(said: &str) -> f64 {
    let words: Vec<&str> = said.split_whitespace().collect();
    let unit = words.iter().position(|word| word.starts_with("us")).expect("a time");
    words[unit - 1].parse().expect("a number")
}

/// Ring all-reduce of 8 MiB among 8 ranks: 14 messages of 1 MiB behind each other, 1225.4144 us. Acknowledgements of 84 B
/// for each packet of 4160 B share the links.
fn assert_is_a_ring(said: &str) {
    let time = microseconds(said);
    assert!((1225.4144..1225.4144 * (1.0 + 84.0 / 4160.0)).contains(&time), "{said}");
}

#[test]
fn a_ring_in_c_takes_its_closed_form() {
    if !has("cc") {
        return;
    }
    let sources = [folder().join("examples/ring.c")];
    let bytes = (8 << 20).to_string();
    let said =
        run(&["cc", "-std=c11"], &sources, &[folder().join("include")], &[&scenario(), &bytes]);
    assert!(said.starts_with("8 ranks, "), "{said}");
    assert_is_a_ring(&said);
    // The same calls give the same time to the digit.
    if has("python3") {
        let mut python = Command::new("python3");
        python.arg(folder().join("examples/ring.py")).arg(library()).args([&scenario(), &bytes]);
        assert_eq!(microseconds(&output(&mut python)), microseconds(&said));
    }
}

/// ctypes prints an exception that leaves a callback, and goes on.
#[test]
fn an_exception_in_a_callback_of_python_ends_the_run() {
    if !has("python3") {
        return;
    }
    let program = "\
import runpy, sys
example, library, scenario = sys.argv[1:]
simulator = runpy.run_path(example)['Simulator'](library, scenario)
def fail():
    print('called')
    raise KeyError('of the callback')
for rank in (1, 2):
    simulator.receive(rank, 0, 1000, fail)
    simulator.send(0, rank, 1000)
try:
    simulator.run()
except KeyError as error:
    print('raised', error)
";
    let mut python = Command::new("python3");
    python.args(["-c", program]).arg(folder().join("examples/ring.py")).arg(library());
    assert_eq!(output(python.arg(scenario())), "called\nraised 'of the callback'\n");
}

#[test]
fn the_astra_sim_back_end_bears_the_traps_of_its_caller() {
    if !has("c++") {
        return;
    }
    let root = folder().join("../../integrations/astra-sim");
    let sources =
        ["test/stand_in.cc", "apus_network.cc", "apus_fabric.cc"].map(|name| root.join(name));
    let includes = [root.clone(), root.join("test"), folder().join("include")];
    let said = run(&["c++", "-std=c++17"], &sources, &includes, &[&scenario()]);
    let ring = said.lines().find(|line| line.starts_with("ring ")).expect("a ring");
    assert_is_a_ring(ring);
    assert!(said.contains("keys 123\n"), "{said}");
    assert!(
        said.contains(
            "unfinished: 1 ranks have not finished (3): nothing is left that could happen"
        ),
        "{said}"
    );
    assert!(said.contains("receive of 77 bytes from rank 5 to rank 3 with tag 42"), "{said}");
    assert!(said.contains("refused: rank 1 is both sender and receiver"), "{said}");
    assert!(said.contains("refused: a message has 0 bytes"), "{said}");
    assert!(said.contains("scenario: no such file: "), "{said}");
}

#[test]
fn the_simai_back_end_returns_flows_and_bears_the_traps_of_its_caller() {
    if !has("c++") {
        return;
    }
    let root = folder().join("../../integrations");
    let sources =
        ["simai/test/simai_stand_in.cc", "simai/simai_network.cc", "astra-sim/apus_fabric.cc"]
            .map(|name| root.join(name));
    let includes = [
        root.join("simai"),
        root.join("simai/test"),
        root.join("astra-sim"),
        folder().join("include"),
    ];
    let said = run(&["c++", "-std=c++17"], &sources, &includes, &[&scenario()]);
    let line = |name: &str| said.lines().find(|line| line.starts_with(name)).expect("a line");
    assert_is_a_ring(line("ring "));
    assert!(said.contains("keys a1c2d3e4\n"), "{said}");
    // Two links of 1 us, and twice 65 B at 100 Gb/s.
    assert_eq!(line("byte "), "byte 2.0104 us");
    assert!(
        said.contains(
            "unfinished: 1 ranks have not finished (3): nothing is left that could happen; no \
             message for a receive from rank 5 to rank 3 with tag 42; no receive for a message \
             from rank 4 to rank 3 with tag 41\n"
        ),
        "{said}"
    );
    assert!(said.contains("refused: rank 1 is both sender and receiver"), "{said}");
}

/// The header declares exactly the functions of the library.
#[test]
fn header_and_library_have_the_same_functions() {
    let header = fs::read_to_string(folder().join("include/apus_sim.h")).expect("the header");
    let mut sources = String::new();
    for name in ["create", "drive"] {
        let path = folder().join(format!("src/{name}.rs"));
        sources += &fs::read_to_string(path).expect("a source");
    }
    let names = |text: &str, before: &str| {
        let mut names: Vec<String> = text
            .split(before)
            .skip(1)
            .filter_map(|rest| rest.split_once('(').map(|(name, _)| name.trim().to_owned()))
            .filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
            .map(|name| format!("apus_sim_{name}"))
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let declared: Vec<String> = header
        .lines()
        .filter(|line| {
            line.contains("apus_sim_") && line.contains('(') && !line.starts_with([' ', '/', '*'])
        })
        .filter(|line| !line.starts_with("typedef"))
        .flat_map(|line| {
            names(line.split_once('(').map_or(line, |(name, _)| &line[..=name.len()]), "apus_sim_")
        })
        .collect();
    let mut declared = declared;
    declared.sort();
    assert_eq!(declared, names(&sources, "extern \"C\" fn apus_sim_"));
    assert!(declared.len() == 12, "{declared:?}");
}
