//! Tests of all built-in scenarios.

use apus_cc::Origin;

use super::*;

fn scenarios(quick: bool) -> Vec<Scenario> {
    let options = Options { quick, ..Options::default() };
    let read = |name| {
        let source = find(name).expect("listed");
        read(&source, Path::new(""), &options).unwrap_or_else(|e| panic!("{e}"))
    };
    names().map(read).collect()
}

#[test]
fn scenarios_can_be_read_and_have_their_names() {
    let both = scenarios(false).into_iter().chain(scenarios(true));
    for (scenario, name) in both.zip(names().chain(names())) {
        assert_eq!(scenario.name, name);
        assert!(scenario.title.is_some(), "{name}");
        let experiment = experiments().any(|known| known == name);
        assert_eq!(!scenario.checks.is_empty(), experiment, "{name}");
        assert!(scenario.source.is_some() || !experiment, "{name}");
    }
}

/// Reproductions state their parameters explicitly, so rules that derive a parameter from the network change none of
/// them.
#[test]
fn experiments_run_with_explicit_or_default_parameters() {
    let mut derived = Vec::new();
    for (scenario, name) in scenarios(false).iter().zip(names()) {
        if !experiments().any(|known| known == name) {
            continue;
        }
        let all = scenario.runs.iter().flat_map(|run| run.setup.algorithms());
        for (label, config) in all {
            for parameter in config.parameters() {
                let info = config.info().parameters.iter().find(|p| p.name == parameter.name);
                let default = info.and_then(|info| info.default_in(config.profile()));
                let value = &parameter.value;
                if let Origin::Derived(_) = parameter.origin
                    && default.is_some_and(|default| default.value != value)
                {
                    derived.push(format!("{name}: {label} {} {value}", parameter.name));
                }
            }
        }
    }
    derived.dedup();
    assert!(derived.is_empty(), "{derived:#?}");
}

/// The list contains every scenario file, and every listed file exists.
#[test]
fn every_scenario_file_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files = Vec::new();
    for paper in std::fs::read_dir(&folder).expect("scenarios") {
        let paper = paper.expect("entry").path();
        for file in std::fs::read_dir(&paper).expect("folder") {
            let file = file.expect("entry").path().with_extension("");
            let name = file.strip_prefix(&folder).expect("inside").to_string_lossy();
            files.push(name.into_owned());
        }
    }
    files.sort();
    let mut listed: Vec<_> =
        SCENARIOS.iter().chain(TESTBEDS).map(|(name, ..)| (*name).to_owned()).collect();
    listed.sort();
    assert_eq!(files, listed);
}

