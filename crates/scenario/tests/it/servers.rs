//! SimAI's topologies with servers as hosts, and NICs of hosts whose links are listed one by one.

use crate::support::{assert_reads_back, good, read, run_scenario};

/// Two servers of two GPUs: NVSwitches 4 and 5, a leaf per rail, a spine.
const SIMAI: &str = "9 2 2 3 10 H100\\n4 5 6 7 8\\n\
    0 4 2880Gbps 0.000025ms 0\\n0 6 400Gbps 0.0005ms 0\\n1 4 2880Gbps 0.000025ms 0\\n1 7 400Gbps 0.0005ms 0\\n\
    2 5 2880Gbps 0.000025ms 0\\n2 6 400Gbps 0.0005ms 0\\n3 5 2880Gbps 0.000025ms 0\\n3 7 400Gbps 0.0005ms 0\\n\
    6 8 400Gbps 0.0005ms 0\\n7 8 400Gbps 0.0005ms 0\\n";

/// A message of 1 MiB from rank 0 to rank `to` of 4.
fn message(topology: &str, to: u32) -> String {
    let mut operations = format!("num_ranks 4\\nrank 0 {{\\nl1: send 1048576b to {to}\\n}}\\n");
    for rank in 1..4 {
        let receive = if rank == to { "l1: recv 1048576b from 0\\n" } else { "" };
        operations += &format!("rank {rank} {{\\n{receive}}}\\n");
    }
    format!(
        "duration = \"10ms\"\npackets = {{ payload = \"4096B\", header = \"64B\" }}\n\
         algorithm = {{ name = \"constant\", window = 600 }}\n\
         workload = [{{ kind = \"job\", operations = \"{operations}\" }}]\n{topology}"
    )
}

fn simai(text: &str, more: &str) -> String {
    format!("[topology]\nkind = \"links\"\nbuffer = \"100MB\"\ntext = \"{text}\"\n{more}")
}

fn time(scenario: &str) -> f64 {
    let summary = run_scenario(scenario);
    let job = summary.jobs.first().expect("a job");
    assert_eq!(job.unfinished, 0, "{:?}", job.stuck);
    job.completion_us.expect("it ends")
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-3, "{found} {expected}");
}

/// 1 MiB within a server: 2.9127 us at 2880 Gb/s, and two links of 25 ns. To the other server on the same rail:
/// 256 packets of 4160 B at 400 Gb/s (83.2 ns each) over two links of 500 ns; to the other rail over four
/// links.
#[test]
fn gpus_of_a_server_have_its_nvswitches_and_a_nic_each() {
    let servers = |to| time(&message(&simai(SIMAI, "servers = true\n"), to));
    assert_near(servers(1), 2.9127 + 0.05);
    assert_near(servers(2), 257.0 * 0.0832 + 1.0);
    assert_near(servers(3), 259.0 * 0.0832 + 2.0);
    let apart = simai(SIMAI, "");
    let summary = run_scenario(&message(&apart, 1));
    assert!(
        summary.notes.iter().any(|note| note.contains("`servers = true`")),
        "{:?}",
        summary.notes
    );
    assert_near(time(&message(&apart, 1)), 259.0 * 0.0832 + 2.0);
}

/// Without the links to the spine, a message to another rail first crosses the network within its server.
#[test]
fn rails_of_a_file_that_nothing_joins_are_reached_within_the_server() {
    let rails = SIMAI.replace("9 2 2 3 10", "8 2 2 2 8").replace("6 7 8\\n0", "6 7\\n0");
    let rails = rails.replace("4 5 6 7 8", "4 5 6 7");
    let rails = rails.split("6 8 400Gbps").next().expect("the links of GPUs").to_owned();
    let topology = simai(&rails, "servers = true\n");
    assert_near(time(&message(&topology, 3)), 2.9127 + 0.05 + 257.0 * 0.0832 + 1.0);
}

