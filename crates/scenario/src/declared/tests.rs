//! Every declared range is one that the reader checks.

use std::collections::BTreeSet;

use super::{Key, Keys, Kind, Range};
use crate::keys::RUN;
use crate::source::Problems;
use crate::tree::{self, Table, Value};
use crate::{Options, Scenario, Source};

/// Together these scenarios have every key with a range.
const SCENARIOS: [&str; 10] = [
    r#"
        duration = "20ms"
        seed = 1
        [topology]
        kind = "star"
        hosts = 4
        rate = "100Gbps"
        delay = "1us"
        shared = { size = "1MB", alpha = 1 }
        [[topology.class]]
        name = "x"
        priority = 1
        ecn = { k_min = "5kB", k_max = "200kB", p_max = 0.01 }
        [[topology.class]]
        name = "y"
        [host]
        model = "t1"
        engine = { scale = 1 }
        [algorithm]
        name = "dctcp"
        [[workload]]
        kind = "incast"
        op = "read"
        size = "64kB"
        name = "a"
        class = "x"
        deadline = "1ms"
        stop = "5ms"
        every = "10ms"
        service = { time = "1us", parallel = 1 }
        [[workload]]
        kind = "poisson"
        class = "y"
        load = 0.1
        size = "1kB"
        [[workload]]
        kind = "partition-aggregate"
        class = "y"
        request = "1kB"
        answer = "1kB"
        [[fault]]
        link = "switch 0 -> host 0"
        kind = "reorder"
        probability = 0.1
        delay = "1us"
        [[fault]]
        link = "switch 0 -> host *"
        kind = "slow"
        fraction = 0.5
        lasts = "10us"
        every = "1ms"
        share = 0.5
        [[fault]]
        link = "host * -> switch 0"
        kind = "slow"
        fraction = 0.5
        count = 1
        [measure]
        ports = { all = ["*"] }
        compare = [{ name = "c", ports = "all", class = "x", with = "y" }]
        [[measure.settle]]
        name = "s"
        of = { ports = "all" }
        quantity = "throughput"
        interval = "1ms"
        above = "1Gbps"
        hold = "1ms"
        [[measure.span]]
        name = "s"
        of = { ports = "all" }
        quantity = "throughput"
        interval = "1ms"
        [record]
        packets = ["*"]
        events = 1
    "#,
    r#"
        duration = "20ms"
        topology = "dumbbell left=2 right=2 100Gbps 1us ecn={k_min=\"5kB\",k_max=\"9kB\",p_max=1}"
        algorithm = { name = "dctcp" }
        [[workload]]
        kind = "all-to-all"
        size = "64kB"
        [measure]
        interval = "1ms"
        fair_share_after = "1ms"
    "#,
    r#"
        duration = "20ms"
        topology = "leaf-spine leaves=2 hosts_per_leaf=2 spines=2 100Gbps 1us"
        algorithm = { name = "swift" }
        workload = [{ kind = "permutation", size = "64kB" }]
    "#,
    r#"
        duration = "20ms"
        topology = "star hosts=4 400Gbps 500ns"
        algorithm = { name = "swift" }
        workload = [{ kind = "all-reduce", size = "64kB" }]
        [host]
        model = "loggops"
        latency = "3us"
        overhead = "1us"
        overhead_per_byte = "250ps"
        gap = "2us"
        gap_per_byte = "500ps"
        eager = "1KiB"
    "#,
    r#"
        duration = "20ms"
        topology = "fat-tree k=4 100Gbps 1us"
        algorithm = { name = "swift" }
        workload = [{ kind = "flows", size = "64kB", flow = [{ from = 0, to = 1 }] }]
    "#,
    r#"
        duration = "20ms"
        topology = "parking-lot switches=2 hosts_per_switch=2 100Gbps 1us"
        algorithm = { name = "swift" }
        [[workload]]
        kind = "trace"
        flows = "start_us,from,to,bytes\n0,0,1,1000\n"
        flows_per_pair = 1
    "#,
    r#"
        duration = "20ms"
        algorithm = { name = "swift" }
        workload = [{ kind = "incast", size = "64kB" }]
        [topology]
        kind = "links"
        rate = "100Gbps"
        delay = "1us"
        buffer = "4MB"
        link = [{ a = "h0", b = "s" }, { a = "h1", b = "s" }]
    "#,
    r#"
        duration = "20ms"
        topology = "leaf-spine leaves=2 spines=2 hosts_per_leaf=4 100Gbps 1us"
        algorithm = { name = "swift" }
        routing = { balancer = "reps", loss = "time", loss_delay = "5us", range = 256 }
        [[workload]]
        kind = "all-reduce"
        pattern = "hierarchical"
        size = "64kB"
        ranks = 8
        group = 2
        ranks_per_host = 2
        local_rate = "400Gbps"
        iterations = 2
        [[workload]]
        kind = "broadcast"
        pattern = "chain"
        size = "64kB"
        chunks = 4
        [[workload]]
        kind = "all-to-all"
        pattern = "window"
        size = "64kB"
        window = 2
        [[workload]]
        kind = "pipeline"
        size = "64kB"
        micro_batches = 4
        forward = "10us"
        backward = "20us"
        [[workload]]
        kind = "all-to-all"
        pattern = "rail"
        size = "64kB"
        ranks = 8
        group = 2
        places = { ranks = "0 1 2 3 4 5 6 7" }
        [[workload]]
        kind = "all-gather"
        size = "64kB"
        channels = 2
        [[workload]]
        kind = "reduce-scatter"
        size = "64kB"
        [[workload]]
        kind = "training"
        layers = 2
        hidden = 64
        feed_forward = 128
        vocabulary = 100
        sequence = 16
        experts = 4
        experts_per_token = 2
        tp = 2
        pp = 2
        dp = 2
        ep = 2
        pattern = "double-binary-tree"
        chunks = 2
    "#,
    r#"
        duration = "20ms"
        algorithm = { name = "swift" }
        workload = [{ kind = "all-reduce", size = "64kB" }]
        [topology]
        kind = "rails"
        nodes = 2
        nics = 2
        nodes_per_leaf = 2
        spines = 1
        rate = "100Gbps"
        delay = "1us"
        buffer = "4MB"
        scale_up_rate = "400Gbps"
        scale_up_delay = "25ns"
    "#,
    r#"
        duration = "20ms"
        algorithm = { name = "swift" }
        workload = [{ kind = "incast", size = "64kB" }]
        [topology]
        kind = "leaf-spine"
        leaves = 2
        hosts_per_leaf = 4
        oversubscription = 2.0
        rate = "100Gbps"
        delay = "1us"
        buffer = "4MB"
    "#,
];

