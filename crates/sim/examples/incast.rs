//! Ten hosts write 64 kB at a time to one host through a switch, with Swift.
#![allow(clippy::print_stdout)] // an example prints its result

use apus_algorithms::build;
use apus_fabric::{Tier, Topology};
use apus_sim::Simulation;
use apus_sim::plan::{ConnectionPlan, Plan};
use apus_units::{Bytes, HostId, Rate, Span};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let links = Tier::hosts(Rate::from_gbps(100), Span::from_us(1), Bytes::new(4_000_000));
    let swift = build("swift", None, &[("base_target", "25us")])?;
    let size = Bytes::new(64_000);
    let write = |from| ConnectionPlan::closed(HostId::new(from), HostId::new(10), &swift, size);
    let plan = Plan::builder(Topology::star(11, &links), Span::from_ms(5));
    let plan = plan.drain(Span::from_ms(1)).connections((0..10).map(write)).build()?;
    let summary = Simulation::new(&plan)?.run("incast", &mut |_| {})?;
    let fct = summary.op_latency_us;
    println!("flow completion time: p50 {:?} us, p99 {:?} us", fct.p50, fct.p99);
    Ok(())
}
