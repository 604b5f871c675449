//! Arbitrary bytes as a GOAL file, text or binary: no panic, and every accepted file can be written and read back.
#![no_main]

use apus_jobs::goal::{is_binary, read, write_binary, write_text};
use apus_jobs::loggops::{Parameters, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(graph) = read(bytes) else { return };
    let binary = write_binary(&graph).expect("a file has whole nanoseconds");
    let again = read(&binary).expect("binary");
    assert_eq!(write_binary(&again).expect("binary"), binary);
    if is_binary(bytes) {
        assert_eq!(again, graph);
    }
    let mut text = String::new();
    write_text(&graph, &mut text).expect("text").expect("a file has whole nanoseconds");
    let again = read(text.as_bytes()).expect("text");
    assert_eq!(write_binary(&again).expect("binary"), binary);
    let _ = run(&graph, &Parameters::default());
});