/// All figures share one set of parameters and one host model. Every override is counted here, so that a further one is
/// a deliberate decision.
#[test]
fn overrides_are_counted() {
    let list: Vec<String> = scenarios(false)
        .iter()
        .flat_map(|scenario| {
            scenario.overrides.iter().map(|one| {
                assert!(one.reason.len() > 20, "{}: say why `{}`", scenario.name, one.key);
                format!("{} {}", scenario.name, one.key)
            })
        })
        .collect();
    let expected = [
        "swift/table3 algorithm.min_cwnd",
        "swift/table3 algorithm.rto_gain",
        "swift/table3 algorithm.rto_multiplier",
        "swift/table3 algorithm.min_cwnd",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.decompose",
        "swift/table4 algorithm.fs_range",
        "swift/table4 algorithm.hop_scale",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.decompose",
        "swift/table4 algorithm.fs_range",
        "swift/table4 algorithm.hop_scale",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.decompose",
        "swift/table4 algorithm.fs_range",
        "swift/table4 algorithm.hop_scale",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.decompose",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.decompose",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.decompose",
        "swift/table4 algorithm.base_target",
        "swift/table4 host.engine.scale",
        "swift/table4 algorithm.base_target",
        "swift/table4 host.engine.scale",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.decompose",
        "swift/table4 algorithm.fs_range",
        "swift/table4 algorithm.hop_scale",
        "swift/table4 host.engine.scale",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.decompose",
        "swift/table4 algorithm.fs_range",
        "swift/table4 algorithm.hop_scale",
        "swift/table4 host.engine.scale",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.decompose",
        "swift/table4 algorithm.fs_range",
        "swift/table4 algorithm.hop_scale",
        "swift/table4 host.engine.scale",
        "swift/table4 algorithm.base_target",
        "swift/table4 algorithm.decompose",
        "swift/table4 algorithm.fs_range",
        "swift/table4 algorithm.hop_scale",
        "swift/table4 host.engine.scale",
        "swift/section-3-4 algorithm.pacing",
        "swift/section-3-4 algorithm.pacing",
        "swift/section-3-4 algorithm.pacing",
        "swift/fig15 algorithm.base_target",
        "swift/fig16 topology.buffer",
        "swift/fig17 algorithm.fs_range",
        "swift/fig17 algorithm.hop_scale",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.ai",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.ai",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.ai",
        "swift/fig17 algorithm.base_target",
        "swift/fig17 algorithm.ai",
        "swift/fig17 algorithm.base_target",
        "swift/fig21 algorithm.fs_range",
        "swift/fig21 algorithm.ai",
        "swift/fig22 algorithm.base_target",
        "swift/fig22 algorithm.hop_scale",
        "swift/fig24 algorithm.fs_range",
        "swift/fig24 algorithm.hop_scale",
        "swift/fig24 algorithm.base_target",
        "swift/fig24 algorithm.base_target",
        "swift/fig24 algorithm.base_target",
        "swift/fig24 algorithm.base_target",
        "swift/fig24 algorithm.base_target",
        "swift/fig24 algorithm.base_target",
        "swift/fig24 algorithm.base_target",
        "swift/fig24 algorithm.base_target",
        "swift/fig24 algorithm.ai",
        "swift/fig24 algorithm.base_target",
        "swift/fig24 algorithm.ai",
        "swift/fig24 algorithm.base_target",
        "swift/section-4-6 topology.buffer",
        "swift/section-4-6 algorithm.base_target",
        "swift/section-4-6 algorithm.min_cwnd",
        "swift/section-4-6 algorithm.min_cwnd",
        "swift/section-4-6 algorithm.min_rto",
        "swift/section-4-6 algorithm.rto_multiplier",
        "swift/section-4-6 algorithm.initial_rto",
        "swift/section-4-6 algorithm.min_rto",
        "swift/section-4-6 algorithm.rto_multiplier",
        "swift/section-4-6 algorithm.base_target",
        "swift/section-4-6 algorithm.min_cwnd",
        "swift/section-4-6 algorithm.min_rto",
        "swift/section-4-6 algorithm.rto_multiplier",
        "swift/section-5-3 topology.buffer",
        "swift/section-5-3 topology.buffer",
        "swift/appendix-a host.clock_drift",
        "swift/appendix-a host.clock_offset",
        "swift/appendix-a host.clock_drift",
        "swift/appendix-a host.clock_offset",
        "swift/appendix-a host.clock_reading_interval",
        "swift/appendix-a host.clock_drift",
        "swift/appendix-a host.clock_offset",
        "swift/appendix-a host.clock_reading_interval",
        "swift/appendix-e algorithm.fs_range",
        "swift/appendix-e algorithm.fs_range",
        "swift/appendix-e-egress host.model",
        "swift/appendix-e-egress algorithm.base_target",
        "swift/appendix-e-egress algorithm.fs_range",
        "swift/appendix-e-egress algorithm.fs_range",
        "swift/cluster topology.rate",
        "swift/cluster topology.uplink.rate",
        "swift/cluster topology.rate",
        "swift/cluster topology.uplink.rate",
        "swift/fig13 topology.class.0.priority",
        "swift/fig18 algorithm.fs_range",
        "swift/fig18 algorithm.hop_scale",
        "swift/fig18 algorithm.fs_range",
        "swift/fig18 algorithm.hop_scale",
    ];
    assert_eq!(list, expected);
}
