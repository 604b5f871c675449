//! The load of open loops in the drain.

use apus_sim::summary::Summary;
use serde_json::Value;

use crate::support::{good, run_plan};

/// The results of the run except the times of its ops.
fn all_but_ops(summary: &Summary) -> Value {
    let mut json = serde_json::to_value(summary).expect("json");
    for key in ["op_latency_us", "drain", "work", "stalled"] {
        json[key] = Value::Null;
    }
    for phase in ["startup", "measured"] {
        json[phase]["unfinished_ops"] = Value::Null;
        json[phase]["oldest_unfinished_us"] = Value::Null;
    }
    for part in ["groups", "totals"] {
        for share in json[part].as_array_mut().into_iter().flatten() {
            share["unfinished_ops"] = Value::Null;
            share["oldest_unfinished_us"] = Value::Null;
        }
    }
    for name in ["op_latency_us", "slowdown"] {
        if let Some(of) = json["workload"].as_object_mut() {
            of.values_mut().for_each(|workload| workload[name] = Value::Null);
        }
    }
    json
}

/// Returns packet-hops and results of a run of a scenario with another drain. A flow that is cut off makes the
/// drain as long as it may be.
fn hops_with_drain(drain: &str, flows: &str) -> (u64, Summary) {
    let text = format!(
        "duration = \"1ms\"\ndrain = \"{drain}\"\n\
         topology = {{ kind = \"star\", hosts = 8, rate = \"100Gbps\", delay = \"1us\", buffer = \"4MB\" }}\n\
         algorithm = {{ name = \"swift\" }}\n\
         [[workload]]\nkind = \"poisson\"\nload = 0.3\nsize = \"20kB\"\nflows = \"{flows}\"\n\
         hosts = [1, 2, 3, 4, 5, 6, 7]\n\
         [[workload]]\nkind = \"flows\"\nsize = \"20kB\"\n\
         [[workload.flow]]\nfrom = 0\nto = 1\n\
         [[fault]]\nlink = \"host 0 <-> switch 0\"\nkind = \"down\"\nat = \"500us\"\n"
    );
    let plan = good(&text).runs[0].setup.plan().expect("plan");
    let summary = run_plan(&plan);
    (summary.work.packet_hops, summary)
}

/// The load of an open loop is as high in the drain as before. The drain is as long as the measured phase here,
/// so as many packets cross the links.
#[test]
fn open_loops_continue_in_the_drain() {
    for flows in ["per-op", "per-pair"] {
        let (alone, without) = hops_with_drain("0us", flows);
        let (both, with) = hops_with_drain("1ms", flows);
        assert_eq!((with.drain.ended_by, with.drain.seconds), ("limit", 1e-3));
        let ratio = both as f64 / alone as f64;
        assert!((1.8..2.2).contains(&ratio), "{flows}: {ratio}");
        assert_eq!(all_but_ops(&with), all_but_ops(&without), "{flows}");
        assert_eq!(with.measured.unfinished_ops, 1);
    }
}
