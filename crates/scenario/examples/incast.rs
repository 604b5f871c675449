//! Reads a scenario from TOML and runs it.

use apus_scenario::{Options, Scenario, Simulation, Source};

const INCAST: &str = r#"
duration = "2ms"
topology = { kind = "star", hosts = 11, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift", base_target = "25us" }
[[workload]]
kind = "incast"
size = "64kB"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let read = |text: &str| {
        let source = Source { name: "incast.toml".to_owned(), text: text.to_owned() };
        let find_testbed = |name: &str| Err(format!("unknown testbed `{name}`"));
        Scenario::read(&source, &find_testbed, &Options::default())
    };
    let plan = read(INCAST)?.runs[0].setup.plan()?;
    let summary = Simulation::new(&plan)?.run("incast", &mut |_| {})?;
    assert!(summary.op_latency_us.p50.is_some());
    // An error names the line and the remedy.
    let error = read(&INCAST.replace("64kB", "64")).expect_err("no unit").to_string();
    assert!(error.contains("incast.toml:7"), "{error}");
    Ok(())
}
