//! Scenarios for tests of the reader.
#![allow(dead_code)] // each test binary uses its own part

use apus_scenario::{Plan, Simulation};
use std::num::NonZeroUsize;

use apus_scenario::experiment::{Threads, run_all};
use apus_scenario::{Options, Scenario, ScenarioError, Source};
use apus_sim::Watch;
use apus_sim::summary::Summary;

/// The ten lines of a first scenario.
pub const FIRST: &str = r#"
duration = "20ms"
topology = { kind = "star", hosts = 11, rate = "100Gbps", delay = "1us", buffer = "4MB" }
algorithm = { name = "swift", base_target = "25us" }
[[workload]]
kind = "incast"
size = "64kB"
"#;

const TESTBED: &str = "[topology]\nrate = \"50Gbps\"\ndelay = \"2us\"\nbuffer = \"4MB\"\n";

fn find_testbed(name: &str) -> Result<Source, String> {
    match name {
        "test" => Ok(Source { name: "test.toml".to_owned(), text: TESTBED.to_owned() }),
        _ => Err(format!("unknown testbed \"{name}\"; did you mean `test`?")),
    }
}

pub fn read_with(text: &str, options: &Options) -> Result<Scenario, ScenarioError> {
    let source = Source { name: "dir/first one.toml".to_owned(), text: text.to_owned() };
    Scenario::read(&source, &find_testbed, options)
}

pub fn read(text: &str) -> Result<Scenario, ScenarioError> {
    read_with(text, &Options::default())
}

pub fn good(text: &str) -> Scenario {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Runs a plan.
pub fn run_plan(plan: &Plan) -> Summary {
    Simulation::new(plan).expect("a plan").run("test", &mut |_| {}).expect("a run")
}

/// Runs a scenario's first run.
pub fn run_scenario(text: &str) -> Summary {
    let setups = [good(text).runs[0].setup.clone()];
    let mut results =
        run_all(&setups, NonZeroUsize::MIN, Threads::Exactly(1), &Watch::default(), &|_| {});
    results.remove(0).expect("run")
}

pub fn set(options: &[&str]) -> Options {
    Options { set: options.iter().map(|o| (*o).to_owned()).collect(), ..Options::default() }
}

pub fn assert_reads_back(scenario: &Scenario) {
    for run in &scenario.runs {
        let text = run.setup.to_toml();
        let again = good(&text);
        assert_eq!(again.runs[0].setup.to_toml(), text);
        let plan = |scenario: &Scenario| format!("{:?}", scenario.runs[0].setup.plan());
        assert_eq!(plan(&again), format!("{:?}", run.setup.plan()), "{text}");
    }
}

/// Returns everything in a summary that a seed determines, as text.
pub fn fingerprint(summary: &Summary) -> String {
    serde_json::to_string(summary).expect("summary")
}
