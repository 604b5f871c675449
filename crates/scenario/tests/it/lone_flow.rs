//! A lone flow fills its link with the parameters that follow from the network.

use crate::support::run_scenario;

/// Returns the Gb/s of a flow of Swift without any setting, which is alone on links of 10 Gb/s and always has
/// ops.
fn lone_flow(delay_us: u32, topology: &str) -> f64 {
    let text = format!(
        "duration = \"140ms\"\nwarmup = \"100ms\"\nalgorithm = {{ name = \"swift\" }}\n\
         [topology]\ndelay = \"{delay_us}us\"\nbuffer = \"4MB\"\n{topology}\n\
         [[workload]]\nkind = \"incast\"\nsenders = 1\nreceiver = 1\nsize = \"64kB\"\noutstanding = 64\n"
    );
    run_scenario(&text).throughput_gbps
}

/// Swift §3.5: the base target provides "100% utilization in a one hop network with a small number of
/// flows". Base RTTs of 27, 207 and 407 us; the last one has a BDP of 122 packets, at which flow scaling
/// adds nothing to the target.
#[test]
fn a_lone_flow_of_swift_fills_its_link_at_any_length() {
    let star = "kind = \"star\"\nhosts = 2\nrate = \"10Gbps\"";
    let behind = "kind = \"dumbbell\"\nleft = 1\nright = 1\nrate = \"100Gbps\"\nmiddle = { rate = \"10Gbps\" }";
    for delay in [5, 50, 100] {
        for topology in [star, behind] {
            let gbps = lone_flow(delay, topology);
            assert!(gbps >= 9.5, "{gbps} Gb/s with links of {delay} us; {topology}");
        }
    }
}
