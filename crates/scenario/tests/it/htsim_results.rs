//! Connection matrices of htsim as jobs with one path per flow, beside the published times of uet-htsim
//! (validate_outputs, NSCC at 100 Gb/s with links of 1 us). A flow ends there with its last acknowledgement.

use std::fmt::Write;

use crate::support::run_scenario;

/// The completion time of flows of 2,000,000 B on a fat tree of 16 hosts.
fn time(flows: impl ExactSizeIterator<Item = (u32, u32)>) -> f64 {
    let mut matrix = format!("Nodes 16\\nConnections {}\\n", flows.len());
    for (from, to) in flows {
        write!(matrix, "{from}->{to} start 0 size 2000000\\n").expect("a text");
    }
    let summary = run_scenario(&format!(
        r#"
duration = "10ms"
ends_with_ops = true
packets = {{ payload = "4096B", header = "64B", control = "64B" }}

[topology]
kind = "fat-tree"
k = 4
rate = "100Gbps"
delay = "1us"
buffer = "unlimited"
ack_class = "headers"

[[topology.class]]
name = "headers"
limit = "357760B"

[[topology.class]]
name = "data"
priority = 1
limit = "178880B"
trim_to = "headers"
ecn = {{ k_min = "37440B", k_max = "145600B", p_max = 1.0, at = "dequeue" }}

[algorithm]
name = "nscc"
profile = "trimming"
network_rtt = "14027.52ns"
target_queueing = "10520.64ns"
rto = "100862.4ns"

[[workload]]
kind = "job"
class = "data"
done = "acknowledged"
operations = "{matrix}"
"#
    ));
    let job = summary.jobs.first().expect("a job");
    assert_eq!((job.unfinished, job.unexpected), (0, 0), "{:?}", job.stuck);
    job.completion_us.expect("it ends")
}

/// By hand: 489 packets of 2,031,296 B in all take 162.5037 us on a link, the path adds 5 packet times of 0.3328 us and 6 us,
/// and the acknowledgement of 64 B 6 us and 6 times 5.12 ns: 176.1984 us.
#[test]
fn one_flow_takes_the_time_of_htsim() {
    let found = time([(0, 13)].into_iter());
    assert!((found - 176.1984).abs() < 1e-3, "{found}");
    assert!((found / 176.2 - 1.0).abs() < 0.001, "{found}");
}

#[test]
fn two_flows_against_each_other_take_the_time_of_htsim_within_five_percent() {
    let found = time([(0, 13), (13, 0)].into_iter());
    assert!((found / 176.8 - 1.0).abs() < 0.05, "{found}");
}

#[test]
fn an_incast_of_fifteen_flows_takes_the_time_of_htsim_within_five_percent() {
    let found = time((0..15).map(|from| (from, 15)));
    assert!((found / 2478.5 - 1.0).abs() < 0.05, "{found}");
}
