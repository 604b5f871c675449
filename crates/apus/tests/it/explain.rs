//! `apus explain`.

use std::process::{Command, Output};

fn explain(name: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apus")).args(["explain", name]).output().expect("process")
}

#[test]
fn an_algorithm_shows_parameters_defaults_and_sources() {
    let output = explain("swift");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success());
    for part in [
        "Kumar et al., Swift, SIGCOMM 2020",
        "paper   Algorithm 1 with a fabric and an endpoint window (the default)",
        "min_cwnd (number): smallest window in packets",
        "paper:   0.001  Swift §3.4",
        "falcon:  0.01   Falcon default",
        "base_target (time with its unit",
        "pacing (below-one or always)",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    // Every parameter of every algorithm and path policy has a row with a source.
    let built_in = apus_algorithms::Registry::BUILT_IN;
    for info in built_in.algorithms().chain(built_in.balancers()) {
        let output = explain(info.name);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        for parameter in info.parameters {
            assert!(text.contains(&format!("  {} (", parameter.name)), "{}", parameter.name);
            for default in parameter.defaults() {
                assert!(text.contains(default.source), "{}", default.source);
            }
        }
    }
}

#[test]
fn every_metric_is_explained() {
    let metrics = &apus_sim::results::METRICS;
    for metric in metrics.iter().chain(&apus_sim::results::names()) {
        let output = explain(metric);
        assert!(output.status.success(), "{metric}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(metric), "{metric}");
    }
}

#[test]
fn every_key_of_scenarios_is_explained() {
    for key in apus_scenario::key_names() {
        let text = apus_scenario::explain(&key).unwrap_or_else(|| panic!("{key}"));
        assert!(
            text.starts_with(&format!("{key}, a key of scenarios\n  ")) || text.contains("kind =")
        );
    }
    for (name, parts) in [
        ("topology.buffer", &["topology.buffer, a key of scenarios", "  size"][..]),
        ("workload.0.size", &["workload.size, a key of scenarios", "\"incast\""]),
        ("topology", &["text or table", "keys: kind, "]),
        // A column of the results has the same name.
        ("seed", &["in summary.json", "seed, a key of scenarios", "; default 1\n"]),
        ("algorithm.profile", &["Profile of defaults"]),
    ] {
        let output = explain(name);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success(), "{name}");
        for part in parts {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}

#[test]
fn an_unknown_name_is_refused_with_similar_names() {
    for (name, message) in [
        ("swfit", "did you mean"),
        ("goodput_gbs", "did you mean `goodput_gbps`?"),
        ("dctpc", "did you mean `dctcp`?"),
        ("topology.bufer", "did you mean `topology.buffer`?"),
        ("fig17", "did you mean `bolt/fig17` or `swift/fig17`?"),
        ("goodput", "did you mean `goodput_gbps`"),
        (
            "something-else-entirely",
            "see `apus list algorithms`, `apus list policies`, `apus list scenarios` and docs",
        ),
        ("", "unknown algorithm, path policy, column, scenario or key ``"),
    ] {
        let output = explain(name);
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr.contains(message), "{stderr}");
    }
}

#[test]
fn a_scenario_is_explained_by_its_source_and_checks() {
    let output = explain("swift/fig17");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success());
    assert!(text.starts_with("swift/fig17: "), "{text}");
    assert!(text.contains("Swift Fig. 17"), "{text}");
    assert!(text.contains("run it with `apus reproduce swift/fig17`"), "{text}");
    let output = explain("bench/idle-million");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("run it with `apus run bench/idle-million`"), "{text}");
}
