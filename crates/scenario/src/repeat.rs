//! `every` of a workload: repeated bursts.

use apus_units::Span;

use super::frame::{Frame, Times};
use super::section::Section;

/// Maximum number of bursts of one workload.
pub(super) const MAX_BURSTS: u64 = 10_000;

/// Reads `every`: the time from the start of one burst to that of the next.
pub(super) fn read(
    section: &Section<'_>,
    kind: Option<&'static str>,
    times: &Times,
    frame: &Frame<'_>,
) -> Option<Span> {
    if kind == Some("trace") {
        section.no_effect("every", "on a trace, whose messages have start times");
        return None;
    }
    let every: Span = section.get("every")?;
    let Some(stop) = times.stop else {
        section.problem("every", "needs `stop`: when the first burst is over");
        return None;
    };
    let length = stop.saturating_sub(times.start);
    let message = format_args!("is {every}, but a burst lasts {length}; it must not be shorter");
    section.check(every >= length, "every", message);
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
