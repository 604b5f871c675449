//! `samples`: a percentile of too few values fails its check.

use std::num::NonZeroUsize;

use apus_scenario::experiment;
use apus_scenario::{Options, Scenario, Source};
use apus_sim::Watch;

/// Two ops per variant: one starts with the run, the other after half of it.
fn read(metric: &str, samples: u64) -> Result<Scenario, String> {
    let text = format!(
        "name = \"samples\"\nsource = \"a test\"\nduration = \"1ms\"\n\
         topology = \"star hosts=2 100Gbps 1us\"\nalgorithm = {{ name = \"swift\" }}\n\
         [[workload]]\nkind = \"trace\"\n\
         flows = \"start_us,from,to,bytes\\n0,0,1,1000\\n500,0,1,1000\\n\"\n\
         [[check]]\nname = \"latency\"\nkind = \"invariant\"\nmetric = \"{metric}\"\n\
         samples = {samples}\nlow = 0\n"
    );
    let source = Source { name: "s.toml".to_owned(), text };
    Scenario::read(&source, &|n| Err(n.to_owned()), &Options::default()).map_err(|e| e.to_string())
}

#[test]
fn a_percentile_of_fewer_values_than_required_fails_and_says_how_many_there_are() {
    let check = |samples| {
        let scenario = read("op_latency_us.p99", samples).unwrap_or_else(|e| panic!("{e}"));
        let one = NonZeroUsize::MIN;
        let done = experiment::run(&scenario, 1, one, &Watch::default(), &|_| {}).expect("runs");
        (done.checks[0].pass, done.checks[0].shown.censored.clone())
    };
    assert_eq!(check(2), (true, None));
    let few = "one run has 2 values, but the check needs 3".to_owned();
    assert_eq!(check(3), (false, Some(few)));
}

#[test]
fn samples_of_a_number_without_a_distribution_have_no_effect() {
    let error = read("loss_rate", 2).expect_err("it is refused");
    assert!(error.contains("samples` has no effect"), "{error}");
}