/// A GPU with two NVLinks has twice the rate: 1 MiB takes 1.4564 us.
#[test]
fn the_links_of_a_gpu_to_several_nvswitches_add_up() {
    let two = "12 2 4 3 14 H100\\n4 5 9 10 6 7 8\\n\
        0 9 2880Gbps 0.000025ms 0\\n1 9 2880Gbps 0.000025ms 0\\n2 10 2880Gbps 0.000025ms 0\\n3 10 2880Gbps 0.000025ms 0\\n";
    let links = SIMAI.split_once("8\\n0 4").expect("the first link").1;
    let text = format!("{two}0 4{links}").replace("12 2 4 3 14", "11 2 4 3 14");
    assert_near(time(&message(&simai(&text, "servers = true\n"), 1)), 1.4564 + 0.05);
}

#[test]
fn nvswitches_that_form_no_equal_servers_are_refused_with_the_reason() {
    let refused =
        |text: &str| read(&message(&simai(text, "servers = true\n"), 1)).unwrap_err().to_string();
    let slow = SIMAI.replace("3 5 2880Gbps", "3 5 900Gbps");
    assert!(
        refused(&slow).contains("the links of GPU 3 to NVSwitches have 900Gbps"),
        "{}",
        refused(&slow)
    );
    let crossed = SIMAI.replace("1 4 2880Gbps", "1 5 2880Gbps");
    assert!(refused(&crossed).contains("GPUs 0 and 1 are of one server"), "{}", refused(&crossed));
    let shared =
        SIMAI.replace("2 5 2880Gbps", "2 4 2880Gbps").replace("3 5 2880Gbps", "3 4 2880Gbps");
    assert!(refused(&shared).contains("joins GPUs 0 and 2"), "{}", refused(&shared));
}

#[test]
fn the_effective_configuration_has_the_nics_and_the_network_of_servers() {
    let scenario = message(&simai(SIMAI, "servers = true\n"), 1);
    assert_reads_back(&good(&scenario));
}

const LINKS: &str = "[topology]\nkind = \"links\"\nrate = \"400Gbps\"\ndelay = \"500ns\"\nbuffer = \"100MB\"\n\
    link = [{ a = \"h0\", b = \"s0\" }, { a = \"h0\", b = \"s1\" }, { a = \"h1\", b = \"s0\" }, { a = \"h1\", b = \"s1\" }]\n";

#[test]
fn links_of_a_host_are_divided_into_nics() {
    let nics = |more: &str| format!("{LINKS}nics = 2\n{more}");
    let scenario = message(&nics("scale_up_rate = \"2880Gbps\"\n"), 2);
    assert_near(time(&scenario), 257.0 * 0.0832 + 1.0);
}

#[test]
fn wrong_servers_and_nics_are_errors_with_the_remedy() {
    let wrong = |topology: String, says: &str| {
        let error = read(&message(&topology, 1)).expect_err("refused").to_string();
        assert!(error.contains(says), "{error}");
    };
    let plain = "4 2 2\\n2 3\\n0 2 1Gbps 1us 0\\n1 2 1Gbps 1us 0\\n";
    wrong(simai(plain, "servers = true\n"), "only SimAI's topologies with NVSwitches have");
    wrong(simai(SIMAI, "servers = true\nnics = 2\n"), "with `servers`");
    wrong(
        simai(&SIMAI.replace("9 2 2", "9 3 2"), "servers = true\n"),
        "4 GPUs are not whole servers of 3",
    );
    let uneven = SIMAI.replace("9 2 2 3 10", "9 2 2 3 11") + "0 7 400Gbps 0.0005ms 0\\n";
    wrong(simai(&uneven, "servers = true\n"), "gives GPU 1 1 links to the network, but GPU 0 2");
    wrong(format!("{LINKS}servers = true\n"), "without `file` or `text`");
    wrong(format!("{LINKS}nics = 3\n"), "divides the 2 links of a host into 3 NICs");
    wrong(format!("{LINKS}scale_up_rate = \"1Gbps\"\n"), "without `nics`");
    let crossed = LINKS.replace(
        "{ a = \"h1\", b = \"s0\" }, { a = \"h1\", b = \"s1\" }",
        "{ a = \"h1\", b = \"s1\" }, { a = \"h1\", b = \"s0\" }",
    );
    wrong(format!("{crossed}nics = 2\n"), "leaves NICs 0 of some hosts without a path");
}
