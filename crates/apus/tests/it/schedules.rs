//! `apus convert` and `apus job`: schedules of LogGOPSim.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::command::{apus, folder};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../jobs/tests/data").join(name)
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

/// The time that LogGOPSim 76451de prints, run on 2026-11-22; the path is 14 messages of 1 MiB.
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
        (&["job", "a.goal", "--gap", "0.5ns"], "0.5ns is not a number of whole nanoseconds"),
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
