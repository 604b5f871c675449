//! Harm of a failure, compared with the run without it.

use apus_sim::bounds::Bounds;
use apus_sim::columns::FaultRecord;
use apus_sim::record::Recording;
use apus_sim::summary::Summary;
use apus_units::{Span, Time};

/// Factor by which an op must exceed the longest op of its flow in the run without the failure to count as delayed.
/// deviation: no source; rationale: the last decimal of a latency changes with any change of a run.
const DELAYED: f64 = 1.1;
/// Largest relative change of the metric that counts as no change.
const SAME: f64 = 0.01;

/// The run without the failure.
pub(super) struct Healthy {
    pub(super) metric: String,
    pub(super) value: Bounds,
    pub(super) unfinished: u64,
    pub(super) lost: u64,
    /// Duration of the longest op by flow; for unfinished ops, their age.
    longest: Vec<Span>,
    /// Faults of the scenario itself, and the reactions to them.
    faults: Vec<FaultRecord>,
}

/// Harm of a failure.
#[derive(Clone, Debug)]
pub(super) struct Harm {
    /// Reason why the run ended early for lack of progress; its numbers cannot be compared.
    pub(super) stopped: Option<String>,
    /// Value of the metric; `None` if the run does not have the metric or ended early.
    pub(super) value: Option<Bounds>,
    /// Unfinished ops, and unfinished operations of jobs.
    pub(super) unfinished: u64,
    pub(super) lost: u64,
    /// Number of flows with delayed ops.
    pub(super) flows: u64,
    /// The flow with the op that exceeds the flow's longest op by most, and that excess.
    pub(super) worst: Option<(String, Span)>,
    /// Time from the start of the failure to the end of the last delayed op.
    pub(super) lasted: Option<Span>,
    /// Time from the start of the failure until the load of the neighbouring links was even again.
    pub(super) even_after_us: Option<f64>,
}

fn unfinished(summary: &Summary) -> u64 {
    summary.measured.unfinished_ops + summary.jobs.iter().map(|job| job.unfinished).sum::<u64>()
}

fn metric(summary: &Summary, name: &str) -> Option<Bounds> {
    Bounds::of_metric(&serde_json::to_value(summary).ok()?, name)
}

/// Returns the ops of a run: flow, latency and end; for an unfinished op, its age and the end of the run.
fn ops(recording: &Recording) -> impl Iterator<Item = (usize, Span, Time)> + '_ {
    let ended = recording.ops.iter().map(|op| (op.flow as usize, op.latency(), op.completed));
    let open = recording.open_ops.iter();
    ended.chain(open.map(|op| (op.flow as usize, op.age, op.submitted + op.age)))
}

impl Healthy {
    pub(super) fn new(summary: &Summary, name: &str) -> Result<Self, String> {
        let value = metric(summary, name)
            .ok_or_else(|| format!("{}: the run has no value of {name}", summary.name))?;
        let (mut longest, mut faults) = (Vec::new(), Vec::new());
        if let Some(recording) = &summary.recording {
            longest = vec![Span::ZERO; recording.flows.len()];
            for (flow, latency, _) in ops(recording) {
                longest[flow] = longest[flow].max(latency);
            }
            faults.clone_from(&recording.faults);
        }
        let (metric, lost) = (name.to_owned(), summary.losses.packets);
        Ok(Self { metric, value, unfinished: unfinished(summary), lost, longest, faults })
    }

    /// Returns `true` for a fault that also occurs in the run without the failure.
    fn has(&self, fault: &FaultRecord) -> bool {
        let same = |own: &FaultRecord| {
            (own.kind, &own.subject, own.at_us) == (fault.kind, &fault.subject, fault.at_us)
        };
        self.faults.iter().any(same)
    }

