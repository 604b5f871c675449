//! `handshake`: a connection is set up before its first op.

use apus_scenario::{Options, Scenario, Simulation, Source};

fn read(algorithm: &str, handshake: bool, bytes: u32) -> Result<Scenario, String> {
    let text = format!(
        "duration = \"200us\"\nalgorithm = {algorithm}\n\
         [packets]\npayload = \"1460B\"\nheader = \"78B\"\ncontrol = \"84B\"\n\
         [topology]\nkind = \"links\"\nrate = \"10Gbps\"\ndelay = \"10us\"\nbuffer = \"1MB\"\n{}\
         [[topology.link]]\na = \"h0\"\nb = \"h1\"\n\
         [[workload]]\nkind = \"trace\"\nhandshake = {handshake}\n\
         flows = \"start_us,from,to,bytes\\n0,0,1,{bytes}\\n\"\n",
        if algorithm.contains("dctcp") { "ecn = { threshold = \"100kB\" }\n" } else { "" },
    );
    let source = Source { name: "s.toml".to_owned(), text };
    Scenario::read(&source, &|n| Err(n.to_owned()), &Options::default()).map_err(|e| e.to_string())
}

/// Latency of the only op, in microseconds.
fn latency(algorithm: &str, handshake: bool, bytes: u32) -> f64 {
    let scenario = read(algorithm, handshake, bytes).unwrap_or_else(|e| panic!("{e}"));
    let plan = scenario.runs[0].setup.plan().expect("plan");
    let summary = Simulation::new(&plan).expect("plan").run("one op", &mut |_| {}).expect("run");
    assert_eq!(summary.op_latency_us.count, 1, "the exchange is no op");
    summary.op_latency_us.max.expect("it ends")
}

fn assert_us(measured: f64, expected: f64) {
    assert!((measured - expected).abs() < 1e-6, "{measured} us, {expected} us expected");
}

/// An empty packet and its acknowledgement, control packets of 84 B (67.2 ns), 10 us each way.
const EXCHANGE: f64 = 0.0672 + 10.0 + 0.0672 + 10.0;

/// Data of 1078 B (862.4 ns) and its acknowledgement.
#[test]
fn a_handshake_adds_the_exchange_of_an_empty_packet_to_the_latency() {
    let op = 0.8624 + 10.0 + 0.0672 + 10.0;
    let dctcp = "{ name = \"dctcp\" }";
    assert_us(latency(dctcp, false, 1000), op);
    assert_us(latency(dctcp, true, 1000), EXCHANGE + op);
}

/// Four packets of 1538 B (1230.4 ns). Two leave; the acknowledgement of the first arrives after
/// 21.2976 us and lets the third and the fourth leave, whose acknowledgement arrives two packets and 20.0672 us
/// later. If the handshake had opened the window to three packets, one packet less would follow.
#[test]
fn the_first_window_is_that_of_the_first_data_packets() {
    let op = 21.2976 + 2.0 * 1.2304 + 20.0672;
    assert_us(latency("{ name = \"dctcp\", initial_cwnd = 2 }", true, 4 * 1460), EXCHANGE + op);
}

#[test]
fn credits_need_no_handshake() {
    let error = read("{ name = \"expresspass\" }", true, 1000).expect_err("it is refused");
    assert!(error.contains("`handshake` with `expresspass`"), "{error}");
}
