//! The output of the example matches Algorithm 1 of Swift and the example's first comment.

use std::process::Command;

/// Swift §3.5: 25 us, 1 us for the single switch, and flow scaling. With a range of 100 us between windows of
/// 0.01 and 100 packets, alpha is 100 us / (10 - 0.1) and beta is -alpha / 10.
fn target(window: f64) -> f64 {
    let alpha = 100.0 / 9.9;
    25.0 + 1.0 + alpha / window.sqrt() - alpha / 10.0
}

/// Algorithm 1, line 14, with beta = 0.8 and max_mdf = 0.5.
fn decreased(window: f64, delay: f64) -> f64 {
    window * (1.0 - 0.8 * (delay - target(window)) / delay).max(0.5)
}

#[test]
fn output_is_that_of_algorithm_1_and_of_the_comment() {
    // Lines 7 to 9: 1 + 1/1 and 2 + 1/2, since 20 us are below the target of more than 26 us.
    let (first, second) = (2.0, 2.5);
    let third = decreased(second, 80.0);
    // Line 3: at most one decrease per RTT; 40 us after the first one the window stays.
    let fifth = decreased(third, 80.0);
    // Line 30: below one packet the gap is RTT / window.
    let gap = 80.0 / fifth;
    let rows = [
        (100, 20, first, 0.0),
        (120, 20, second, 0.0),
        (200, 80, third, 0.0),
        (240, 80, third, 0.0),
        (280, 80, fifth, gap),
    ];
    let line = |&(at, rtt, window, gap): &(u32, u32, f64, f64)| {
        format!("at {at} us, RTT {rtt} us: window {window:.3} packets, gap {gap:.1} us\n")
    };
    let expected: String = rows.iter().map(line).collect();

    let output = Command::new(env!("CARGO_BIN_EXE_embedded-swift")).output().expect("process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);

    let comment: String = include_str!("../src/main.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! at "))
        .map(|line| format!("at {line}\n"))
        .collect();
    assert_eq!(comment, expected, "the comment of src/main.rs");
}
