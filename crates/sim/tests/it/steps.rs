//! Steps of a run that reads its ops during the run.

use std::sync::{Arc, Mutex};

use apus_algorithms::registry::{AlgorithmConfig, build};
use apus_sim::plan::{FurtherOps, NextOps, step_length};
use apus_units::{HostId, Rate, Span, Time};

use crate::support::{ConnectionPlan, Plan, Topology, run, tier};

/// By reader: the times up to which ops were requested.
#[derive(Clone, Debug, Default)]
struct Wanted(Arc<Mutex<Vec<Vec<Time>>>>);

impl FurtherOps<AlgorithmConfig> for Wanted {
    fn begin(&self, _: &[ConnectionPlan]) -> NextOps {
        let wanted = Arc::clone(&self.0);
        wanted.lock().expect("no panic").push(Vec::new());
        let reader = wanted.lock().expect("no panic").len() - 1;
        Box::new(move |until| {
            wanted.lock().expect("no panic")[reader].push(until);
            Ok(Vec::new())
        })
    }
}

/// On links of 1 us: 1/200 of the run, but at least 16 us and at most 1 ms.
#[test]
fn a_run_reads_ops_by_its_steps() {
    let us = Span::from_us;
    for (duration, step) in [(us(100), us(16)), (us(5_000), us(25)), (us(300_000), us(1_000))] {
        let topology = Topology::star(2, &tier(Rate::from_gbps(100), us(1)));
        assert_eq!(step_length(duration, topology.smallest_delay()), step);
        let swift = build("swift", None, &[]).expect("algorithm");
        let (from, to) = (HostId::new(0), HostId::new(1));
        let connection = ConnectionPlan::open(from, to, &swift, []);
        let plan = Plan::builder(topology, duration).connections([connection]).build();
        let wanted = Wanted::default();
        let streamed: Arc<dyn FurtherOps<AlgorithmConfig>> = Arc::new(wanted.clone());
        run(&Plan { streamed: Some(streamed), ..plan.expect("a plan") });
        // The run begins to read after the offered load has been computed, so its reader is the last one.
        let mut ends = wanted.0.lock().expect("no panic").pop().expect("a reader");
        ends.retain(|at| *at <= Time::ZERO + duration);
        assert_eq!(ends.last(), Some(&(Time::ZERO + duration)));
        // Samples divide steps further.
        let starts = std::iter::once(&Time::ZERO).chain(&ends);
        let longest = starts.zip(&ends).map(|(start, end)| end.since(*start)).max();
        assert!(longest <= Some(step), "{ends:?}");
        let mut whole = (1..=duration.as_ps() / step.as_ps()).map(|n| Time::ZERO + step * n);
        assert!(whole.all(|end| ends.contains(&end)), "{ends:?}");
    }
}
