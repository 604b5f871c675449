//! Jobs and collectives in scenarios.

use apus_jobs::collectives::Algorithm;
use apus_sim::plan::Load;

use crate::support::{assert_reads_back, good, read, run_scenario};

const STAR: &str = "duration = \"100ms\"\n\
    topology = { kind = \"star\", hosts = 8, rate = \"100Gbps\", delay = \"1us\", buffer = \"100MB\" }\n\
    algorithm = { name = \"constant\", window = 64 }\n";

fn star(workload: &str) -> String {
    format!("{STAR}[[workload]]\n{workload}")
}

fn problem(workload: &str) -> String {
    read(&star(workload)).expect_err("refused").to_string()
}

/// The closed form of a ring all-reduce of 8 MiB among 8 ranks is 1225.4144 us. Acknowledgements delay it by at
/// most 84 / 4160.
#[test]
fn a_collective_of_one_line_gives_its_completion_time_and_ends_the_run() {
    let text = star("kind = \"all-reduce\"\nsize = \"8MiB\"\n");
    let summary = run_scenario(&text);
    let job = summary.jobs.first().expect("a job");
    let time = job.completion_us.expect("it ends");
    assert!((1225.4144..1.0202 * 1225.4144).contains(&time), "{time}");
    assert!((job.ideal_us.expect("closed form") - 1225.4144).abs() < 1e-6);
    assert_eq!((job.name.as_str(), job.ranks, job.unfinished), ("all-reduce", 8, 0));
    assert!(summary.simulated_s < 0.0013, "{}", summary.simulated_s);
    assert_reads_back(&good(&text));
}

#[test]
fn a_schedule_is_read_from_text_and_written_into_the_effective_configuration() {
    let operations = "num_ranks 2\nrank 0 {\nl1: send 4096b to 1 tag 3\n}\nrank 1 {\nl1: recv 4096b from 0 tag 3\n}\n";
    let text = star(&format!(
        "kind = \"job\"\nname = \"pair\"\nhosts = [5, 2]\noperations = '''\n{operations}'''\n"
    ));
    let scenario = good(&text);
    assert_reads_back(&scenario);
    let plan = scenario.runs[0].setup.plan().expect("plan");
    assert_eq!(plan.connections.len(), 1);
    let pair = &plan.connections[0];
    assert_eq!((pair.from.get(), pair.to.get()), (5, 2));
    assert_eq!(pair.load, Load::Job { job: 0, from: 0, to: 1 });
    let summary = run_scenario(&text);
    // Two links of 1 us and two times 4160 B at 100 Gb/s.
    let time = summary.jobs[0].completion_us.expect("it ends");
    assert!((time - 2.6656).abs() < 1e-9, "{time}");
    assert_eq!(summary.jobs[0].name, "pair");
}

#[test]
fn placements_give_each_rank_its_host() {
    let hosts = |placement: &str, seed: u32| {
        let text = star(&format!(
            "kind = \"all-reduce\"\nsize = \"1MB\"\nranks = 6\nranks_per_host = 2\n\
             local_rate = \"400Gbps\"\nhosts = [7, 1, 3]\nplacement = \"{placement}\"\n"
        ));
        let setup = good(&text).runs[0].setup.clone().with_seed(seed.into());
        let plan = setup.plan().expect("plan");
        plan.jobs[0].hosts.iter().map(|host| host.get()).collect::<Vec<u32>>()
    };
    assert_eq!(hosts("block", 1), [7, 7, 1, 1, 3, 3]);
    assert_eq!(hosts("round-robin", 1), [7, 1, 3, 7, 1, 3]);
    let mut random = hosts("random", 1);
    assert_eq!(random, hosts("random", 1));
    assert!((2..20).any(|seed| hosts("random", seed) != random));
    random.sort_unstable();
    assert_eq!(random, [1, 1, 3, 3, 7, 7]);
}

/// A ring of 8 has 8 connections, one from each rank to the next.
#[test]
fn flows_per_pair_multiply_the_connections() {
    let text = star("kind = \"all-reduce\"\nsize = \"1MB\"\nflows_per_pair = 3\n");
    let plan = good(&text).runs[0].setup.plan().expect("plan");
    assert_eq!(plan.connections.len(), 24);
    assert_eq!(plan.demands[0].connections, 0..24);
}