    /// Compares a run with a failure.
    pub(super) fn harm(&self, summary: &Summary) -> Harm {
        let stopped = summary.stop_reason.clone();
        let mut harm = Harm {
            value: metric(summary, &self.metric).filter(|_| stopped.is_none()),
            stopped,
            unfinished: unfinished(summary),
            lost: summary.losses.packets,
            flows: 0,
            worst: None,
            lasted: None,
            even_after_us: None,
        };
        let Some(recording) = &summary.recording else { return harm };
        // The scenario's own faults may begin before the failure, and last longer.
        let tried = || recording.faults.iter().filter(|fault| !self.has(fault));
        let first = tried().map(|fault| fault.at_us).min_by(f64::total_cmp);
        let begin = Time::ZERO + Span::from_ps((first.unwrap_or(0.0) * 1e6) as u64);
        let again = tried().filter_map(|fault| fault.even_again_us);
        harm.even_after_us = again.max_by(f64::total_cmp).map(|at| at - first.unwrap_or(0.0));
        let mut is_delayed = vec![false; self.longest.len()];
        let mut last = Time::ZERO;
        let mut worst = (0, Span::ZERO);
        for (flow, latency, end) in ops(recording) {
            let Some(&longest) = self.longest.get(flow) else { continue };
            if longest.is_zero() || latency <= longest.mul_f64(DELAYED) {
                continue;
            }
            is_delayed[flow] = true;
            last = last.max(end);
            let excess = latency.saturating_sub(longest);
            if excess > worst.1 {
                worst = (flow, excess);
            }
        }
        harm.flows = is_delayed.iter().filter(|delayed| **delayed).count() as u64;
        if harm.flows > 0 {
            let flow = &recording.flows[worst.0];
            harm.worst = Some((format!("{} -> {}", flow.from, flow.to), worst.1));
            harm.lasted = Some(last.since(begin));
        }
        harm
    }

    /// Returns the factor by which a failure makes the metric worse, at least; `None` if the metric is 0 without the
    /// failure.
    pub(super) fn ratio(&self, harm: &Harm) -> Option<f64> {
        let base = if self.value.upper.is_finite() { self.value.upper } else { self.value.lower };
        Some(harm.value?.lower / base).filter(|ratio| ratio.is_finite())
    }

    /// Returns `true` if a failure leaves no more ops unfinished, and changes the metric by at most [`SAME`].
    pub(super) fn is_same(&self, harm: &Harm) -> bool {
        let same = match self.ratio(harm) {
            Some(ratio) => (ratio - 1.0).abs() <= SAME,
            None => harm.value == Some(self.value),
        };
        same && harm.unfinished <= self.unfinished
    }

    /// Returns the rank of a failure: runs without progress first, then by the number of unfinished ops, then by the
    /// metric.
    pub(super) fn rank(&self, harm: &Harm) -> (bool, u64, f64) {
        let unfinished = harm.unfinished.saturating_sub(self.unfinished);
        // If the metric is 0 without the failure there is no ratio, and the value itself is the measure of the harm.
        let worse = harm.value.map(|value| self.ratio(harm).unwrap_or(value.lower));
        (harm.stopped.is_some(), unfinished, worse.unwrap_or(f64::INFINITY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harm(value: Option<f64>, unfinished: u64) -> Harm {
        Harm {
            stopped: None,
            value: value.map(Bounds::exact),
            unfinished,
            lost: 0,
            flows: 0,
            worst: None,
            lasted: None,
            even_after_us: None,
        }
    }

    fn healthy(value: f64) -> Healthy {
        Healthy {
            metric: "losses".to_owned(),
            value: Bounds::exact(value),
            unfinished: 0,
            lost: 0,
            longest: Vec::new(),
            faults: Vec::new(),
        }
    }

    #[test]
    fn failures_rank_by_the_metric_itself_where_it_is_0_without_one() {
        let none = healthy(0.0);
        let (little, much) = (harm(Some(1.0), 0), harm(Some(7.0), 0));
        assert!(none.rank(&little) < none.rank(&much));
        assert!(none.rank(&much) < none.rank(&harm(None, 0)));
        assert!(none.rank(&much) < none.rank(&harm(Some(0.0), 1)));
        assert!(none.is_same(&harm(Some(0.0), 0)));
        assert!(!none.is_same(&little) && !none.is_same(&harm(Some(0.0), 1)));
        let some = healthy(2.0);
        assert!(some.is_same(&harm(Some(2.01), 0)) && !some.is_same(&harm(Some(2.1), 0)));
        assert_eq!(some.rank(&much), (false, 0, 3.5));
    }

    #[test]
    fn a_run_without_progress_is_worse_than_all_that_end() {
        let healthy = healthy(2.0);
        let stopped = Harm { stopped: Some("no packet".to_owned()), ..harm(None, 1) };
        assert!(healthy.rank(&harm(Some(9.0), 5)) < healthy.rank(&stopped));
        assert!(!healthy.is_same(&stopped));
    }
}
