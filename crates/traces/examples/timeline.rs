//! Writes a timeline with a flow and a queue.
#![allow(clippy::print_stdout)] // an example prints its result

use apus_traces::perfetto::{Detail, Timeline};
use apus_units::{Span, Time};

fn main() -> std::io::Result<()> {
    let at = |us| Time::ZERO + Span::from_us(us);
    let mut timeline = Timeline::new(Vec::new());
    let flow = timeline.track("flow 0: host 0 -> host 1", None)?;
    timeline.slice(flow, (at(0), at(12)), "write", &[("size_bytes", Detail::Count(64_000))])?;
    let queue = timeline.counter("switch 0 -> host 1, queue", "bytes", None)?;
    timeline.value(queue, at(3), 4500.0)?;
    println!("{} bytes for ui.perfetto.dev", timeline.finish()?.len());
    Ok(())
}
