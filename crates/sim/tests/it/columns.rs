//! The reference of results is complete and matches the code.

use crate::support::Topology;
use crate::support::{connection, plan, run, tier};
use apus_jobs::collectives::{Algorithm, Collective};
use apus_sim::columns::STATS;
use apus_sim::measure::{
    Comparison, Moment, NamedWorkload, PortGroup, Quantity, Question, SeriesPlan, SizeRange,
    Sorting, Subject, Threshold,
};
use apus_sim::plan::{Demand, JobPlan};
use apus_sim::results::{METRICS, SCHEMA_VERSION, SCOPED, TABLES, document, explain, names};
use apus_units::{Bytes, ClassId, HostId, PortId, Rate, Span, Time};

/// `APUS_WRITE_DOCS=1` rewrites the page.
#[test]
fn docs_outputs_md_is_generated() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/outputs.md");
    if std::env::var_os("APUS_WRITE_DOCS").is_some() {
        std::fs::write(path, document()).expect("written");
    }
    let page = std::fs::read_to_string(path).expect("docs/outputs.md");
    assert!(
        page == document(),
        "APUS_WRITE_DOCS=1 cargo test -p apus-sim --test it columns rewrites it"
    );
}

#[test]
fn the_documentation_of_both_json_files_states_the_version_of_the_layout() {
    let version = format!("\"schema_version\": {SCHEMA_VERSION},");
    for table in &TABLES[..2] {
        assert!(table.row.contains(&version), "{}: {}", table.file, table.row);
    }
}

/// `<stat>` stands for every statistic if the part has no name in the scenario.
#[test]
fn metrics_of_the_whole_run_name_their_statistic() {
    assert!(METRICS.iter().all(|name| !name.contains('<')));
    assert!(STATS.iter().all(|stat| METRICS.contains(&&*format!("fabric_rtt_us.{stat}"))));
    assert!(SCOPED.contains(&"workload.<name>.size.<n>.slowdown.<stat>"));
}

/// Every leaf of a summary's JSON is documented, and every documented name exists.
#[test]
fn the_summary_is_what_is_explained() {
    let star = Topology::star(3, &tier(Rate::from_gbps(8), Span::from_us(1)));
    let connections = vec![connection(("swift", &[]), 0, 2, 10_000)];
    let mut plan = plan(star, connections, Span::from_us(1000));
    plan.connections[0].workload = Some(0);
    let deadline = Some(Span::from_us(100));
    plan.measures.workloads = vec![NamedWorkload { name: "only".to_owned(), deadline }];
    plan.measures.sizes = vec![SizeRange { from: Bytes::new(1), to: None }];
    plan.demands = vec![Demand {
        is_trace: false,
        label: "only".to_owned(),
        algorithm: "swift".to_owned(),
        class: None,
        connections: 0..1,
        open: None,
    }];
    let ports = vec![PortId::new(1)];
    plan.measures.groups = vec![PortGroup { name: "only".to_owned(), ports }];
    plan.measures.queue_interval = Some(Span::from_us(10));
    plan.measures.series = every_series();
    plan.measures.window = Some(Span::from_us(100));
    plan.measures.classes = vec!["sole".to_owned()];
    plan.measures.comparisons = vec![Comparison {
        name: "only".to_owned(),
        group: 0,
        class: ClassId::new(0),
        with: ClassId::new(0),
        floor: 1e-4,
        by: Sorting::Port,
    }];
    let collective = Collective::new(Algorithm::RingAllReduce, 2, 100);
    let graph = collective.graph().expect("graph");
    let job = JobPlan::new("only", graph, [0, 1].map(HostId::new));
    let like = plan.connections[0].clone();
    plan.add_job(job, &like).expect("job");
    let summary = run(&plan);
    let mut leaves = Vec::new();
    collect("", &serde_json::to_value(&summary).expect("summary"), &mut leaves);
    leaves.push("schema_version".to_owned());
    let mut explained: Vec<_> = TABLES[0].names().collect();
    explained.sort_unstable();
    for leaf in &mut leaves {
        let mut words: Vec<&str> = leaf.split('.').collect();
        if words.len() > 1 && STATS.iter().any(|stat| words.last() == Some(stat)) {
            words.pop();
            words.push("<stat>");
        }
        let leaf_is_of_ports = leaf.starts_with("ports.");
        let part = |word: &str| match word {
            "only" => "<name>".to_owned(),
            "sole" => "<class>".to_owned(),
            "0" if leaf_is_of_ports => "<bucket>".to_owned(),
            "0" => "<n>".to_owned(),
            word if leaf_is_of_ports && word.parse::<u32>().is_ok() => "<bucket>".to_owned(),
            word => word.to_owned(),
        };
        *leaf = words.into_iter().map(part).collect::<Vec<_>>().join(".");
    }
    leaves.sort();
    leaves.dedup();
    assert_eq!(leaves, explained);
}

/// Returns a series of every kind and quantity, all with the name "only".
fn every_series() -> Vec<SeriesPlan> {
    let series = |quantity: Quantity, question| SeriesPlan {
        name: "only".to_owned(),
        of: match quantity {
            Quantity::Goodput | Quantity::Share => Subject::Flow(0),
            _ => Subject::Ports(0),
        },
        quantity,
        interval: Span::from_us(10),
        question,
    };
    let at = |us| Moment::At(Time::ZERO + Span::from_us(us));
    let (from, to) = (at(0), at(100));
    let spans = Quantity::ALL.map(|(_, quantity)| series(quantity, Question::Span { from, to }));
    let hold = Span::from_us(10);
    let settle = Question::Settle { after: from, hold, threshold: Threshold::Above(0.0) };
    [vec![series(Quantity::Queue, settle)], spans.to_vec()].concat()
}

fn collect(path: &str, value: &serde_json::Value, leaves: &mut Vec<String>) {
    let Some(object) = value.as_object() else { return leaves.push(path.to_owned()) };
    for (key, value) in object {
        // This list is the one whose entries are declared individually.
        if let Some([job]) = value.as_array().map(Vec::as_slice).filter(|_| key == "jobs") {
            collect("jobs.0", job, leaves);
            continue;
        }
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        collect(&path, value, leaves);
    }
}

#[test]
fn a_name_is_explained_in_every_table_that_has_it() {
    let text = explain("goodput_gbps").expect("known");
    for table in ["summary.json", "flows.csv", "samples.csv"] {
        assert!(text.contains(table), "{table}: {text}");
    }
    assert_eq!(explain("goodput"), None);
    assert!(names().contains(&"slowdown"));
}
