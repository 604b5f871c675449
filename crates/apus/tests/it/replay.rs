//! `apus replay`: known mistakes of other Swift implementations, as logs with hand-computed numbers, and logs that are
//! refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const HEADER: &str = "time_ps,event,rtt_ps,fabric_delay_ps,endpoint_delay_ps,hops,acked";
/// A fixed target of 25 us and windows that start at 10 packets.
const PLAIN: [&str; 3] = ["hop_scale=0us", "fs_range=0us", "initial_cwnd=10"];

fn file(test: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("replay-{test}.csv"));
    fs::write(&path, text).expect("file");
    path
}

fn apus(test: &str, arguments: &[&str], log: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
    command.arg("replay").args(arguments).arg("--trace").arg(file(test, log));
    command.output().expect("process")
}

/// Returns the cells of a replay's rows, without the header.
#[track_caller]
fn rows(test: &str, arguments: &[&str], sets: &[&str], log: &str) -> Vec<Vec<String>> {
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let arguments: Vec<&str> = arguments.iter().copied().chain(sets).collect();
    let output = apus(test, &arguments, log);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("time_ps,event,target_delay_ps,fabric_cwnd,endpoint_cwnd,cwnd,pacing_delay_ps,rto_ps")
    );
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn column(rows: &[Vec<String>], index: usize) -> Vec<f64> {
    rows.iter().map(|row| row[index].parse().expect("number")).collect()
}

#[track_caller]
fn assert_close(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len(), "{got:?}");
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).abs() <= 1e-12 * expected.abs(), "{got} is not {expected}");
    }
}

const TIME: usize = 0;
const TARGET: usize = 2;
const FABRIC: usize = 3;
const ENDPOINT: usize = 4;
const CWND: usize = 5;
const PACING: usize = 6;
const RTO: usize = 7;

/// Returns an acknowledgement of one packet at `now` us with this delay in us, all of it in the fabric.
fn ack(now: u64, delay: u64) -> String {
    format!("{now}000000,ack,{delay}000000,{delay}000000,0,0,1\n")
}

#[test]
fn trap_1_a_blocked_decrease_does_not_postpone_the_next() {
    let acks: String = (0..=8).map(|i| ack(1000 + 10 * i, 40)).collect();
    let rows = rows("trap1", &["swift"], &PLAIN, &format!("{HEADER}\n{acks}"));
    // 1 - 0.8 * (40 - 25) / 40 = 0.7, at 1000, 1040 and 1080 us.
    let (a, b, c) = (7.0, 4.9, 3.43);
    assert_close(&column(&rows, FABRIC), &[a, a, a, a, b, b, b, b, c]);
    assert_eq!(rows[4][TIME], "1040000000");
    assert_eq!(rows[4][1], "ack");
}

#[test]
fn trap_2_and_3_the_target_scales_smoothly_with_hops_and_flows() {
    // alpha = 100 us / (1/sqrt(0.01) - 1/sqrt(100)) = 100/9.9 us, beta = -alpha / 10.
    let log = format!(
        "{HEADER},set_fabric_cwnd\n\
         0,ack,20000000,20000000,0,0,1,0.04\n\
         1,ack,20000000,20000000,0,3,1,0.25\n\
         2,ack,20000000,20000000,0,0,1,100\n\
         3,ack,20000000,20000000,0,0,1,0.001\n"
    );
    let rows = rows("trap2", &["swift"], &[], &log);
    let alpha = 1e8 / 9.9;
    let expected = [25e6 + alpha * 4.9, 28e6 + alpha * 1.9, 25e6, 125e6];
    for (got, expected) in column(&rows, TARGET).iter().zip(expected) {
        assert!((got - expected).abs() <= 0.5, "{got} is not {expected}");
    }
}

#[test]
fn trap_5_the_target_is_of_the_window_before_the_ack_and_after_a_loss() {
    // Window 0.04: 25 + 100/9.9 * 4.9 us = 74.494949 us. The ACK adds one packet; the loss halves the window.
    let log = format!(
        "{HEADER},set_fabric_cwnd\n0,ack,20000000,20000000,0,0,1,0.04\n\
         100000000,loss,,,,,,0.08\n"
    );
    let rows = rows("trap5", &["swift"], &[], &log);
    assert_close(&column(&rows, FABRIC), &[1.04, 0.04]);
    assert_eq!([&rows[0][TARGET], &rows[1][TARGET]], ["74494949", "74494949"]);
    // Packets are paced at 20 us / 0.04.
    assert_eq!([&rows[0][PACING], &rows[1][PACING]], ["0", "500000000"]);
}

#[test]
fn trap_6_one_coalesced_ack_may_jump() {
    let log = format!(
        "{HEADER},set_fabric_cwnd\n0,ack,20000000,20000000,0,0,5,1.25\n1,ack,20000000,20000000,0,0,5,0.5\n"
    );
    // 1.25 + 5/1.25; below one packet 0.5 + 5.
    assert_close(&column(&rows("trap6", &["swift"], &PLAIN, &log), FABRIC), &[5.25, 5.5]);
}

