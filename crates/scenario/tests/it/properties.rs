//! The scenario reader never panics, for any input, and its effective configuration reads back.

use crate::support::{FIRST, assert_reads_back, read, read_with, set};
use proptest::prelude::*;

/// Lines of scenarios, for texts that resemble a scenario.
fn line() -> impl Strategy<Value = String> {
    let keys = [
        "duration",
        "warmup",
        "seed",
        "kind",
        "hosts",
        "rate",
        "delay",
        "buffer",
        "name",
        "size",
        "set",
        "key",
        "values",
        "workload",
        "topology.hosts",
        "algorithm",
        "shared",
        "k",
        "metric",
        "variant",
        "sweep",
        "testbed",
        "stop",
        "start",
        "senders",
        "relative_to",
        "low",
        "load",
        "sizes",
        "flows",
        "file",
        "class",
        "ack_class",
        "a",
        "b",
        "link",
        "probability",
        "until",
        "request",
        "answer",
        "topology",
    ];
    let values = [
        "\"20ms\"",
        "1",
        "-1",
        "0.5",
        "nan",
        "\"star\"",
        "\"incast\"",
        "\"100Gbps\"",
        "\"4MB\"",
        "[1, 2]",
        "{ a = 1 }",
        "[]",
        "{}",
        "true",
        "\"swift\"",
        "\"test\"",
        "\"\"",
        "\"é\"",
        "2024-01-01",
        "\"18446744073709551615ps\"",
        "[[1]]",
        "4294967295",
        "9223372036854775807",
        "\"poisson\"",
        "\"links\"",
        "\"h1\"",
        "\"web_search\"",
        "\"partition-aggregate\"",
        "\"switch 0 -> host 1\"",
        "\"star hosts=4 1us 10Gbps\"",
    ];
    let tables = [
        "[topology]",
        "[[workload]]",
        "[algorithm]",
        "[host]",
        "[host.engine]",
        "[transport]",
        "[packets]",
        "[measure]",
        "[[variant]]",
        "[sweep]",
        "[[check]]",
        "[[show]]",
        "[[override]]",
        "[[workload.flow]]",
        "[topology.uplink]",
        "[[topology.class]]",
        "[[topology.link]]",
        "[[fault]]",
        "[algorithm.a]",
    ];
    prop_oneof![
        4 => (prop::sample::select(keys.to_vec()), prop::sample::select(values.to_vec()))
            .prop_map(|(key, value)| format!("{key} = {value}")),
        2 => prop::sample::select(tables.to_vec()).prop_map(str::to_owned),
        1 => prop::sample::select(FIRST.lines().collect::<Vec<_>>()).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        if let Err(error) = read(&text) {
            prop_assert!(!error.0.is_empty());
        }
    }

    #[test]
    fn any_lines_are_read_or_refused(lines in prop::collection::vec(line(), 0..20)) {
        if let Err(error) = read(&lines.join("\n")) {
            prop_assert!(!error.0.is_empty());
        }
    }

    /// A change to a valid scenario, at any place.
    #[test]
    fn any_damage_is_read_or_refused(at in 0..FIRST.len(), len in 0..20usize, new in "\\PC{0,8}") {
        let end = (at + len).min(FIRST.len());
        let text = format!("{}{new}{}", &FIRST[..at], &FIRST[end..]);
        match read(&text) {
            Ok(scenario) => assert_reads_back(&scenario),
            Err(error) => prop_assert!(!error.0.is_empty()),
        }
    }

    #[test]
    fn any_option_is_read_or_refused(option in "[a-z.]{0,20}=?\\PC{0,8}") {
        if let Ok(scenario) = read_with(FIRST, &set(&[&option])) {
            assert_reads_back(&scenario);
        }
    }

    /// The effective configuration reads back to the same plan, for any values.
    #[test]
    fn effective_configuration_reads_back(
        hosts in 2u32..50,
        rate in 1_000u64..1 << 50,
        delay in 0u64..1 << 34,
        beta in 0.01f64..1.0,
        target in 1u64..1 << 40,
        size in 1u64..1 << 30,
        seed in 0u64..1 << 53,
        kind in prop::sample::select(vec!["incast", "permutation", "all-to-all"]),
        spread in 0u64..1 << 34,
    ) {
        let text = format!(
            "duration = \"20ms\"\nseed = {seed}\n\
             algorithm = {{ name = \"swift\", beta = {beta:?}, base_target = \"{target}ps\" }}\n\
             [topology]\nkind = \"star\"\nhosts = {hosts}\nrate = \"{rate}bps\"\n\
             delay = \"{delay}ps\"\nbuffer = \"{}B\"\n\
             [[workload]]\nkind = \"{kind}\"\nsize = \"{size}B\"\nstart_spread = \"{spread}ps\"\n",
            4160 + size,
        );
        if let Ok(scenario) = read(&text) {
            assert_reads_back(&scenario);
        }
    }
}
