//! `stream = true`: traces that are read during a run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{assert_reads_back, fingerprint, good, read, read_with, run_plan};
use apus_scenario::{MemoryLimit, Options, Scenario, Simulation};
use apus_units::Bytes;

/// A trace over a fat tree of 16 hosts.
fn scenario(workload: &str) -> String {
    format!(
        "duration = \"5ms\"\nends_with_ops = true\ntopology = \"fat-tree k=4 100Gbps 1us\"\n\
         algorithm = {{ name = \"swift\" }}\n[[workload]]\nkind = \"trace\"\n{workload}"
    )
}

/// Messages of up to 60 kB over 3 ms, and one after the end of the run, in the order of their times. Some are
/// simultaneous, and some exceed what a flow accepts at a time.
fn rows() -> String {
    let message = |n: u64| {
        let (from, to) = (n * 7 % 16, (n * 5 + 3) % 16);
        let to = if to == from { (to + 1) % 16 } else { to };
        format!("{}.5,{from},{to},{}\n", n / 3 * 5, 1 + n * n % 60_000)
    };
    let rows: String = (0..1800).map(message).collect();
    format!("start_us,from,to,bytes\n# a comment\n\n{rows}6000,0,1,1\n")
}

fn text(settings: &str, rows: &str) -> String {
    scenario(&format!("{settings}flows = \"\"\"\n{rows}\"\"\"\n[transport]\nmax_ops = 2\n"))
}

fn results(scenario: &Scenario, threads: u32) -> String {
    let plan = scenario.runs[0].setup.plan().expect("plan");
    let simulation = Simulation::with_threads(&plan, threads).expect("simulation");
    fingerprint(&simulation.run("stream", &mut |_| {}).expect("run"))
}

#[test]
fn results_are_those_of_a_trace_in_memory() {
    for flows in [1, 3] {
        let flows = format!("flows_per_pair = {flows}\n");
        let kept = good(&text(&flows, &rows()));
        let streamed = good(&text(&format!("{flows}stream = true\n"), &rows()));
        assert_reads_back(&streamed);
        let expected = results(&kept, 1);
        for threads in [1, 3] {
            assert_eq!(results(&streamed, threads), expected, "{flows}{threads} threads");
        }
    }
}

/// 90 MB within 3 ms on one link of 100 Gb/s: ops wait for room in their flows over many steps, some beyond the
/// end of the run.
#[test]
fn ops_that_wait_over_many_steps_are_those_of_a_trace_in_memory() {
    let rows: String = (0..300).map(|n| format!("{},0,13,{}\n", n * 10, 250_000 + n)).collect();
    let rows = format!("start_us,from,to,bytes\n{rows}");
    let kept = good(&text("flows_per_pair = 2\n", &rows));
    let streamed = good(&text("flows_per_pair = 2\nstream = true\n", &rows));
    assert_eq!(results(&streamed, 1), results(&kept, 1));
}

/// A run on links of 1 us proceeds by at least 16 us and at most 1 ms.
#[test]
fn the_estimate_of_memory_counts_the_messages_of_a_step_of_the_run() {
    for (duration, gap, held) in [("100us", 1, 16), ("1s", 100, 10)] {
        let rows: String = (0..90).map(|n| format!("{},0,1,5\n", n * gap)).collect();
        let rows = format!("start_us,from,to,bytes\n{rows}");
        let text = text("flows_per_pair = 1\nstream = true\n", &rows).replace("5ms", duration);
        let memory = MemoryLimit { bytes: Bytes::new(1), reason: "there is 1 B".to_owned() };
        let options = Options { memory: Some(memory), ..Options::default() };
        let error = read_with(&text, &options).expect_err("too little memory").to_string();
        assert!(error.contains(&format!("for {held} ops,")), "{duration}: {error}");
    }
}

