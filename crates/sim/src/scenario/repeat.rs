//! `every` of a workload: bursts that come again and again.

use apus_units::Span;

use super::section::Section;
use super::workload::{Demand, Frame, Pattern, Times, Workload};

/// Most bursts of one workload.
const MAX_BURSTS: u64 = 10_000;

/// Reads `every`: the time from the start of one burst to that of the next.
pub(super) fn read(
    section: &Section<'_>,
    kind: Option<&'static str>,
    times: &Times,
    frame: &Frame<'_>,
) -> Option<Span> {
    if kind == Some("trace") {
        section.no_effect("every", "on a trace, whose messages have their own times");
        return None;
    }
    let every: Span = section.get("every")?;
    let Some(stop) = times.stop else {
        section.problem("every", "needs `stop`: when the first burst is over");
        return None;
    };
    let length = stop.saturating_sub(times.start);
    let message = format_args!("is {every}, but a burst lasts {length}; it must not be shorter");
    section.check(every >= length && !every.is_zero(), "every", message);
    let last = times.start.saturating_add(times.spread).saturating_add(every);
    let message = format_args!(
        "is {every}, which has no effect: the run ends at {} before a second burst; remove it",
        frame.duration
    );
    section.check(last < frame.duration, "every", message);
    let bursts = frame.duration.as_ps() / every.as_ps().max(1);
    let message = format_args!("is {every}: that is more than {MAX_BURSTS} bursts");
    section.check(bursts <= MAX_BURSTS, "every", message);
    Some(every)
}

/// The bursts of a workload, each a workload of its own: the first, and then one `every` so often, as long
/// as all of its flows start before the run ends.
pub(super) fn bursts(first: Workload, every: Option<Span>, duration: Span) -> Vec<Workload> {
    let Some(every) = every.filter(|every| !every.is_zero()) else { return vec![first] };
    let spread = match &first.demand {
        Demand::Closed(loops) => loops.start_spread,
        _ => Span::ZERO,
    };
    let mut all = vec![first];
    // What was found wrong above does not get here; the bound holds all the same.
    while (all.len() as u64) < MAX_BURSTS {
        let next = later(&all[all.len() - 1], every, duration);
        if next.start.saturating_add(spread) >= duration {
            break;
        }
        all.push(next);
    }
    all
}

/// The same workload, `by` later. A stop behind the end of the run is none.
fn later(workload: &Workload, by: Span, duration: Span) -> Workload {
    let stop = |stop: Option<Span>| {
        stop.map(|stop| stop.saturating_add(by)).filter(|stop| *stop < duration)
    };
    let mut next = workload.clone();
    next.start = next.start.saturating_add(by);
    next.stop = stop(next.stop);
    if let Demand::Closed(loops) = &mut next.demand
        && let Pattern::Flows(flows) = &mut loops.pattern
    {
        for flow in flows {
            flow.start = flow.start.saturating_add(by);
            flow.stop = stop(flow.stop);
        }
    }
    next
}
