//! `[record]`: which tables and samples of a run are kept.
use apus_scenario::Simulation;
use apus_sim::record::Record;
use apus_units::Span;

use crate::support::good;

/// The settings of `[record]` take effect and are part of the effective configuration.
#[test]
fn a_scenario_sets_the_recorded_data() {
    let text = "
        duration = \"1ms\"
        topology = { kind = \"star\", hosts = 3, rate = \"8Gbps\", delay = \"1us\", buffer = \"1MB\" }
        algorithm = { name = \"swift\" }
        record = { interval = \"10us\", flows = 1, ops = 7, nics = true }
        [[workload]]
        kind = \"incast\"
        size = \"4kB\"
    ";
    let read = |text: &str| good(text).runs.remove(0).setup;
    let setup = read(text);
    assert_eq!(setup.record(), None, "nothing is recorded unless results are written");
    let record = setup.recorded(true).record().expect("recorded");
    let asked = Record { interval: Span::from_us(10), flows: 1, ports: 32, ops: 7, nics: true };
    assert_eq!(record, asked);
    let again = read(&read(text).to_toml()).recorded(true);
    assert_eq!(again.record(), Some(asked));
    let plan = again.plan().expect("plan");
    let simulation = Simulation::new(&plan).expect("plan").record(record).expect("record");
    let summary = simulation.run("record", &mut |_| {}).expect("run");
    let recording = summary.recording.expect("recorded");
    assert_eq!(recording.times.len(), 100);
    assert_eq!(recording.sampled_ports.len(), 6); // both directions of three links
}
