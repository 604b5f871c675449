//! Quick runs: shorter settings and omissions.

use crate::support::{FIRST, good, read_with};
use apus_scenario::{Options, Relative, Scenario};
use apus_units::Span;

/// Settings and omissions of a quick run; indices of checks refer to the remaining runs.
#[test]
fn a_quick_run_is_shorter_and_lists_its_omissions() {
    let more = r#"
        [quick]
        set = { duration = "2ms" }
        [[variant]]
        name = "a"
        quick = false
        [[variant]]
        name = "b"
        set = { "workload.size" = "32kB" }
        [[variant]]
        name = "c"
        set = { "workload.size" = "16kB" }
        [[check]]
        name = "over a"
        kind = "shape"
        metric = "goodput_gbps"
        variant = "b"
        relative_to = { variant = "a" }
        low = 1
        [[check]]
        name = "pairs"
        kind = "shape"
        metric = "goodput_gbps"
        variant = ["a", "b", "c"]
        relative_to = { variant = ["b", "c", "b"] }
        reduce = "mean"
        low = 1
        [[check]]
        name = "each"
        kind = "shape"
        metric = "goodput_gbps"
        low = 1
        [[check]]
        name = "long"
        kind = "shape"
        metric = "goodput_gbps"
        variant = "b"
        low = 1
        quick = false
    "#;
    let text = format!("source = \"a test\"\n{FIRST}{more}");
    let names = |scenario: &Scenario| -> Vec<String> {
        scenario.checks.iter().map(|check| check.name.clone()).collect()
    };
    let full = good(&text);
    assert_eq!((full.runs.len(), full.quick.len()), (3, 0));
    assert_eq!(names(&full), ["over a", "pairs", "each", "long"]);
    assert_eq!(full.runs[1].setup.plan().expect("plan").duration, Span::from_ms(20));
    let quick = read_with(&text, &Options { quick: true, ..Options::default() }).expect("good");
    assert_eq!(names(&quick), ["pairs", "each"]);
    assert_eq!(quick.checks[0].runs, [0, 1]);
    let bases =
        Some(Relative::Runs { runs: vec![1, 0], metric: "goodput_gbps".to_owned(), gain: false });
    assert_eq!(quick.checks[0].relative, bases);
    assert_eq!(quick.checks[1].runs, [0, 1]);
    assert_eq!(quick.runs.len(), 2);
    assert_eq!(quick.runs[0].variant.as_deref(), Some("b"));
    assert_eq!(quick.runs[0].setup.plan().expect("plan").duration, Span::from_ms(2));
    let notes = [
        "duration = 2ms",
        "without variant a",
        "without check \"over a\"",
        "without check \"long\"",
    ];
    assert_eq!(quick.quick, notes);
}

#[test]
fn a_sweep_lists_the_values_of_quick_runs() {
    let sweep = "[sweep]\nkey = \"workload.size\"\nvalues = [\"4kB\", \"8kB\", \"16kB\"]\n\
                 quick = [\"8kB\"]\n";
    let options = Options { quick: true, ..Options::default() };
    let quick = read_with(&format!("{FIRST}{sweep}"), &options).expect("good");
    let variants: Vec<_> = quick.runs.iter().filter_map(|run| run.variant.as_deref()).collect();
    assert_eq!(variants, ["8kB"]);
}
