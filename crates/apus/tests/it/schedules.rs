//! `apus convert` and `apus job`, and jobs of files in scenarios.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::command::{apus, folder, succeeds};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../jobs/tests/data").join(name)
}

/// Returns a job in a format of another program.
fn other(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenario/tests/data").join(name);
    path.to_str().expect("path").to_owned()
}

/// 8 ranks, each with 14 sends and receives of a ring of 8 and a computation of the last chunk, from ASTRA-sim; 120
/// hops of a connection matrix.
#[test]
fn convert_reads_connection_matrices_and_compressed_traces() {
    let folder = folder("convert_reads");
    // Chakra's all-reduce: 14 sends and 14 receives of each rank, and an operation that ends after all of them.
    for (from, to, said) in [
        ("gen_ring_allreduce_8.cm", "a.goal", "a.goal: 8 ranks, 240 ops\n"),
        ("microAllReduce.txt", "b.bin", "b.bin: 8 ranks, 512 ops\n"),
        ("custom_ring/custom_allreduce", "c.goal", "c.goal: 8 ranks, "),
        ("custom_ring", "d.bin", "d.bin: 8 ranks, "),
        ("all_reduce/all_reduce.2.et", "e.goal", "e.goal: 8 ranks, 232 ops\n"),
    ] {
        let done = apus(&folder, &["convert", &other(from), to]);
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success() && text.starts_with(said), "{done:?}");
    }
    // The written file is read again, and its job completes.
    for file in ["a.goal", "b.bin", "c.goal", "d.bin", "e.goal"] {
        // Ranks of the custom ring send before they receive, which requires eager messages.
        let done = apus(&folder, &["job", file, "--eager", "1GiB"]);
        assert_eq!(done.status.code(), Some(0), "{file}: {done:?}");
    }
}