#[test]
fn trap_7_the_guard_is_the_latest_raw_rtt() {
    // The marker is 30 us old: with an RTT of 31 us the window is unchanged, with 30 us it decreases. 1 - 0.8 * (50 -
    // 25) / 50 = 0.6.
    let log = format!(
        "{HEADER},set_fabric_cwnd,set_last_decrease_ps\n\
         130000000,ack,31000000,50000000,0,0,1,10,100000000\n\
         130000000,ack,30000000,50000000,0,0,1,10,100000000\n"
    );
    assert_close(&column(&rows("trap7", &["swift"], &PLAIN, &log), FABRIC), &[10.0, 6.0]);
}

#[test]
fn the_endpoint_window_follows_the_average_and_the_smaller_window_binds() {
    // 10 * (1 - 0.8 * (160 - 100) / 160) = 7. Then the average is 0.5 * 160 + 0.5 * 40 = 100 us, which is not below the
    // target, and a marker of the current time does not block the decrease: factor 1.
    let log = format!(
        "{HEADER}\n0,ack,180000000,20000000,160000000,0,1\n200000000,ack,60000000,20000000,40000000,0,1\n"
    );
    let rows = rows("endpoint", &["swift"], &PLAIN, &log);
    assert_close(&column(&rows, ENDPOINT), &[7.0, 7.0]);
    assert_close(&column(&rows, FABRIC), &[10.1, 10.1 + 1.0 / 10.1]);
    assert_close(&column(&rows, CWND), &[7.0, 7.0]);
    // 2 * 180 us is below the minimum of 1 ms.
    assert_eq!(rows[0][RTO], "1000000000");
}

#[test]
fn timeouts_count_from_set_timeouts() {
    // After two earlier timeouts this is the third, and both windows fall to 0.001. After one earlier timeout they are
    // halved.
    let log = format!(
        "{HEADER},set_timeouts,set_fabric_cwnd,set_endpoint_cwnd,set_smoothed_rtt_ps\n\
         1000000000,timeout,,,,,,2,8,4,3000000000\n\
         9000000000,timeout,,,,,,1,8,4,\n"
    );
    let rows = rows("timeouts", &["swift"], &PLAIN, &log);
    assert_close(&column(&rows, FABRIC), &[0.001, 4.0]);
    assert_close(&column(&rows, ENDPOINT), &[0.001, 2.0]);
    // No RTT has been measured, so base_target is used instead: 25 us / 0.001.
    assert_eq!([&rows[0][PACING], &rows[1][PACING]], ["25000000000", "0"]);
    assert_eq!([&rows[0][RTO], &rows[1][RTO]], ["6000000000", "6000000000"]);
}

#[test]
fn an_rtt_of_a_loss_is_what_the_guard_uses() {
    let log = format!(
        "{HEADER},set_fabric_cwnd,set_last_decrease_ps\n\
         130000000,loss,31000000,,,,,10,100000000\n\
         130000000,loss,30000000,,,,,10,100000000\n"
    );
    assert_close(&column(&rows("lossrtt", &["swift"], &PLAIN, &log), FABRIC), &[10.0, 5.0]);
}

#[test]
fn falcon_has_its_own_rules() {
    let log = format!(
        "{HEADER},set_fabric_cwnd,set_last_decrease_ps,set_smoothed_rtt_ps,set_timeouts\n\
         100000000,ack,20000000,20000000,0,2,1,4,0,,\n\
         200000000,loss,,,,,,4,0,,\n\
         300000000,timeout,,,,,,4,0,20000000,0\n\
         400000000,timeout,,,,,,4,0,20000000,1\n\
         500000000,timeout,,,,,,4,0,20000000,2\n\
         600000000,timeout,,,,,,4,590000000,20000000,2\n"
    );
    let sets = ["base_target=25034752ps", "hop_scale=1us", "fs_range=0ps"];
    let rows = rows("falcon", &["swift", "--profile", "falcon"], &sets, &log);
    // An ACK adds 1/4; a loss leaves the window unchanged. The first timeout halves it, the second one leaves it, and
    // the third one sets it to the minimum unless the guard prevents that.
    assert_close(&column(&rows, FABRIC), &[4.25, 4.0, 2.0, 4.0, 0.01, 4.0]);
    assert_eq!(rows[0][TARGET], "27034752");
    // 2 * 20 us + 20 us / 0.01 at the minimum window; otherwise the minimum of 250 us.
    assert_eq!([&rows[4][RTO], &rows[5][RTO]], ["2040000000", "250000000"]);
}

#[test]
fn numbers_read_back_to_what_they_were() {
    let log = format!("{HEADER},set_fabric_cwnd\n0,loss,,,,,,0.30000000000000004\n");
    let rows = rows("digits", &["swift"], &["max_decrease_on_loss=false"], &log);
    assert_eq!(rows[0][FABRIC], "0.30000000000000004");
}

