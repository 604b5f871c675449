//! Time of a run, estimated from its beginning.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Instant;

use apus_scenario::Setup;
use apus_scenario::experiment::run_all;
use apus_sim::Watch;
use serde::Serialize;

/// Number of events after which the beginning of a run ends: a few hundredths of a second.
const PROBE_EVENTS: u64 = 300_000;

/// What a run takes on one thread.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Estimate {
    /// Number of events.
    pub events: u64,
    /// Time on this machine, in seconds.
    pub seconds: f64,
    /// Whether the run has ended within its beginning, so that these numbers are not estimates.
    pub measured: bool,
}

/// A step of a run.
#[derive(Clone, Copy)]
struct Point {
    /// Simulated time, in seconds.
    simulated: f64,
    events: f64,
    /// Real time, in seconds, with the construction of the network.
    real: f64,
}

/// Estimates the events and the time of a run on one thread. The number of events does not depend on the machine.
///
/// # Errors
/// The run fails at its beginning.
pub fn estimate(setup: &Setup) -> Result<Estimate, String> {
    let watch = Watch::default();
    let points: Mutex<Vec<Point>> = Mutex::new(Vec::new());
    let started = Instant::now();
    let one = NonZeroUsize::MIN;
    let results = run_all(std::slice::from_ref(setup), one, 1, &watch, &|step| {
        let progress = step.progress;
        if let Ok(mut points) = points.lock() {
            points.push(Point {
                simulated: progress.simulated.as_secs_f64(),
                events: progress.events as f64,
                real: started.elapsed().as_secs_f64(),
            });
        }
        if progress.events >= PROBE_EVENTS {
            watch.stop.store(true, Ordering::Relaxed);
        }
    });
    let real = started.elapsed().as_secs_f64();
    let summary = results.into_iter().next().unwrap_or_else(|| Err("no run".to_owned()))?;
    if !summary.interrupted {
        return Ok(Estimate { events: summary.work.events, seconds: real, measured: true });
    }
    let points = points.into_inner().unwrap_or_default();
    let (events, seconds) = extrapolate(&points, setup.duration().as_secs_f64());
    Ok(Estimate { events: events as u64, seconds, measured: false })
}

/// Returns the events and the real time of a whole run of `duration` simulated seconds, from the points of its
/// beginning. The rates of the second half of the events hold for the rest: they begin after the start of the flows.
fn extrapolate(points: &[Point], duration: f64) -> (f64, f64) {
    let Some(last) = points.last() else { return (0.0, 0.0) };
    let half = points.iter().find(|point| point.events >= last.events / 2.0).unwrap_or(last);
    let none = Point { simulated: 0.0, events: 0.0, real: 0.0 };
    // A single step has all of the events.
    let from = if half.simulated < last.simulated { *half } else { none };
    let rate = (last.events - from.events) / (last.simulated - from.simulated).max(1e-12);
    let cost = (last.real - from.real) / (last.events - from.events).max(1.0);
    let rest = rate * (duration - last.simulated).max(0.0);
    (last.events + rest, last.real + cost * rest)
}

#[cfg(test)]
mod tests {
    use super::{Point, extrapolate};

    fn point(simulated: f64, events: f64, real: f64) -> Point {
        Point { simulated, events, real }
    }

    /// 100 events in the first second, then 50 per second, each of 10 ms: in 11 s, 600 events and 6 s, and 2 s
    /// in which the network was built.
    #[test]
    fn the_rate_of_the_second_half_holds_for_the_rest() {
        let points = [point(1.0, 100.0, 3.0), point(2.0, 150.0, 3.5), point(3.0, 200.0, 4.0)];
        let (events, seconds) = extrapolate(&points, 11.0);
        assert!(
            (events - 600.0).abs() < 1e-9 && (seconds - 8.0).abs() < 1e-9,
            "{events} {seconds}"
        );
    }

    #[test]
    fn a_single_step_is_enough() {
        let (events, seconds) = extrapolate(&[point(1.0, 100.0, 0.5)], 4.0);
        assert!(
            (events - 400.0).abs() < 1e-9 && (seconds - 2.0).abs() < 1e-9,
            "{events} {seconds}"
        );
        assert_eq!(extrapolate(&[], 1.0), (0.0, 0.0));
    }
}
