//! Round trips one after the other, as `apus ping` and `apus bench udp` measure them.

use std::time::{Duration, Instant};

use apus_udp::{Bytes, Connection, Message, Request};

use crate::failure::Failure;

/// Round trips of one measurement.
#[derive(Default)]
pub struct RoundTrips {
    /// Their durations, microseconds.
    pub times_us: Vec<f64>,
    /// Age of the one that failed, microseconds.
    pub open_us: Option<f64>,
    /// Why the measurement ended early.
    pub failure: Option<Failure>,
}

/// Measures round trips while `continues` returns `true`; its argument is the number of those that have ended. `pause`
/// gets the duration of the last one and waits until the next one begins.
pub fn repeat(
    mut continues: impl FnMut(usize) -> Result<bool, Failure>,
    mut round_trip: impl FnMut() -> Result<(), String>,
    mut pause: impl FnMut(Duration),
) -> RoundTrips {
    let mut done = RoundTrips::default();
    loop {
        match continues(done.times_us.len()) {
            Ok(true) => {}
            Ok(false) => return done,
            Err(failure) => {
                done.failure = Some(failure);
                return done;
            }
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
        pause(duration);
    }
}

/// Sends a message and waits for the peer's answer.
pub fn exchange(connection: &Connection, message: Bytes) -> Result<Message, String> {
    connection.submit(Request::message(message)).map_err(|error| error.to_string())?;
    connection.receive().map_err(|end| end.to_string())
}
