//! Arbitrary text as a scenario. It is either accepted, or refused with a reason; an accepted scenario can be written
//! and read back unchanged.
#![no_main]

use apus_scenario::{Options, Scenario, ScenarioError, Source};
use libfuzzer_sys::fuzz_target;

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    let source = Source { name: "fuzz.toml".to_owned(), text: text.to_owned() };
    let testbed = Source {
        name: "testbed.toml".to_owned(),
        text: "[topology]\nrate = \"50Gbps\"\n[host]\nmodel = \"t1\"\n".to_owned(),
    };
    Scenario::read(&source, &|_| Ok(testbed.clone()), &Options::default())
}

fuzz_target!(|text: &str| {
    match read(text) {
        Err(error) => assert!(!error.0.is_empty(), "refused without a reason"),
        Ok(scenario) => {
            for run in &scenario.runs {
                let effective = run.setup.to_toml();
                let again = read(&effective).unwrap_or_else(|e| panic!("{e}\n{effective}"));
                assert_eq!(again.runs[0].setup.to_toml(), effective);
            }
        }
    }
});
