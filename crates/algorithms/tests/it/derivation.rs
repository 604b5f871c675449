//! Parameters that follow from the network: each rule with values calculated by hand, and the precedence of
//! users' values.

use apus_algorithms::dctcp::marking_threshold;
use apus_algorithms::{Registry, build};
use apus_cc::{NetworkInfo, Origin, TunedSetting};
use apus_units::{Bytes, Rate, Span};

/// 100 Gb/s, 20 us between the NICs and 4 us in the hosts, one switch, packets of 4160 B: a BDP of
/// 300 000 B, 72.1 packets.
const NETWORK: NetworkInfo = NetworkInfo {
    base_rtt: Span::from_us(24),
    fabric_rtt: Span::from_us(20),
    fabric_jitter: Span::ZERO,
    hops: 1,
    line_rate: Rate::from_gbps(100),
    path_rate: Rate::from_gbps(100),
    packet: Bytes::new(4160),
    trims: false,
};

#[track_caller]
fn check(network: &NetworkInfo, name: &str, settings: &[(&str, &str)], expected: &[(&str, &str)]) {
    let (name, profile) = name.split_once(':').map_or((name, None), |(n, p)| (n, Some(p)));
    let config =
        Registry::BUILT_IN.build_for(name, profile, settings, Some(network)).expect("built");
    for (parameter, value) in expected {
        let found = config.parameters().iter().find(|one| one.name == *parameter).expect("it");
        assert_eq!(found.value, *value, "{name} {parameter}");
        assert!(matches!(found.origin, Origin::Derived(_)), "{name} {parameter}");
    }
}

#[test]
fn each_rule_gives_the_calculated_value() {
    // 100 Gb/s * 0.05 / 100 flows.
    check(&NETWORK, "hpcc", &[], &[("base_rtt", "24us"), ("additive_rate", "50Mbps")]);
    check(&NETWORK, "hpcc:bolt", &[], &[("base_rtt", "24us")]);
    // 2.5 times the 40 Gb/s of the paper.
    check(&NETWORK, "dcqcn", &[], &[("k_min", "12.5kB"), ("k_max", "500kB")]);
    // 50 and 500 us over 20 us.
    let timely = [("min_rtt", "24us"), ("t_low", "60us"), ("t_high", "600us")];
    check(&NETWORK, "timely", &[], &timely);
    check(&NETWORK, "timely:patched", &[], &[("t_ref", "60us")]);
    check(&NETWORK, "rcp", &[], &[("initial_rtt", "24us")]);
    check(&NETWORK, "bolt", &[], &[("initial_cwnd", "72.11538461538461")]);
    check(&NETWORK, "notified", &[], &[("base_rtt", "24us")]);
    check(&NETWORK, "expresspass", &[], &[("request_timeout", "10ms")]);
    // 256 packets are more than two BDPs; 25 us more than the fabric's 20 us and 998.4 ns for 3 packets,
    // less 1 us for the hop.
    for name in ["dctcp", "hull", "swift", "swift:falcon"] {
        check(&NETWORK, name, &[], &[("max_cwnd", "256")]);
    }
    check(&NETWORK, "swift", &[], &[("base_target", "25us")]);
}

/// 400 Gb/s and 16 us between hosts: a BDP of 192.3 packets of 4160 B, or 533.3 of 1500 B.
#[test]
fn first_windows_of_a_bdp_fit_their_largest_windows() {
    let network = NetworkInfo {
        base_rtt: Span::from_us(16),
        line_rate: Rate::from_gbps(400),
        path_rate: Rate::from_gbps(400),
        packet: Bytes::new(1500),
        ..NETWORK
    };
    // Swift's largest window of 256 packets is not a parameter of `notified`.
    check(&network, "notified", &[], &[("initial_cwnd", "533.3333333333334")]);
    check(&network, "mswift", &[("max_cwnd", "32")], &[("initial_cwnd", "32")]);
}

#[test]
fn a_long_fast_path_raises_limits_that_would_bind() {
    // 400 Gb/s and 60 us: a BDP of 3 MB, 721.2 packets.
    let far = NetworkInfo {
        base_rtt: Span::from_us(60),
        fabric_rtt: Span::from_us(56),
        hops: 5,
        line_rate: Rate::from_gbps(400),
        ..NETWORK
    };
    // 56 us and 998.4 ns for 3 packets of 4160 B at 100 Gb/s, less five hops of 1 us; two BDPs rounded
    // up.
    check(&far, "swift", &[], &[("base_target", "51998.4ns"), ("max_cwnd", "1443")]);
    // Swift-v0 compares with the end-to-end delay.
    check(&far, "swift", &[("decompose", "false")], &[("base_target", "55998.4ns")]);
    // The part of the hosts' jitter above its mean.
    let jitter = NetworkInfo { fabric_jitter: Span::from_us(6), ..far };
    check(&jitter, "swift", &[], &[("base_target", "57998.4ns")]);
    // At 1 Gb/s 2048 packets of 4160 B take 68.2 ms.
    let slow = NetworkInfo { path_rate: Rate::from_gbps(1), ..NETWORK };
    check(&slow, "expresspass", &[], &[("request_timeout", "136314.88us")]);
}