fn read(text: &str, set: &[String]) -> Result<Scenario, String> {
    let source = Source { name: "test.toml".to_owned(), text: text.to_owned() };
    let options = Options { set: set.to_vec(), ..Options::default() };
    let none = |name: &str| Err(format!("no {name}"));
    Scenario::read(&source, &none, &options).map_err(|error| error.to_string())
}

/// Calls `found` with every value of a table, by the path that sets it.
fn values(keys: &Keys, table: &Table, path: &str, found: &mut dyn FnMut(String, &'static Key)) {
    for (name, entry) in &table.entries {
        let (path, key) = (format!("{path}{name}"), keys.find(name, table));
        match (&entry.node.value, key.and_then(|key| key.kind.keys())) {
            (Value::Table(inner), Some(keys)) => values(keys, inner, &format!("{path}."), found),
            (Value::List(list), Some(keys)) => {
                for (index, node) in list.iter().enumerate() {
                    let Value::Table(inner) = &node.value else { continue };
                    values(keys, inner, &format!("{path}.{index}."), found);
                }
            }
            _ => key.into_iter().for_each(|key| found(path.clone(), key)),
        }
    }
}

/// The values next to the range of a key, outside it.
fn outside(key: &Key) -> Vec<String> {
    let text = |n: u64| match key.kind {
        Kind::Drift => format!("{n}ppb"),
        kind => kind.amount_text(n),
    };
    match key.range {
        Range::Any => Vec::new(),
        Range::Whole(low, high) => {
            let (below, above) = (low.checked_sub(1), high.checked_add(1));
            [below, above].into_iter().flatten().map(text).collect()
        }
        Range::Number(low, high) => vec![(low - 0.01).to_string(), (high + 0.01).to_string()],
        Range::Above(low, high) => vec![low.to_string(), (high + 0.01).to_string()],
    }
}

/// The value above the limit of all keys of a kind, and the limit.
fn beyond_kind(kind: &Kind) -> Option<(&'static str, &'static str)> {
    match kind {
        Kind::Time | Kind::Moment => Some(("86401s", "at most 86400s")),
        Kind::Rate => Some(("101Tbps", "at most 100Tbps")),
        Kind::Size | Kind::SizeOrUnlimited => Some(("1025GiB", "at most 1TiB")),
        _ => None,
    }
}

/// The keys with a range below a table, as "topology.link.rate".
fn ranged(keys: &Keys, path: &str, all: &mut BTreeSet<String>) {
    for key in keys.own.iter().chain(keys.kinds.iter().flat_map(|kind| kind.keys)) {
        let path = format!("{path}{}", key.name);
        if !matches!(key.range, Range::Any) {
            all.insert(path.clone());
        }
        key.kind.keys().into_iter().for_each(|keys| ranged(keys, &format!("{path}."), all));
    }
}

#[test]
fn every_value_outside_its_range_is_refused_and_the_range_named() {
    let mut untested = BTreeSet::new();
    ranged(&RUN, "", &mut untested);
    assert!(untested.len() > 60, "{untested:?}");
    for text in SCENARIOS {
        let scenario = read(text, &[]).unwrap_or_else(|error| panic!("{error}"));
        let mut problems = Problems::default();
        let source = Source { name: String::new(), text: text.to_owned() };
        let place = problems.add_file(&source);
        let own = tree::parse(&source, place, &problems);
        let mut found = Vec::new();
        for table in [&own, &scenario.runs[0].setup.effective] {
            values(&RUN, table, "", &mut |path, key| found.push((path, key)));
        }
        for (path, key) in found {
            let range = key.range.words(&key.kind).unwrap_or_default();
            let cases = outside(key).into_iter().map(|value| (value, format!("must be {range},")));
            let of_kind = beyond_kind(&key.kind)
                .map(|(value, limit)| (value.to_owned(), format!("must be {limit},")));
            for (value, must) in cases.chain(of_kind) {
                let error = read(text, &[format!("{path}={value}")]).expect_err(&path);
                assert!(error.contains(&must) && error.contains(key.name), "{must}: {error}");
            }
            let is_index = |part: &&str| part.parse::<usize>().is_err();
            let path: Vec<&str> = path.split('.').filter(is_index).collect();
            untested.remove(&path.join("."));
        }
    }
    assert!(untested.is_empty(), "no scenario has {untested:?}");
}