#[test]
fn columns_come_in_any_order_and_form() {
    let log = "\u{feff}\"event\", acked ,hops,endpoint_delay_ps,fabric_delay_ps,rtt_ps,time_ps\r\n\
               \"ack\",1,0,0,20000000, 20000000 ,7\r\n\r\n";
    let rows = rows("order", &["swift"], &PLAIN, log);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][..4], ["7", "ack", "25000000", "10.1"]);
}

#[test]
fn other_algorithms_leave_cells_empty() {
    let log = format!("{HEADER},marked\n0,ack,20000000,20000000,0,0,4,4\n");
    let rows = rows("dctcp", &["dctcp"], &[], &log);
    // alpha starts at 1, so the window of 10 is halved.
    assert_eq!(rows[0].join(","), "0,ack,,,,5,0,1000000000");
}

#[test]
fn wrong_logs_are_refused_with_place_and_remedy() {
    let line = "0,ack,20000000,20000000,0,0,1";
    let long = "1".repeat(70_000);
    for (index, (arguments, log, messages)) in [
        (&["swift"][..], String::new(), &[":1: is empty", HEADER][..]),
        (&["swift"], "time_ps,event\n".into(), &[":1: the column `rtt_ps` is missing"]),
        (&["swift"], format!("{HEADER},acked\n"), &[":1: column 8", "`acked` occurs twice"]),
        (&["swift"], format!("{HEADER},set_fabric_cwn\n"), &["did you mean `set_fabric_cwnd`"]),
        (&["swift"], format!("{HEADER}\n{line}\n{line},1\n"), &[":3: 8 cells", "7"]),
        (
            &["swift"],
            format!("{HEADER}\n0,akc,1,1,0,0,1\n"),
            &[":2: column 2", "choose from ack, loss, timeout"],
        ),
        (&["swift"], format!("{HEADER}\n1.5,ack,1,1,0,0,1\n"), &["`time_ps`", "picoseconds"]),
        (&["swift"], format!("{HEADER}\n0,ack,25us,1,0,0,1\n"), &["`25us`", "without a unit"]),
        (&["swift"], format!("{HEADER}\n0,ack,-1,1,0,0,1\n"), &["column 3 (`rtt_ps`)", "`-1`"]),
        (&["swift"], format!("{HEADER}\n0,ack,1,1,0,256,1\n"), &["`hops`", "from 0 to 255"]),
        (&["swift"], format!("{HEADER}\n0,ack,,1,0,0,1\n"), &["`rtt_ps`", "`ack` needs it"]),
        (&["swift"], format!("{HEADER}\n,loss,,,,,\n"), &["`time_ps`", "is empty"]),
        (&["swift"], format!("{HEADER}\n0,,,,,,\n"), &["`event`", "every event needs it"]),
        (&["swift"], format!("{HEADER},marked\n{line},2\n"), &["2 packets marked of 1"]),
        (
            &["swift"],
            format!("{HEADER},set_fabric_cwnd\n{line},0\n"),
            &[":2: column 8 (`set_fabric_cwnd`)", "above 0"],
        ),
        (&["swift"], format!("{HEADER},set_fabric_cwnd\n{line},nan\n"), &["`nan`"]),
        (
            &["dctcp"],
            format!("{HEADER},set_fabric_cwnd\n{line},3\n"),
            &["`set_fabric_cwnd`", "not part of this algorithm's state"],
        ),
        (
            &["swift", "--set", "decompose=false"],
            format!("{HEADER},set_endpoint_cwnd\n{line},3\n"),
            &["`set_endpoint_cwnd`", "`decompose` is false"],
        ),
        (&["swift"], format!("{HEADER}\n{long}\n"), &[":2: the line is longer"]),
        (&["swfit"], format!("{HEADER}\n"), &["did you mean `swift`?"]),
        (&["swift", "--profile", "papr"], format!("{HEADER}\n"), &["did you mean `paper`?"]),
        (&["swift", "--set", "ai"], format!("{HEADER}\n"), &["--set ai: lacks `=`"]),
        (&["swift", "--set", "a=1"], format!("{HEADER}\n"), &["no parameter `a`"]),
        (&["swift", "--set", "base_target=25"], format!("{HEADER}\n"), &["unit is missing"]),
    ]
    .into_iter()
    .enumerate()
    {
        let output = apus(&format!("wrong{index}"), arguments, &log);
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{index}: {stderr}");
        assert_eq!(output.stdout, b"", "{index}: nothing is printed");
        for message in messages {
            assert!(stderr.contains(message), "{index}: {message} is not in {stderr}");
        }
    }
    let output = Command::new(env!("CARGO_BIN_EXE_apus"))
        .args(["replay", "swift", "--trace", "no-such.csv"])
        .output()
        .expect("process");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such.csv: cannot be read"));
}
