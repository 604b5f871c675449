//! The table of algorithms: building by name, and errors that name valid values.

use apus_algorithms::{AlgorithmConfig, Registry, build};
use apus_cc::{AlgorithmFactory, FlowInfo, ParamKind, Sender, SettingError};
use apus_units::Span;

#[track_caller]
fn error(name: &str, profile: Option<&str>, settings: &[(&str, &str)]) -> SettingError {
    build(name, profile, settings).expect_err("it must be refused")
}

/// Checks that the settings are refused at `parameter`, with each of `words` in the message.
#[track_caller]
fn refused(
    (name, profile): (&str, &str),
    settings: &[(&str, &str)],
    parameter: &str,
    words: &[&str],
) {
    let error = error(name, Some(profile), settings);
    assert_eq!(error.parameter.as_deref(), Some(parameter), "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "`{word}` is missing in: {error}");
    }
}

const PAPER: (&str, &str) = ("swift", "paper");

#[test]
fn every_profile_of_every_algorithm_builds() {
    let names: Vec<_> = Registry::BUILT_IN.algorithms().map(|info| info.name).collect();
    assert_eq!(
        names,
        [
            "swift",
            "dctcp",
            "bolt",
            "hpcc",
            "expresspass",
            "cubic",
            "timely",
            "dx",
            "dcqcn",
            "rcp",
            "hull",
            "notified",
            "nscc",
            "mswift",
            "rccc",
            "constant"
        ]
    );
    for info in Registry::BUILT_IN.algorithms() {
        for profile in info.profiles {
            let config = build(info.name, Some(profile.name), &[]).unwrap();
            assert_eq!((config.info().name, config.profile()), (info.name, profile.name));
            assert!(config.sender(&FlowInfo::default()).allowance().window > 0.0);
            // By default Bolt runs without Swift in parallel, NSCC without the receiver's penalty, and RCCC without
            // NSCC's window, whose parameters then have no effect.
            let is_idle = |name: &str| {
                name.starts_with("fallback_")
                    || ["penalty_from", "penalty_full", "restore_window"].contains(&name)
                    || (profile.name, name) == ("credits", "target_queueing")
            };
            let in_profile = |param: &&apus_cc::ParamInfo| {
                param.default_in(profile.name).is_some() && !is_idle(param.name)
            };
            let listed = info.parameters.iter().filter(in_profile).count();
            assert_eq!(config.effective().len(), listed, "{} {}", info.name, profile.name);
        }
    }
}

#[test]
fn the_first_profile_is_the_default() {
    assert_eq!(build("swift", None, &[]).unwrap().profile(), "paper");
}

#[test]
fn settings_overlay_the_defaults() {
    let config = build("swift", None, &[("initial_cwnd", "4"), ("initial_rto", "2ms")]).unwrap();
    let flow = config.sender(&FlowInfo::default());
    assert_eq!(flow.allowance().window, 4.0);
    assert_eq!(flow.rto(), Span::from_ms(2));
    assert_eq!(
        build("constant", None, &[("window", "7")])
            .unwrap()
            .sender(&FlowInfo::default())
            .snapshot()
            .cwnd,
        7.0
    );
}

#[test]
fn effective_parameters_read_back() {
    let round_trip = |config: &AlgorithmConfig| {
        let effective = config.effective();
        let settings: Vec<_> = effective.iter().map(|(name, text)| (*name, &**text)).collect();
        let again = build(config.info().name, Some(config.profile()), &settings).unwrap();
        assert_eq!(again.effective(), effective);
    };
    for info in Registry::BUILT_IN.algorithms() {
        for profile in info.profiles {
            round_trip(&build(info.name, Some(profile.name), &[]).unwrap());
        }
    }
    let settings =
        [("fs_range", "0us"), ("decompose", "false"), ("ai", "0.3"), ("base_target", "25.5us")];
    let config = build("swift", None, &settings).unwrap();
    round_trip(&config);
    let effective = config.effective();
    assert!(effective.contains(&("ai", "0.3".to_string())));
    assert!(effective.contains(&("base_target", "25.5us".to_string())));
    // Parameters without effect are not in force.
    for absent in ["fs_min_cwnd", "fs_max_cwnd", "endpoint_target", "endpoint_gain"] {
        assert!(effective.iter().all(|(name, _)| *name != absent));
    }
}

