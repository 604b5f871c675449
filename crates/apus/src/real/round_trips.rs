//! Successive round trips, as `apus ping` and `apus bench udp` measure them.

use std::time::{Duration, Instant};

use apus_udp::{Bytes, Connection, Message, Request};

use crate::failure::Failure;

/// Round trips of one measurement.
#[derive(Default)]
pub struct RoundTrips {
    /// Durations of the completed round trips, microseconds.
    pub times_us: Vec<f64>,
    /// Age of the failed round trip, microseconds.
    pub open_us: Option<f64>,
    /// Reason why the measurement ended early.
    pub failure: Option<Failure>,
}

/// Measures round trips while `continues`, called with the number of completed round trips, returns `true`. Before each
/// further round trip, calls `pause` with the duration of the last one, which waits until the next may begin, and then
/// calls `continues` again.
pub fn repeat(
    mut continues: impl FnMut(usize) -> Result<bool, Failure>,
    mut round_trip: impl FnMut() -> Result<(), String>,
    mut pause: impl FnMut(Duration),
) -> RoundTrips {
    let mut done = RoundTrips::default();
    let mut last = None;
    loop {
        match continues(done.times_us.len()) {
            Ok(true) => {}
            Ok(false) => return done,
            Err(failure) => {
                done.failure = Some(failure);
                return done;
            }
        }
        if let Some(duration) = last.take() {
            pause(duration);
            continue;
        }
        let from = Instant::now();
        let result = round_trip();
        let duration = from.elapsed();
        let us = duration.as_secs_f64() * 1e6;
        if let Err(why) = result {
            done.open_us = Some(us);
            done.failure = Some(Failure::Run(why));
            return done;
        }
        done.times_us.push(us);
        last = Some(duration);
    }
}

/// Sends a message and waits for the peer's answer.
pub fn exchange(connection: &Connection, message: Bytes) -> Result<Message, String> {
    connection.submit(Request::message(message)).map_err(|error| error.to_string())?;
    connection.receive().map_err(|end| end.to_string())
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::{Failure, repeat};

    #[test]
    fn pauses_are_between_round_trips_and_an_interrupt_ends_one() {
        let (seen, interrupted) = (RefCell::new(Vec::new()), Cell::new(false));
        let run = |most: usize, interrupt: bool| {
            repeat(
                |ended| match interrupted.get() {
                    true => Err(Failure::Interrupted("interrupted".to_owned())),
                    false => Ok(ended < most),
                },
                || {
                    seen.borrow_mut().push("message");
                    Ok(())
                },
                |_| {
                    seen.borrow_mut().push("pause");
                    interrupted.set(interrupt);
                },
            )
        };
        assert!(run(2, false).failure.is_none());
        assert_eq!(seen.take(), ["message", "pause", "message"]);
        let done = run(2, true);
        assert!(done.failure.is_some() && done.times_us.len() == 1);
        assert_eq!(seen.take(), ["message", "pause"]);
    }
}
