//! Helpers that several tests of the command share.

pub mod command;
pub mod help;
#[cfg(feature = "real")]
pub mod server;

use std::fs;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Sends Ctrl-C to a process once it handles the signal; earlier, the signal would end the process without a message.
pub fn interrupt(child: &Child) {
    let until = Instant::now() + Duration::from_secs(60);
    while !listens(child.id()) {
        assert!(Instant::now() < until, "it never listens for Ctrl-C");
        sleep(Duration::from_millis(20));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
}

/// Waits until the process has used 0.3 s of processor time, so that its run has begun even on a busy machine.
pub fn begun(child: &mut Child) {
    let stat = format!("/proc/{}/stat", child.id());
    let ticks = || {
        let stat = fs::read_to_string(&stat).unwrap_or_default();
        // The format is "pid (name) state ...": user and system time are the 12th and 13th words after the name.
        let words = stat.rsplit_once(')').map_or("", |(_, words)| words).split_whitespace();
        words.skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum::<u64>()
    };
    let until = Instant::now() + Duration::from_secs(300);
    while ticks() < 30 {
        assert_eq!(child.try_wait().expect("process"), None, "it ended before its run began");
        assert!(Instant::now() < until, "it did not get 0.3 s of processor time in five minutes");
        sleep(Duration::from_millis(10));
    }
}

/// Waits for a condition, at most a minute.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let from = Instant::now();
    while !done() {
        assert!(from.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        sleep(Duration::from_millis(1));
    }
}

/// Returns `true` if a process handles SIGINT, which is signal 2: the second bit of its mask of caught signals.
fn listens(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 2 != 0)
}