#[test]
fn unknown_names_suggest_the_nearest() {
    let unknown = error("swfit", None, &[]);
    assert_eq!(unknown.parameter, None);
    assert!(unknown.to_string().contains("did you mean `swift`?"), "{unknown}");
    assert!(error("bbr", None, &[]).to_string().contains(
        "swift, dctcp, bolt, hpcc, expresspass, cubic, timely, dx, dcqcn, rcp, hull, notified, nscc, mswift, rccc, constant"
    ));
    let profile = error("swift", Some("papers"), &[]);
    assert_eq!(profile.parameter, None);
    assert!(profile.to_string().contains("did you mean `paper`?"), "{profile}");
    refused(PAPER, &[("basetarget", "25us")], "basetarget", &["did you mean `base_target`?"]);
    refused(PAPER, &[("Beta", "0.5")], "Beta", &["did you mean `beta`?"]);
    refused(PAPER, &[("pacing", "alway")], "pacing", &["did you mean `always`?"]);
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    refused(PAPER, &[("base_target", "25")], "base_target", &["unit is missing", "`25`"]);
    refused(PAPER, &[("base_target", "25KiB")], "base_target", &["unknown unit `KiB`"]);
    refused(PAPER, &[("ai", "1us")], "ai", &["number without a unit"]);
    refused(PAPER, &[("ai", "NaN")], "ai", &["number"]);
    refused(PAPER, &[("max_cwnd", "inf")], "max_cwnd", &["number"]);
    refused(PAPER, &[("retx_reset_threshold", "2.5")], "retx_reset_threshold", &["whole number"]);
    refused(PAPER, &[("retx_reset_threshold", "-1")], "retx_reset_threshold", &["whole number"]);
    refused(PAPER, &[("decompose", "yes")], "decompose", &["`true` or `false`"]);
}

#[test]
fn absurd_values_are_refused() {
    let cases: &[((&str, &str), &str, &str, &str)] = &[
        (PAPER, "base_target", "1000s", "at most 1s"),
        (PAPER, "hop_scale", "2s", "at most 1s"),
        (PAPER, "min_rto", "61s", "at most 60s"),
        (PAPER, "max_rto", "61s", "at most 60s"),
        (PAPER, "max_cwnd", "1e12", "to 1000000000"),
        (PAPER, "retx_reset_threshold", "1000001", "from 0 to 1000000"),
        (("hpcc", "paper"), "base_rtt", "10s", "at most 1s"),
        (("hpcc", "paper"), "additive_rate", "1000Tbps", "at most 100Tbps"),
        (("dcqcn", "paper"), "k_max", "2TiB", "at most 1TiB"),
    ];
    for (profile, parameter, value, must) in cases {
        refused(*profile, &[(parameter, value)], parameter, &[must]);
    }
    // The timeouts of RFC 6298 §2 are accepted.
    build("swift", None, &[("min_rto", "1s"), ("initial_rto", "60s")]).unwrap();
}

#[test]
fn impossible_values_are_refused() {
    let cases: &[(&str, &str, &str)] = &[
        ("ai", "0", "above 0"),
        ("ai", "-1", "above 0"),
        ("beta", "1.5", "at most 1"),
        ("beta", "-0.5", "above 0"),
        ("max_mdf", "1", "below 1"),
        ("max_mdf", "0", "above 0"),
        ("min_cwnd", "0", "above 0"),
        ("min_cwnd", "300", "at most max_cwnd"),
        ("initial_cwnd", "300", "between min_cwnd and max_cwnd"),
        ("retx_reset_threshold", "0", "at least 1"),
        ("base_target", "0us", "above 0"),
        ("fs_min_cwnd", "0", "above 0"),
        ("fs_min_cwnd", "100", "below fs_max_cwnd"),
        ("endpoint_target", "0us", "above 0"),
        ("endpoint_min_cwnd", "0.0001", "0, or between min_cwnd and max_cwnd"),
        ("endpoint_min_cwnd", "300", "0, or between min_cwnd and max_cwnd"),
        ("endpoint_gain", "0", "above 0"),
        ("endpoint_gain", "1.1", "at most 1"),
        ("rto_gain", "2", "at most 1"),
        ("rto_multiplier", "0.5", "at least 1"),
        ("min_rto", "0us", "above 0"),
        ("initial_rto", "0us", "above 0"),
        ("min_rto", "2s", "at most `max_rto`, which is 1s"),
    ];
    for (parameter, value, must) in cases {
        refused(PAPER, &[(parameter, value)], parameter, &[must]);
    }
    refused(PAPER, &[("max_rto", "0.5ms")], "min_rto", &["at most `max_rto`, which is 500us"]);
    let falcon: &[(&str, &str, &str)] = &[
        ("buffer_target", "0", "from 1 to 31"),
        ("buffer_target", "32", "from 1 to 31"),
        ("buffer_increase", "0", "above 0"),
        ("plb_delay_factor", "0", "above 0"),
        ("plb_delayed_fraction", "1.5", "at most 1"),
        ("plb_rounds", "0", "at least 1"),
    ];
    for (parameter, value, must) in falcon {
        refused(("swift", "falcon"), &[(parameter, value)], parameter, &[must]);
    }
    let dctcp: &[(&str, &str, &str)] = &[
        ("g", "0", "above 0"),
        ("initial_alpha", "2", "between 0 and 1"),
        ("min_cwnd", "0.5", "at least 1"),
        ("max_cwnd", "0.5", "at least min_cwnd"),
        ("initial_cwnd", "1000", "between min_cwnd and max_cwnd"),
    ];
    for (parameter, value, must) in dctcp {
        refused(("dctcp", "rfc8257"), &[(parameter, value)], parameter, &[must]);
    }
    refused(("constant", "constant"), &[("window", "0.5")], "window", &["at least 1"]);
}