/// 25 times 100 ms and 2048 packets at 1 Mb/s are beyond the longest time that a user can set, 1 s.
#[test]
fn a_derived_value_ends_at_the_largest_that_can_be_set() {
    let slow = NetworkInfo {
        base_rtt: Span::from_ms(100),
        fabric_rtt: Span::from_ms(100),
        path_rate: Rate::from_bps(1_000_000),
        ..NETWORK
    };
    check(&slow, "timely", &[], &[("t_low", "250ms"), ("t_high", "1s")]);
    check(&slow, "expresspass", &[], &[("request_timeout", "1s")]);
}

#[test]
fn values_of_the_user_stay_and_rules_follow_them() {
    let config = Registry::BUILT_IN
        .build_for("timely", None, &[("min_rtt", "8us")], Some(&NETWORK))
        .expect("built");
    let value = |name: &str| {
        let found = config.parameters().iter().find(|one| one.name == name).expect("it");
        (found.value.clone(), found.origin.word())
    };
    assert_eq!(value("min_rtt"), ("8us".to_owned(), "set"));
    assert_eq!(value("t_low"), ("20us".to_owned(), "derived"));
    assert_eq!(value("delta"), ("10Mbps".to_owned(), "default"));
    // A derived value never contradicts one that is set.
    for (name, setting) in [
        ("timely", ("t_high", "10us")),
        ("timely", ("t_low", "900us")),
        ("dcqcn", ("k_max", "1kB")),
        ("dcqcn", ("k_min", "900kB")),
        ("bolt", ("max_cwnd", "10")),
    ] {
        Registry::BUILT_IN
            .build_for(name, None, &[setting], Some(&NETWORK))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn a_change_keeps_set_values_and_derives_the_rest_again() {
    let config = Registry::BUILT_IN
        .build_for("timely", None, &[("beta", "0.5")], Some(&NETWORK))
        .expect("built");
    let changed = config.changed(&[("min_rtt", "10us")], &[]).expect("changed");
    let value = |name: &str| {
        changed.effective().into_iter().find(|(known, _)| *known == name).expect("it").1
    };
    assert_eq!([value("beta"), value("t_low")], ["0.5", "25us"]);
}

#[test]
fn without_a_network_the_defaults_hold() {
    for info in Registry::BUILT_IN.algorithms() {
        let config = build(info.name, None, &[]).expect("built");
        let derived = config.parameters().iter().any(|p| matches!(p.origin, Origin::Derived(_)));
        assert!(!derived && config.network().is_none(), "{}", info.name);
    }
}

/// DCTCP §3.4: C * RTT / 7, and K = 20 packets at 1 Gb/s, 65 at 10 Gb/s.
#[test]
fn dctcp_marks_from_a_seventh_of_the_bdp_or_for_bursts() {
    let of = |gbps: u64, us: u64| {
        let path_rate = Rate::from_gbps(gbps);
        let network = NetworkInfo { path_rate, base_rtt: Span::from_us(us), ..NETWORK };
        marking_threshold(&network).get()
    };
    assert_eq!(of(1, 100), 20 * 1538);
    assert_eq!(of(10, 100), 65 * 1538);
    assert_eq!(of(100, 70), 125_000);
}

#[test]
fn rules_and_tunables_name_parameters_and_sources() {
    for info in Registry::BUILT_IN.algorithms() {
        let has = |name: &str, profile: &str| {
            let found = info.parameters.iter().find(|parameter| parameter.name == name);
            found.is_some_and(|parameter| parameter.default_in(profile).is_some())
        };
        for rule in Registry::BUILT_IN.derivations(info.name) {
            assert!(!rule.rule.is_empty() && rule.source.len() > 10, "{}", rule.parameter);
            for profile in rule.profiles {
                assert!(has(rule.parameter, profile), "{} {}", info.name, rule.parameter);
            }
        }
        for tunable in Registry::BUILT_IN.tunables(info.name) {
            assert!(!tunable.range.is_empty() && tunable.source.len() > 10, "{}", info.name);
            let TunedSetting::Parameter(name) = tunable.setting else { continue };
            for profile in tunable.profiles {
                assert!(has(name, profile), "{} {name}", info.name);
                for value in tunable.values(&NETWORK, 8) {
                    let settings = [(name, value.as_str())];
                    Registry::BUILT_IN
                        .build_for(info.name, Some(profile), &settings, Some(&NETWORK))
                        .unwrap_or_else(|error| panic!("{} {value}: {error}", info.name));
                }
            }
        }
    }
}
