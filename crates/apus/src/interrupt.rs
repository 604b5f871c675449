//! Early ends of runs: Ctrl-C, and the watchdog for runs without progress.

use std::fmt;
use std::process::exit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use apus_sim::{Tell, Watch};
use apus_units::Span;

use crate::failure::{Failure, INTERRUPTED};

/// Default span of the watchdog: ten times the longest gap between packets, which occurs with a window of 0.001 packets
/// and an RTT of 100 us.
pub const DEFAULT_SILENCE: &str = "1s";

/// Requests to end that are handled within this time of the first one are the same request. deviation: `timeout` sends its
/// signal to the process and to its group at once, and a person needs longer to decide on a second Ctrl-C.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// Maximum number of warnings of a command, over all runs.
const TOLD: usize = 20;

/// Reads `--watchdog`.
pub fn read_silence(text: &str) -> Result<Silence, String> {
    if text == "off" {
        return Ok(Silence(None));
    }
    match text.parse::<Span>() {
        Ok(span) if !span.is_zero() => Ok(Silence(Some(span))),
        Ok(_) => Err("it must be longer than 0; `off` turns it off".to_owned()),
        Err(error) => Err(format!("{error}; `off` turns it off")),
    }
}

/// Maximum time of a run without progress, if there is a limit.
#[derive(Clone, Copy)]
pub struct Silence(pub Option<Span>);

/// Displays the span in the form that [`read_silence`] accepts.
impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(span) => span.fmt(f),
            None => f.write_str("off"),
        }
    }
}

/// Requests to end the process: Ctrl-C, keys, and the signals of service managers and of `timeout`.
static REQUESTS: Requests = Requests { first: OnceLock::new() };

struct Requests {
    first: OnceLock<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
enum Request {
    First,
    /// A repetition of the first one.
    Same,
    Second,
}

impl Requests {
    fn kind(&self, now: Instant) -> Request {
        match self.first.get() {
            Some(first) if now.duration_since(*first) < SAME_REQUEST => Request::Same,
            Some(_) => Request::Second,
            // Two threads that take the first request at the same time have the same one.
            None if self.first.set(now).is_err() => Request::Same,
            None => Request::First,
        }
    }
}

/// Takes a request to end, and returns `true` if it is the first one. The second one, a second later or more, ends the
/// process.
pub fn is_first_request() -> bool {
    match REQUESTS.kind(Instant::now()) {
        Request::First => true,
        Request::Same => false,
        Request::Second => {
            #[cfg(feature = "live")]
            crate::live::restore();
            exit(INTERRUPTED.into())
        }
    }
}

/// Handles Ctrl-C and requests to terminate from now on. The first one ends the runs at their next step and keeps their
/// results; the second one, a second later or more, ends the process.
pub fn watch(silence: Silence) -> Result<Watch, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if is_first_request() {
            flag.store(true, Ordering::Relaxed);
        }
    })
    .map_err(|error| Failure::Run(format!("Ctrl-C cannot be watched for: {error}")))?;
    let told = AtomicUsize::new(0);
    let tell = move |run: &str, what: &str| match told.fetch_add(1, Ordering::Relaxed) {
        0..TOLD => eprintln!("warning: {run}: {what}"),
        TOLD => eprintln!("warning: further flows without progress are only in the results"),
        _ => {}
    };
    Ok(Watch { stop, silence: silence.0, tell: Some(Tell(Arc::new(tell))), ..Watch::default() })
}

/// Returns `true` if the user has asked to end the runs.
pub fn interrupted(watch: &Watch) -> bool {
    watch.stop.load(Ordering::Relaxed)
}

/// Returns the failure of an interrupted command, with the messages of earlier failures.
pub fn failure(message: String, failures: &[String]) -> Failure {
    let lines: Vec<&str> =
        std::iter::once(message.as_str()).chain(failures.iter().map(String::as_str)).collect();
    Failure::Interrupted(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_sent_twice_at_once_is_one_request() {
        let (requests, now) = (Requests { first: OnceLock::new() }, Instant::now());
        assert_eq!(requests.kind(now), Request::First);
        assert_eq!(requests.kind(now), Request::Same);
        assert_eq!(requests.kind(now + SAME_REQUEST / 2), Request::Same);
        assert_eq!(requests.kind(now + SAME_REQUEST), Request::Second);
    }
}
