//! The faults of a run: which links fail, and when.

use apus_sim::plan::Fault;
use apus_sim::random::{Purpose, Stream};
use apus_units::{Span, Time};

use super::{FaultSpec, Repeat};
use crate::set::Topology;

/// Returns the faults of each direction of each link. The run ends at `end`, its drain included.
pub(crate) fn plan_faults(
    specs: &[FaultSpec],
    topology: &Topology,
    seed: u64,
    end: Span,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut removed = vec![false; topology.links.len()];
    for (index, spec) in (0..).zip(specs) {
        let chosen =
            choose(spec, topology, &mut removed, Stream::new(seed, Purpose::Failure, index));
        for unit in chosen {
            let entity = (index + 1) << 32 | unit as u64;
            let times = times(spec, end, Stream::new(seed, Purpose::Failure, entity));
            for (at, until) in times {
                let kind = spec.kind;
                faults.extend(spec.units[unit].iter().map(|&port| Fault { port, at, until, kind }));
            }
        }
    }
    faults
}

/// Returns the units that fail. Links that are down at any time count as `removed`.
fn choose(
    spec: &FaultSpec,
    topology: &Topology,
    removed: &mut Vec<bool>,
    mut stream: Stream,
) -> Vec<usize> {
    let all = 0..spec.units.len();
    let links = |unit: usize| spec.units[unit].iter().map(|port| port.index() / 2);
    let mut chosen: Vec<usize> = match spec.choice {
        None => all.collect(),
        // Fewer than 2^32 links.
        Some(choice) => {
            let order = stream.permutation(spec.units.len() as u32);
            let mut chosen = Vec::new();
            for unit in order.into_iter().map(|unit| unit as usize) {
                if chosen.len() == choice.count {
                    break;
                }
                if choice.keep_paths {
                    let mut without = removed.clone();
                    links(unit).for_each(|link| without[link] = true);
                    if !topology.keeps_shortest_paths(&without) {
                        continue;
                    }
                    *removed = without;
                }
                chosen.push(unit);
            }
            chosen
        }
    };
    if spec.is_down() {
        chosen.iter().flat_map(|&unit| links(unit)).for_each(|link| removed[link] = true);
    }
    chosen.sort_unstable();
    chosen
}

/// Returns when a unit fails.
fn times(spec: &FaultSpec, end: Span, mut stream: Stream) -> Vec<(Time, Time)> {
    let time = |at: Span| Time::ZERO + at;
    let last = spec.until.unwrap_or(end);
    let Some(Repeat { lasts, every, is_random }) = spec.repeat else {
        return vec![(time(spec.at), spec.until.map_or(Time::MAX, time))];
    };
    let gap = every.saturating_sub(lasts);
    let mut draw = || if is_random { gap.mul_f64(stream.exponential()) } else { gap };
    let mut all = Vec::new();
    let mut at = if is_random { spec.at.saturating_add(draw()) } else { spec.at };
    while at < last {
        let until = at.saturating_add(lasts);
        // A fault that is cut off by the end of the run has no end.
        let is_open = until > last && spec.until.is_none();
        all.push((time(at), if is_open { Time::MAX } else { time(until.min(last)) }));
        at = until.saturating_add(draw());
    }
    all
}
