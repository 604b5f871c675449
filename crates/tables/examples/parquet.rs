//! Simulates an incast and writes its ops as Parquet.
#![allow(clippy::print_stdout)] // an example prints its result

use apus_algorithms::build;
use apus_fabric::{Tier, Topology};
use apus_sim::Simulation;
use apus_sim::columns::{OpRow, Table};
use apus_sim::plan::{ConnectionPlan, Plan};
use apus_sim::record::Record;
use apus_units::{Bytes, HostId, Rate, Span};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let links = Tier::hosts(Rate::from_gbps(100), Span::from_us(1), Bytes::new(4_000_000));
    let swift = build("swift", None, &[("base_target", "25us")])?;
    let size = Bytes::new(64_000);
    let write = |from| ConnectionPlan::closed(HostId::new(from), HostId::new(10), &swift, size);
    let duration = Span::from_ms(5);
    let plan = Plan::builder(Topology::star(11, &links), duration);
    let plan = plan.connections((0..10).map(write)).build()?;
    let simulation = Simulation::new(&plan)?.record(Record::of_duration(duration))?;
    let summary = simulation.run("incast", &mut |_| {})?;
    let recording = summary.recording.ok_or("the run was recorded")?;
    let mut file = Vec::new();
    apus_tables::write_parquet(&mut file, &Table::of::<OpRow>(), recording.op_rows())?;
    println!("{} ops, {} bytes of Parquet", recording.op_rows().count(), file.len());
    Ok(())
}