#[test]
fn settings_without_effect_are_refused() {
    let scaling = [("fs_range", "0us"), ("fs_min_cwnd", "0.1")];
    refused(PAPER, &scaling, "fs_min_cwnd", &["no effect", "`fs_range` is 0"]);
    for setting in [("endpoint_target", "50us"), ("endpoint_min_cwnd", "1")] {
        let v0 = [("decompose", "false"), setting];
        refused(PAPER, &v0, setting.0, &["no effect", "`decompose` is false"]);
    }
    refused(PAPER, &[("plb_rounds", "5")], "plb_rounds", &["no effect", "falcon"]);
    let endpoint = [("endpoint_gain", "0.5")];
    refused(("swift", "falcon"), &endpoint, "endpoint_gain", &["no effect", "paper"]);
    refused(PAPER, &[("ai", "1"), ("ai", "2")], "ai", &["set twice"]);
}

#[test]
fn every_parameter_has_a_description_and_sources_of_its_defaults() {
    let origins = [
        "Swift §",
        "Swift Alg. 1",
        "RFC ",
        "Falcon default",
        "deviation: ",
        "ExpressPass §",
        "ns2-xpass",
        "Bolt ",
        "HPCC §",
        "TIMELY §",
        "ECN or Delay ",
        "DX §",
        "DCQCN §",
        "ns-2 rcp.cc",
        "HULL §",
        "uet-htsim ",
        "unverified: ",
    ];
    for info in Registry::BUILT_IN.algorithms() {
        for param in info.parameters {
            assert!(!param.doc.is_empty() && param.defaults().next().is_some(), "{}", param.name);
            for default in param.defaults() {
                let (name, source) = (param.name, default.source);
                assert!(origins.iter().any(|o| source.starts_with(o)), "{name}: {source}");
                assert!(
                    !source.starts_with("deviation: ") || source.len() > 25,
                    "{name}: {source}"
                );
                assert!(info.profiles_with(default).next().is_some(), "{name}: {default:?}");
            }
            let unit = match param.kind {
                ParamKind::Time | ParamKind::Size | ParamKind::Rate => {
                    param.defaults().all(|one| one.value.parse::<f64>().is_err())
                }
                _ => true,
            };
            assert!(unit, "{}: a default without a unit", param.name);
        }
        let mut names: Vec<_> = info.parameters.iter().map(|param| param.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}: a name twice", info.name);
    }
}

#[test]
fn defaults_are_in_the_tables_only() {
    // A default outside the tables would have no source. Each folder with a `params.rs` is an
    // algorithm of the table, and no file of it implements `Default` for parameters.
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = 0;
    for folder in std::fs::read_dir(source).unwrap() {
        let folder = folder.unwrap().path();
        let Ok(params) = std::fs::read_to_string(folder.join("params.rs")) else { continue };
        folders += 1;
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(
            Registry::BUILT_IN.algorithms().any(|info| info.name == name),
            "{name} is not in the table"
        );
        // A long table has a separate file.
        let table = std::fs::read_to_string(folder.join("table.rs")).unwrap_or(params);
        assert!(table.contains("const TABLE: &[ParamInfo]"), "{name}");
        for file in std::fs::read_dir(&folder).unwrap() {
            let file = file.unwrap().path();
            let text = std::fs::read_to_string(&file).unwrap();
            for kind in ["Params", "Config", "TargetConfig", "RtoRule"] {
                let implements = text.contains(&format!("impl Default for {kind}"));
                assert!(!implements, "{}: a default without a source", file.display());
            }
        }
    }
    assert_eq!(folders, Registry::BUILT_IN.algorithms().count());
}