/// LogGOPSim's samples have computations of 0 ns, which Chakra cannot represent: 8 in a ring.
#[test]
fn convert_rounds_times_for_chakra_on_demand() {
    let folder = folder("convert_rounds");
    let ring = sample("allreduce_ring_8.goal");
    let ring = ring.to_str().expect("path");
    let strict = apus(&folder, &["convert", ring, "ring.et"]);
    let error = String::from_utf8_lossy(&strict.stderr).into_owned();
    assert_eq!(strict.status.code(), Some(2), "{error}");
    assert!(error.contains("rank 0, node 14") && error.contains("--round"), "{error}");
    let done = apus(&folder, &["convert", ring, "ring.et", "--round"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.contains("ring.et: 8 ranks, 232 ops\nrounded: the times of 8 "), "{done:?}");
    let again = apus(&folder, &["convert", "ring", "again.goal"]);
    assert!(again.status.success(), "{again:?}");
    let useless = apus(&folder, &["convert", ring, "again.bin", "--round"]);
    assert_eq!(useless.status.code(), Some(2), "{useless:?}");
}

/// Each of 8 ranks of SimAI's workload has two all-reduces of 14 sends on the stream of its computations.
#[test]
fn convert_says_how_many_sends_have_a_stream_of_their_own_in_chakra() {
    let folder = folder("convert_streams");
    let done = apus(&folder, &["convert", &other("microAllReduce.txt"), "micro.et"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let said = "micro.et: 8 ranks, 512 ops\nstreams: 224 sends were on one with computations";
    assert!(done.status.success() && text.starts_with(said), "{done:?}");
    let again = apus(&folder, &["convert", "micro", "again.et"]);
    let text = String::from_utf8_lossy(&again.stdout).into_owned();
    assert_eq!(text, "again.et: 8 ranks, 512 ops\n", "{again:?}");
}

/// A real PyTorch trace with 383 ctrl_deps on the node itself and 1277 on absent nodes; further ones form cycles.
#[test]
fn a_real_trace_needs_the_lenient_mode_which_lists_what_it_leaves_out() {
    let folder = folder("lenient");
    let strict = apus(&folder, &["convert", &other("pytorch"), "a.goal"]);
    let error = String::from_utf8_lossy(&strict.stderr).into_owned();
    assert_eq!(strict.status.code(), Some(2), "{error}");
    for part in ["chakra.0.et.gz: rank 0, node ", "--lenient"] {
        assert!(error.contains(part), "{error}");
    }
    let done = apus(&folder, &["convert", &other("pytorch"), "a.goal", "--lenient"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{done:?}");
    for part in [
        "left out: 383 ctrl_deps on the node itself, first: rank 0, node ",
        "left out: 1277 ctrl_deps on absent nodes, first: rank 0, node ",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

/// A binary GOAL file and Chakra traces as jobs of a scenario, and the table of their operations.
#[test]
fn a_scenario_runs_files_that_are_not_text_and_writes_their_operations() {
    let folder = folder("job_scenario");
    let scenario = |file: &str| {
        format!(
            "duration = \"1s\"\ntopology = \"star hosts=8 100Gbps 1us\"\nalgorithm = {{ name = \"constant\", window = 64 }}\n\
             [[workload]]\nkind = \"job\"\nfile = \"{file}\"\n"
        )
    };
    for (index, (file, rows)) in [
        (sample("alltoall_w2_8.bin").to_str().expect("path").to_owned(), 112),
        (other("all_reduce"), 232),
    ]
    .into_iter()
    .enumerate()
    {
        let (name, out) = (format!("{index}.toml"), format!("out{index}"));
        fs::write(folder.join(&name), scenario(&file)).expect("file");
        let done = apus(&folder, &["run", &name, "--out", &out]);
        assert!(done.status.success(), "{done:?}");
        let table = fs::read_to_string(folder.join(&out).join("job_ops.csv")).expect("table");
        let mut lines = table.lines();
        assert_eq!(lines.next(), Some("job,rank,op,label,kind,peer,bytes,start_us,end_us"));
        assert_eq!(lines.clone().count(), rows, "{file}");
        assert!(lines.all(|line| line.starts_with("job,")));
        let report = fs::read_to_string(folder.join(&out).join("report.html")).expect("report");
        assert!(
            report.contains("\"critical_messages\":[{") && report.contains("function jobDetails")
        );
        // The effective configuration contains the job itself.
        let again = apus(&folder, &["run", &format!("{out}/effective.toml"), "--json"]);
        assert!(again.status.success(), "{again:?}");
    }
}

/// LogGOPSim's `txt2bin` made the binary file.
#[test]
fn convert_makes_the_binary_form_of_txt2bin_and_reads_it_back() {
    let folder = folder("convert_makes");
    let text = sample("bcast_16.goal");
    let done = apus(&folder, &["convert", text.to_str().expect("path"), "a.bin"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(done.stdout, b"a.bin: 16 ranks, 41 ops\n");
    let binary = fs::read(sample("bcast_16.bin")).expect("sample");
    assert!(fs::read(folder.join("a.bin")).expect("file") == binary);
    for (from, to, form) in [("a.bin", "b.goal", None), ("b.goal", "c", Some("bin"))] {
        let option = form.map(|form| ["--to", form]);
        let words: Vec<&str> =
            ["convert", from, to].into_iter().chain(option.into_iter().flatten()).collect();
        let done = apus(&folder, &words);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
    }
    assert!(fs::read(folder.join("c")).expect("file") == binary);
}

/// The time was printed by LogGOPSim 76451de, run on 2026-11-22; the path is 14 messages of 1 MiB.
#[test]
fn job_prints_the_time_of_loggopsim_and_the_critical_path() {
    let folder = folder("job_prints");
    let file = sample("allreduce_ring_8.bin");
    let done = apus(&folder, &["job", file.to_str().expect("path")]);
    let text = String::from_utf8(done.stdout).expect("UTF-8");
    assert_eq!(done.status.code(), Some(0), "{text}");
    for part in [
        "8 ranks, 232 ops, 117440512 B sent",
        "completion     88157.3 us",
        "critical path  88157.3 us",
        "rank 7 ends at 88157.3 us",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn job_lists_what_is_stuck_and_fails() {
    let folder = folder("job_lists");
    let text =
        "num_ranks 2\nrank 0 {\na: send 5b to 1 tag 3\n}\nrank 1 {\nb: recv 5b from 0 tag 4\n}\n";
    fs::write(folder.join("a.goal"), text).expect("file");
    let done = apus(&folder, &["job", "a.goal"]);
    assert_eq!(done.status.code(), Some(1));
    let text = String::from_utf8(done.stdout).expect("UTF-8");
    for part in [
        "1 operations are stuck:\n  rank 1, op 0 (b): receive 5 B from rank 0, tag 4\n",
        "1 messages met no receive:\n  rank 1: 5 B from rank 0, tag 3\n",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn mistakes_name_the_file_and_the_remedy() {
    let folder = folder("schedule_mistakes");
    fs::write(folder.join("a.goal"), "num_ranks 1\nrank 0 {\nsend 5b to 1\n}\n").expect("file");
    let cut = &fs::read(sample("incast_9.bin")).expect("sample")[..500];
    fs::write(folder.join("a.bin"), cut).expect("file");
    for (words, message) in [
        (
            &["job", "a.goal"][..],
            "a.goal: line 3: rank 0, op 0: the peer is rank 1; it must be below 1",
        ),
        (&["job", "a.bin"], "is not in the file of 500 bytes"),
        (&["job", "no.goal"], "no.goal: cannot be read: "),
        (&["convert", "a.goal", "b.bin", "--lenient"], "--lenient and --groups have no effect"),
        (&["convert", "a.goal", "b"], "b: its name does not tell the form"),
        (&["convert", "a.goal", "b.bin", "--to", "bin"], "--to has no effect"),
    ] {
        let done = apus(&folder, words);
        let error = String::from_utf8(done.stderr).expect("UTF-8");
        assert_eq!(done.status.code(), Some(2), "{error}");
        assert!(error.contains(message), "{error}");
    }
    assert!(!folder.join("b.bin").exists() && !folder.join("b").exists());
}

/// A symbolic link to the file is kept, and only regular files are replaced.
#[cfg(target_os = "linux")]
#[test]
fn convert_writes_through_links_and_over_nothing_else_than_files() {
    let folder = folder("links");
    fs::write(
        folder.join("a.goal"),
        "num_ranks 2\nrank 0 {\na: send 8b to 1\n}\nrank 1 {\na: recv 8b from 0\n}\n",
    )
    .expect("file");
    fs::write(folder.join("real.goal"), "").expect("file");
    std::os::unix::fs::symlink("real.goal", folder.join("link.goal")).expect("a link");
    succeeds(&apus(&folder, &["convert", "a.goal", "link.goal"]));
    assert!(fs::symlink_metadata(folder.join("link.goal")).expect("a link").is_symlink());
    assert!(fs::read_to_string(folder.join("real.goal")).expect("file").contains("num_ranks 2"));
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe.goal")).status();
    assert!(made.expect("mkfifo").success());
    let output = apus(&folder, &["convert", "a.goal", "pipe.goal"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains("no regular file"), "{stderr}");
    assert!(!fs::symlink_metadata(folder.join("pipe.goal")).expect("a pipe").is_file());
}

/// The files of a Chakra trace are written together, and never mixed with those of an earlier trace with more ranks.
#[test]
fn convert_writes_all_ranks_of_a_trace_or_none() {
    let folder = folder("ranks");
    let goal = |ranks: u32, last: &str| {
        let idle = (0..ranks - 1).map(|rank| format!("rank {rank} {{\na: calc 1000\n}}\n"));
        format!(
            "num_ranks {ranks}\n{}rank {} {{\n{last}\n}}\n",
            idle.collect::<String>(),
            ranks - 1
        )
    };
    // Chakra cannot represent a computation of 0 ns.
    for (name, text) in [
        ("odd", goal(3, "a: calc 0")),
        ("three", goal(3, "a: calc 2000")),
        ("two", goal(2, "a: calc 2000")),
    ] {
        fs::write(folder.join(format!("{name}.goal")), text).expect("file");
    }
    let files = || {
        let entries = fs::read_dir(&folder).expect("folder").flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().contains("out.")).count()
    };
    let output = apus(&folder, &["convert", "odd.goal", "out.et"]);
    assert_eq!(
        (output.status.code(), files()),
        (Some(2), 0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    succeeds(&apus(&folder, &["convert", "three.goal", "out.et"]));
    let output = apus(&folder, &["convert", "two.goal", "out.et"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("out.2.et: is a file of an earlier trace of more than 2 ranks"),
        "{stderr}"
    );
    assert_eq!(files(), 3);
}
