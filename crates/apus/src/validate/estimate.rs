//! Run time estimated from the start of a run.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use apus_scenario::Setup;
use apus_scenario::experiment::{Threads, run_all};
use apus_sim::Watch;
use apus_units::Span;
use serde::Serialize;

/// Number of events in the executed start of a run, which takes a few hundredths of a second.
const PROBE_EVENTS: u64 = 300_000;

/// Estimated cost of a run on one thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Number of events until `duration`.
    pub events: u64,
    /// Time on this machine until `duration`, in seconds.
    pub seconds: f64,
    /// Maximum number of events of the drain: those of a drain that lasts until its limit.
    pub drain_events: u64,
    /// Maximum time of the drain on this machine, in seconds.
    pub drain_seconds: f64,
    /// `true` if the run ended within its executed start. The numbers are then measured, and the first two include the
    /// drain.
    pub measured: bool,
}

/// Progress of a run after a step.
#[derive(Clone, Copy)]
struct Point {
    /// Simulated time, in seconds.
    simulated: f64,
    events: f64,
    /// Real time, in seconds, including the construction of the network.
    real: f64,
}

/// Estimates the events and the time of a run on one thread. The number of events does not depend on the machine.
/// `watch` may end the execution early.
///
/// # Errors
/// If the run fails during the executed start.
pub fn estimate(setup: &Setup, watch: &Watch) -> Result<Estimate, String> {
    let points: Mutex<Vec<Point>> = Mutex::new(Vec::new());
    let started = Instant::now();
    let one = NonZeroUsize::MIN;
    // The end of this execution must not be mistaken for an end that the user requested.
    let own = Watch { stop: Arc::default(), ..watch.clone() };
    let results = run_all(std::slice::from_ref(setup), one, Threads::Exactly(1), &own, &|step| {
        let progress = step.progress;
        if let Ok(mut points) = points.lock() {
            points.push(Point {
                simulated: progress.simulated.as_secs_f64(),
                events: progress.events as f64,
                real: started.elapsed().as_secs_f64(),
            });
        }
        if progress.events >= PROBE_EVENTS || watch.stop.load(Ordering::Relaxed) {
            own.stop.store(true, Ordering::Relaxed);
        }
    });
    let real = started.elapsed().as_secs_f64();
    let summary = results.into_iter().next().unwrap_or_else(|| Err("no run".to_owned()))?;
    let points = points.into_inner().unwrap_or_default();
    let phases = [setup.duration(), setup.drain()].map(Span::as_secs_f64);
    Ok(if summary.interrupted {
        extrapolate(&points, phases)
    } else {
        let events = summary.work.events;
        Estimate { events, seconds: real, drain_events: 0, drain_seconds: 0.0, measured: true }
    })
}

/// Extrapolates to a whole run of `duration` simulated seconds, and to at most its `drain`, from the points of its
/// start. The rates of the second half of the events are used for the rest, because the flows have started by then.
fn extrapolate(points: &[Point], [duration, drain]: [f64; 2]) -> Estimate {
    let none = Point { simulated: 0.0, events: 0.0, real: 0.0 };
    let last = points.last().copied().unwrap_or(none);
    let half = points.iter().find(|point| point.events >= last.events / 2.0).unwrap_or(&last);
    // If there is only one step, all events count.
    let from = if half.simulated < last.simulated { *half } else { none };
    let rate = (last.events - from.events) / (last.simulated - from.simulated).max(1e-12);
    let cost = (last.real - from.real) / (last.events - from.events).max(1.0);
    let rest = rate * (duration - last.simulated).max(0.0);
    let further = rate * drain;
    Estimate {
        events: (last.events + rest) as u64,
        seconds: last.real + cost * rest,
        drain_events: further as u64,
        drain_seconds: cost * further,
        measured: false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Estimate, Point, extrapolate};

    fn point(simulated: f64, events: f64, real: f64) -> Point {
        Point { simulated, events, real }
    }

    /// 100 events in the first second, then 50 per second, each of 10 ms: in 11 s, 600 events and 6 s, and 2 s
    /// in which the network was built. A drain of 4 s has at most 200 events, which take 2 s.
    #[test]
    fn the_rate_of_the_second_half_holds_for_the_rest() {
        let points = [point(1.0, 100.0, 3.0), point(2.0, 150.0, 3.5), point(3.0, 200.0, 4.0)];
        let expected = Estimate {
            events: 600,
            seconds: 8.0,
            drain_events: 200,
            drain_seconds: 2.0,
            measured: false,
        };
        assert_eq!(extrapolate(&points, [11.0, 4.0]), expected);
    }

    #[test]
    fn a_single_step_is_enough() {
        let found = extrapolate(&[point(1.0, 128.0, 0.5)], [4.0, 0.0]);
        assert_eq!((found.events, found.seconds, found.drain_events), (512, 2.0, 0));
        let found = extrapolate(&[], [1.0, 1.0]);
        assert_eq!((found.events, found.seconds, found.drain_events), (0, 0.0, 0));
    }
}