/// A folder that is removed at the end of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_is_not_kept_and_must_not_change() {
    let folder = Folder::new("stream");
    let file = folder.0.join("rows.csv");
    fs::write(&file, rows()).expect("written");
    let options = Options { folder: Some(folder.0.clone()), ..Options::default() };
    let settings = "flows_per_pair = 1\nstream = true\nfile = \"rows.csv\"\n";
    let run = |settings: &str| read_with(&scenario(settings), &options);
    let streamed = run(settings).expect("good");
    let effective = streamed.runs[0].setup.to_toml();
    assert!(effective.len() < 5_000 && !effective.contains("0.5,0,3,1"), "{effective}");
    let again = read_with(&effective, &options).expect("reads back");
    assert_eq!(again.runs[0].setup.to_toml(), effective);
    let kept = good(&scenario(&format!("flows_per_pair = 1\nflows = \"\"\"\n{}\"\"\"\n", rows())));
    assert_eq!(results(&again, 1), results(&kept, 1));

    let plan = streamed.runs[0].setup.plan().expect("plan");
    fs::write(&file, rows().replace("2995.5,", "2995.6,")).expect("written");
    let simulation = Simulation::new(&plan).map(|_| ());
    let error = simulation.expect_err("another text").to_string();
    assert!(error.contains("rows.csv: the text has changed since it was checked"), "{error}");
    let upper = |text: &str| {
        let digest = text.lines().find_map(|line| line.strip_prefix("digest = ")).expect("digest");
        text.replace(digest, &digest.to_uppercase())
    };
    assert_ne!(upper(&effective), effective);
    let same = read_with(&upper(&effective), &options);
    assert!(same.expect_err("digest").to_string().contains("it has changed"));
    fs::write(&file, rows()).expect("written");
    let same = read_with(&upper(&effective), &options).expect("the same digest");
    assert_eq!(same.runs[0].setup.to_toml(), effective);
    fs::write(&file, rows().replace("2995.5,", "2995.6,")).expect("written");
    let error = read_with(&effective, &options).expect_err("digest").to_string();
    assert!(error.contains("`workload.digest` is ") && error.contains("it has changed"), "{error}");
    fs::remove_file(&file).expect("removed");
    let error = run(settings).expect_err("no file").to_string();
    assert!(error.contains("rows.csv: cannot be read"), "{error}");
}

#[test]
fn mistakes_are_named_with_their_line() {
    let head = "start_us,from,to,bytes\n";
    let settings = "flows_per_pair = 1\nstream = true\n";
    for (rows, message) in [
        (String::new(), "line 1: the header is missing"),
        (head.to_owned(), "line 1: the file has no messages"),
        (format!("{head}0,0,1\n"), "line 2: 3 columns; there must be four"),
        (format!("{head}1,0,1,5\n# x\n0.5,0,1,5\n"), "line 4: the message starts at 500ns, but"),
        (format!("{head}0,0,16,5\n"), "line 2: unknown host 16: the topology has 16"),
        (
            format!("{head}6000,0,1,5\n"),
            "line 1: the first message starts at 6ms, but the run ends",
        ),
        ("Nodes 16\n".to_owned(), "line 1: the header is `Nodes 16`; it must be"),
    ] {
        let error = read(&text(settings, &rows)).expect_err(&rows).to_string();
        assert!(error.contains(message), "{error}\n{rows}");
    }
    let error = read(&text("stream = true\n", &rows())).expect_err("flows").to_string();
    assert!(error.contains("`workload.stream` needs `flows_per_pair`"), "{error}");
    let error = read(&text("digest = \"00\"\n", &rows())).expect_err("digest").to_string();
    assert!(error.contains("`workload.digest` has no effect without `stream`"), "{error}");
}

/// The memory of a plan does not grow with the messages.
#[test]
fn a_plan_has_no_messages() {
    let plan = |stream: bool| {
        let settings = format!("flows_per_pair = 1\nstream = {stream}\n");
        good(&text(&settings, &rows())).runs[0].setup.plan().expect("plan")
    };
    let held = |plan: &apus_scenario::Plan| {
        let ops = plan.connections.iter().map(|connection| match &connection.load {
            apus_sim::plan::Load::Open(ops) => ops.len(),
            other => panic!("{other:?}"),
        });
        ops.sum::<usize>()
    };
    let (kept, streamed) = (plan(false), plan(true));
    assert_eq!((held(&kept), held(&streamed)), (1800, 0));
    assert_eq!(kept.trace_ops, streamed.trace_ops);
    assert_eq!(kept.connections.len(), streamed.connections.len());
    let hash = |plan: &apus_scenario::Plan| run_plan(plan).work.event_hash;
    assert_eq!(hash(&kept), hash(&streamed));
}