#[test]
fn settings_of_jobs_without_effect_and_impossible_ones_are_errors() {
    for (workload, part) in [
        ("kind = \"all-reduce\"\n", "`workload.size`"),
        ("kind = \"all-reduce\"\nsize = \"1MB\"\nchunks = 4\n", "no effect on this pattern"),
        ("kind = \"all-reduce\"\nsize = \"1MB\"\nranks = 9\n", "9 ranks without room"),
        (
            "kind = \"all-reduce\"\nsize = \"1MB\"\nlocal_rate = \"1Gbps\"\n",
            "with one rank per host",
        ),
        ("kind = \"all-reduce\"\nsize = \"1MB\"\nranks_per_host = 2\n", "local_rate"),
        ("kind = \"all-reduce\"\nsize = \"1MB\"\nstop = \"1ms\"\n", "ends with its last operation"),
        ("kind = \"all-reduce\"\nsize = \"4B\"\n", "at least 8, one byte per message"),
        ("kind = \"all-reduce\"\nsize = \"1MB\"\npattern = \"chain\"\n", "cannot be \"chain\""),
        (
            "kind = \"all-reduce\"\nsize = \"1MB\"\npattern = \"hierarchical\"\nlocal_rate = \"1Gbps\"\n\
             places = { ranks = \"0 0 0 1 1 2\" }\n",
            "`workload.group`",
        ),
        ("kind = \"job\"\n", "`workload.file`"),
        (
            "kind = \"job\"\noperations = \"num_ranks 1\\nrank 0 {\\nsend 5b to 1\\n}\\n\"\n",
            "peer is rank 1",
        ),
        (
            "kind = \"external\"\nranks = 4000000000\n",
            "`workload.ranks` leaves 4000000000 ranks without room",
        ),
        (
            "kind = \"external\"\nranks_per_host = 1000000000\nlocal_rate = \"1Gbps\"\n",
            "`workload.ranks` is 4294967295; a job has at most 1000000 ranks",
        ),
        (
            "kind = \"training\"\nmodel = \"mixtral-8x7b\"\nexperts = 4\nexperts_per_token = 5\n",
            "experts_per_token: 5; it must be from 1 to the number of experts, 4",
        ),
    ] {
        let found = problem(workload);
        assert!(found.contains(part), "{workload}: {found}");
    }
}

/// The number of a job in the list of jobs is part of the name of its metrics.
#[test]
fn checks_name_metrics_of_jobs() {
    let text = star(
        "kind = \"all-reduce\"\nsize = \"8MiB\"\n[[check]]\nkind = \"formula\"\n\
         metric = \"jobs.0.slowdown\"\nlow = 1.0\nhigh = 1.03\nname = \"slowdown\"\nsource = \"closed form\"\n",
    );
    let read = read(&text);
    assert!(read.is_ok(), "{}", read.expect_err("problems"));
    let wrong = text.replace("jobs.0.slowdown", "jobs.1.slowdown");
    assert!(crate::support::read(&wrong).is_err());
}

/// Four ranks on each of two hosts are two nodes. The traffic between them is a ring of two for each of four
/// positions.
#[test]
fn the_nodes_of_listed_places_are_the_ranks_of_a_host() {
    let workload = "kind = \"all-reduce\"\nsize = \"1MB\"\npattern = \"hierarchical\"\nlocal_rate = \"400Gbps\"\n\
                    places = { ranks = \"0 0 0 0 1 1 1 1\" }\n";
    let plan = good(&star(workload)).runs[0].setup.plan().expect("plan");
    let job = &plan.jobs[0];
    let group = Algorithm::Hierarchical { group: 4 };
    assert_eq!(job.collective.as_ref().map(|collective| collective.algorithm), Some(group));
}

/// Nodes have no default size if the ranks of a host are not consecutive: their rings would cross the fabric.
#[test]
fn nodes_need_their_size_unless_ranks_of_a_host_are_consecutive() {
    let spread = [
        "ranks_per_host = 2\nplacement = \"round-robin\"\n",
        "ranks_per_host = 2\nplacement = \"random\"\n",
        "places = { ranks = \"0 1 0 1 2 3 2 3\" }\n",
    ];
    for kind in [
        "kind = \"all-reduce\"\npattern = \"hierarchical\"\n",
        "kind = \"all-to-all\"\npattern = \"rail\"\n",
    ] {
        for places in spread {
            let workload = format!("{kind}size = \"1MB\"\nlocal_rate = \"400Gbps\"\n{places}");
            let found = problem(&workload);
            assert!(found.contains("`workload.group` is missing"), "{workload}: {found}");
            good(&star(&format!("{workload}group = 2\n")));
        }
    }
    let workload = "kind = \"all-reduce\"\npattern = \"hierarchical\"\nsize = \"1MB\"\nlocal_rate = \"400Gbps\"\nranks_per_host = 2\n";
    let plan = good(&star(workload)).runs[0].setup.plan().expect("plan");
    let group = Algorithm::Hierarchical { group: 2 };
    assert_eq!(plan.jobs[0].collective.map(|collective| collective.algorithm), Some(group));
}

/// A dense variant of Mixtral passes each token through its only network.
#[test]
fn a_token_passes_no_more_experts_than_there_are() {
    let text = star("kind = \"training\"\nmodel = \"mixtral-8x7b\"\nlayers = 1\nexperts = 1\n");
    let scenario = good(&text);
    assert!(scenario.runs[0].setup.to_toml().contains("experts_per_token = 1"));
    assert_reads_back(&scenario);
}

#[test]
fn messages_that_no_host_sends_are_errors_that_name_rank_and_operation() {
    let workload = |bytes: u64| {
        format!(
            "kind = \"job\"\noperations = \"num_ranks 2\\nrank 0 {{\\nl1: send {bytes}b to 1\\n}}\\nrank 1 {{\\nl1: recv {bytes}b from 0\\n}}\\n\"\n"
        )
    };
    good(&star(&workload(1 << 40)));
    for bytes in [(1 << 40) + 1, u64::MAX] {
        let found = problem(&workload(bytes));
        let part = format!(
            "rank 0, op 0 (l1): send {bytes} B to rank 1, tag 0: a message has at most 1099511627776 B"
        );
        assert!(found.contains(&part), "{found}");
    }
}
