//! The flows that a fault slowed, and the duration of their slowdown.

use super::Recording;
use crate::columns::{FaultRecord, SlowedFlow};

/// Multiple of the median slowdown above which an op makes its flow count as slowed. deviation: no source;
/// rationale: a flow that shares a link with one other flow is that slow without a fault.
const SLOWDOWN_FACTOR: f64 = 2.0;
/// Maximum number of faults that are examined, in order of their start; faults that last for the whole
/// measured phase are skipped. Rationale: each takes a step per op.
const MAX_FAULTS: usize = 64;
/// Maximum number of slowed flows that are listed per fault. Rationale: more than a page lists.
const MAX_NAMED: usize = 64;

/// An op: its flow, its time in microseconds, the time on the unloaded network, and its slowdown, which is
/// infinite if the op had not ended.
#[derive(Clone, Copy)]
struct Seen {
    flow: usize,
    from: f64,
    to: f64,
    ideal: f64,
    slowdown: f64,
}

/// The slowest op of a flow during a fault. `fresh`: the op was not as slow already when the fault began, for
/// example because it waited for earlier ops of its flow. A fresh op precedes slower ops that are not.
#[derive(Clone, Copy, Default, PartialEq, PartialOrd)]
struct Worst {
    fresh: bool,
    slowdown: f64,
}

impl Seen {
    fn overlaps(&self, (from, to): (f64, f64)) -> bool {
        self.from <= to && self.to >= from
    }
}

impl Recording {
    /// Records for each fault the flows that it slowed.
    pub(crate) fn note_slowed(&mut self) {
        let (warmup, duration) = (self.warmup.as_ps() as f64 * 1e-6, self.duration.as_us_f64());
        let lasts = |fault: &FaultRecord| {
            let (from, to) = time_of(fault);
            from <= warmup && to >= duration
        };
        let looked_at: Vec<usize> = (0..self.faults.len())
            .filter(|&index| self.faults[index].fault.is_some() && !lasts(&self.faults[index]))
            .take(MAX_FAULTS)
            .collect();
        if looked_at.is_empty() {
            return;
        }
        let times: Vec<_> = looked_at.iter().map(|&index| time_of(&self.faults[index])).collect();
        let ops = self.seen();
        let apart = ops.iter().filter(|op| !times.iter().any(|time| op.overlaps(*time)));
        let mut apart: Vec<f64> = apart.map(|op| op.slowdown).collect();
        apart.sort_unstable_by(f64::total_cmp);
        let limit = SLOWDOWN_FACTOR * apart.get(apart.len() / 2).copied().unwrap_or(1.0);
        let mut worst = vec![Worst::default(); self.flows.len()];
        for index in looked_at {
            let time = time_of(&self.faults[index]);
            worst.fill(Worst::default());
            let mut until = time.0;
            for op in ops.iter().filter(|op| op.slowdown >= limit && op.overlaps(time)) {
                let fresh = time.0 - op.from < limit * op.ideal;
                let one = Worst { fresh, slowdown: op.slowdown };
                if one > worst[op.flow] {
                    worst[op.flow] = one;
                }
                until = until.max(op.to);
            }
            let mut slowed: Vec<usize> =
                (0..worst.len()).filter(|&flow| worst[flow].slowdown > 0.0).collect();
            // Of equal flows, the last one comes first.
            slowed.sort_by(|&a, &b| {
                let (x, y) = (worst[a], worst[b]);
                y.fresh.cmp(&x.fresh).then(y.slowdown.total_cmp(&x.slowdown)).then(b.cmp(&a))
            });
            let fault = &mut self.faults[index];
            fault.slowed_flows = Some(slowed.len() as u64);
            fault.slowed_most = slowed.first().map(|&flow| {
                let flow = &self.flows[flow];
                format!("{} -> {}", flow.from, flow.to)
            });
            fault.slowed_until_us = (!slowed.is_empty()).then_some(until);
            let before = slowed.iter().filter(|&&flow| !worst[flow].fresh).count();
            fault.slowed_before = before as u64;
            let named = slowed.into_iter().take(MAX_NAMED).map(|flow| SlowedFlow {
                flow: flow as u32,
                slowdown: worst[flow].slowdown,
                before: !worst[flow].fresh,
            });
            fault.slowed = named.collect();
        }
    }

    fn seen(&self) -> Vec<Seen> {
        let us = |time: apus_units::Time| time.as_ps() as f64 * 1e-6;
        let ideal = |flow: u32, size| {
            self.flows[flow as usize].ideal.completion_time(size, self.sizes).as_us_f64()
        };
        let ended = self.ops.iter().map(|op| Seen {
            flow: op.flow as usize,
            from: us(op.submitted),
            to: us(op.completed),
            ideal: ideal(op.flow, op.size),
            slowdown: self.slowdown(op),
        });
        let open = self.open_ops.iter().map(|op| Seen {
            flow: op.flow as usize,
            from: us(op.submitted),
            to: us(op.submitted + op.age),
            ideal: ideal(op.flow, op.size),
            slowdown: f64::INFINITY,
        });
        ended.chain(open).collect()
    }
}

/// Returns the start and end of a fault in microseconds.
fn time_of(fault: &FaultRecord) -> (f64, f64) {
    (fault.at_us, fault.until_us.unwrap_or(f64::INFINITY))
}
