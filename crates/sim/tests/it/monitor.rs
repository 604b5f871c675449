//! The state of a run in progress.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{Plan, Simulation, Tier, Topology, connection, fingerprint, plan, run};
use apus_sim::monitor::{Monitor, State};
use apus_sim::summary::Summary;
use apus_sim::{Progress, Watch};
use apus_units::{Bytes, Rate, Span};

/// Four hosts send to the fifth without end, through one switch.
fn incast() -> Plan {
    let tier = |of: fn(Rate, Span, Bytes) -> Tier| {
        of(Rate::from_gbps(100), Span::from_us(1), Bytes::new(8 << 20))
    };
    let topology = Topology::star(5, &tier(Tier::hosts));
    let flows = (0..4).map(|from| connection(("swift", &[]), from, 4, 1_000_000));
    let mut plan = plan(topology, flows.collect(), Span::from_ms(2));
    plan.warmup = Span::from_us(500);
    plan
}

/// Returns the results of a run and all of its states.
fn watched(threads: u32) -> (Summary, Vec<State>) {
    let heard: Arc<Mutex<Vec<State>>> = Arc::default();
    let log = Arc::clone(&heard);
    let hear = move |run: &str, state| {
        assert_eq!(run, "test");
        log.lock().expect("log").push(state);
    };
    let monitor = Monitor { interval: Duration::ZERO, hear: Arc::new(hear) };
    let watch = Watch { monitor: Some(monitor), ..Watch::default() };
    let simulation = Simulation::with_threads(&incast(), threads).expect("plan").watched_by(&watch);
    let summary = simulation.run("test", &mut |_| {}).expect("run");
    let states = heard.lock().expect("log").clone();
    (summary, states)
}

#[test]
fn states_have_the_queue_of_an_incast_and_the_utilisation_of_its_link() {
    for threads in [1, 2] {
        let (_, states) = watched(threads);
        assert!(!states.is_empty());
        let mut before = State::default();
        for state in &states {
            assert!(state.simulated > before.simulated);
            assert!(state.delivered_bytes >= before.delivered_bytes && state.ops >= before.ops);
            // At most the bytes that the link into host 4 can carry: 12,500 bytes per us.
            let most = state.simulated.as_secs_f64() * 12.5e9;
            assert!((state.delivered_bytes as f64) <= most, "{state:?}");
            let named: u64 = state.longest_queues.iter().map(|queue| queue.bytes).sum();
            assert!(named <= state.queued_bytes, "{state:?}");
            before = state.clone();
        }
        // All hosts send without end, so the link into host 4 is the bottleneck and fully used.
        let (last, busy) =
            (&states[states.len() - 1], |state: &State| state.by_utilisation[9] >= 1);
        assert!(busy(last), "{last:?}");
        let queue = &last.longest_queues[0];
        assert!(queue.port.ends_with("h4") || queue.port.contains("host 4"), "{queue:?}");
        assert!(queue.utilisation > 0.9, "{queue:?}");
    }
}

/// In the drain the link into host 4 also carries 12,500 bytes per us, and progress has the events of all parts.
#[test]
fn bytes_and_events_count_once_in_the_drain_of_several_parts() {
    let mut plan = incast();
    plan.drain = Span::from_ms(1);
    let most = (plan.duration + plan.drain).as_secs_f64() * 12.5e9;
    for threads in [1, 2] {
        // Number of steps since the end of the measured phase, and the states by this number.
        let steps: Arc<AtomicU32> = Arc::default();
        let heard: Arc<Mutex<Vec<(u32, State)>>> = Arc::default();
        let (now, log) = (Arc::clone(&steps), Arc::clone(&heard));
        let hear = move |_: &str, state| {
            log.lock().expect("log").push((now.load(Ordering::Relaxed), state));
        };
        let monitor = Monitor { interval: Duration::ZERO, hear: Arc::new(hear) };
        let watch = Watch { monitor: Some(monitor), ..Watch::default() };
        let simulation = Simulation::with_threads(&plan, threads).expect("plan").watched_by(&watch);
        let mut events = 0;
        let mut progress = |progress: Progress| {
            events = progress.events;
            let is_over = progress.simulated == progress.duration;
            let step = steps.fetch_add(u32::from(is_over), Ordering::Relaxed);
            let waits = step > 0 && !heard.lock().expect("log").iter().any(|(step, _)| *step > 1);
            if waits {
                // Waits until the pause after the previous state is over.
                sleep(Duration::from_millis(10) * 2_u32.pow(step.min(12)));
            }
        };
        let summary = simulation.run("test", &mut progress).expect("run");
        assert_eq!(events, summary.work.events, "{threads} threads");
        let states = heard.lock().expect("log");
        assert!(states.iter().any(|(steps, _)| *steps > 1), "no state in the drain");
        for (_, state) in states.iter() {
            assert!((state.delivered_bytes as f64) <= most, "{threads} threads: {state:?}");
        }
    }
}

#[test]
fn a_run_that_is_watched_has_the_results_of_one_that_is_not() {
    let (mut watched, states) = watched(1);
    let mut alone = run(&incast());
    assert!(!states.is_empty());
    (watched.cost, alone.cost) = Default::default();
    assert_eq!(fingerprint(&watched), fingerprint(&alone));
}
