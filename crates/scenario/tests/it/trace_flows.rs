//! Traces whose ops share flows: `flows_per_pair`.

use crate::support::fingerprint;
use crate::support::{assert_reads_back, good, read};
use apus_scenario::{ConnectionPlan, Plan, Simulation};
use apus_sim::plan::Load;
use apus_sim::record::OpRecord;
use apus_sim::summary::Summary;
use apus_units::{Span, Time};

/// Payload of one packet, and of every op of the idle link.
const PAYLOAD: u64 = 4096;

/// A trace over a star of 100 Gb/s and 1 us, with a window of one packet per flow.
fn trace(hosts: u32, workload: &str, rows: &str) -> String {
    format!(
        "duration = \"1ms\"\nends_with_ops = true\ntopology = \"star hosts={hosts} 100Gbps 1us\"\n\
         algorithm = {{ name = \"constant\", window = 1 }}\n\
         [[workload]]\nkind = \"trace\"\n{workload}\
         flows = \"\"\"\nstart_us,from,to,bytes\n{rows}\"\"\"\n"
    )
}

fn plan(text: &str) -> Plan {
    let scenario = good(text);
    assert_reads_back(&scenario);
    scenario.runs[0].setup.plan().expect("plan")
}

/// A connection: its hosts, and start in us and size of each op.
type Ops = (u32, u32, Vec<(f64, u64)>);

/// The connections in order.
fn connections(plan: &Plan) -> Vec<Ops> {
    let of = |connection: &ConnectionPlan| {
        let Load::Open(ops) = &connection.load else { panic!("{:?}", connection.load) };
        let at = |start: Time| start.since(Time::ZERO).as_us_f64();
        let ops = ops.iter().map(|op| (at(op.at), op.size.get())).collect();
        (connection.from.get(), connection.to.get(), ops)
    };
    plan.connections.iter().map(of).collect()
}

/// Runs a recorded scenario. Returns the latencies of all ops, by connection and number.
fn run_recorded(text: &str) -> (Summary, Vec<Span>) {
    let setup = good(text).runs[0].setup.clone().recorded(true);
    let simulation = Simulation::new(&setup.plan().expect("plan")).expect("simulation");
    let record = setup.record().expect("a record");
    let summary =
        simulation.record(record).expect("record").run("trace", &mut |_| {}).expect("run");
    let mut ops = summary.recording.as_ref().expect("recorded").ops.clone();
    ops.sort_by_key(|op| (op.flow, op.op));
    (summary, ops.iter().map(OpRecord::latency).collect())
}

/// Rows that are not in the order of time: pair 0-1 has 5 messages, pair 2-1 one.
const ROWS: &str = "3,0,1,30\n0,0,1,10\n0,0,1,20\n9,2,1,70\n5,0,1,50\n4,0,1,40\n";

#[test]
fn ops_of_a_pair_use_its_flows_round_robin() {
    let of = |workload: &str| connections(&plan(&trace(3, workload, ROWS)));
    let own = of("");
    assert_eq!(own.len(), 6, "a flow per message, in the order of the file");
    assert_eq!(own[0], (0, 1, vec![(3.0, 30)]));
    let last = (2, 1, vec![(9.0, 70)]);
    let all = vec![(0.0, 10), (0.0, 20), (3.0, 30), (4.0, 40), (5.0, 50)];
    assert_eq!(of("flows_per_pair = 1\n"), [(0, 1, all), last.clone()]);
    let first = (0, 1, vec![(0.0, 10), (3.0, 30), (5.0, 50)]);
    let second = (0, 1, vec![(0.0, 20), (4.0, 40)]);
    assert_eq!(of("flows_per_pair = 2\n"), [first, second, last]);
    // No flow without an op: five of the first pair, one of the second.
    let many = of("flows_per_pair = 100\n");
    assert_eq!(many.iter().map(|(_, _, ops)| ops.len()).collect::<Vec<_>>(), [1; 6]);
}

#[test]
fn zero_flows_per_pair_are_an_error() {
    let error = read(&trace(3, "flows_per_pair = 0\n", ROWS)).expect_err("0").to_string();
    assert!(error.contains("`workload.flows_per_pair` must be at least 1"), "{error}");
}

/// A packet of 4160 B and its acknowledgement of 84 B, each over two links of 100 Gb/s and 1 us.
fn round_trip() -> Span {
    let bit = Span::from_ps(10);
    let wire = |bytes: u64| Span::from_ps(bit.as_ps() * 8 * bytes);
    let twice = |span: Span| span + span;
    twice(wire(PAYLOAD + 64) + wire(84)) + Span::from_us(4)
}

/// Three ops of one packet arrive at the same time at an idle link. In one flow with a window of one packet,
/// op n waits for n round trips. In separate flows, op n waits only for n packets at the NIC.
#[test]
fn latency_includes_the_wait_behind_earlier_ops_of_the_flow() {
    let rows = format!("7,0,1,{PAYLOAD}\n").repeat(3);
    let rtt = round_trip();
    let (shared, latencies) = run_recorded(&trace(2, "flows_per_pair = 1\n", &rows));
    assert_eq!(latencies, [rtt, rtt + rtt, rtt + rtt + rtt]);
    assert_eq!(shared.makespan_us, Some((rtt + rtt + rtt).as_us_f64()));
    // Latencies are equal if the flow accepts one op at a time and the application queues the others.
    let text = trace(2, "flows_per_pair = 1\n", &rows) + "[transport]\nmax_ops = 1\n";
    assert_eq!(run_recorded(&text).1, [rtt, rtt + rtt, rtt + rtt + rtt]);
    let packet = Span::from_ps(10 * 8 * (PAYLOAD + 64));
    let (own, latencies) = run_recorded(&trace(2, "", &rows));
    assert_eq!(latencies, [rtt, rtt + packet, rtt + packet + packet]);
    assert_eq!(own.makespan_us, Some((rtt + packet + packet).as_us_f64()));
}

/// 420 messages of 16 pairs, some at once and some of several packets.
fn crowd(flows_per_pair: &str) -> String {
    let message = |n: u64| {
        let (pair, turn) = (n % 60, n / 60);
        let (from, to) = (pair % 16, (pair * 5 + 3) % 16);
        let to = if to == from { (to + 1) % 16 } else { to };
        format!("{},{from},{to},{}\n", turn / 2 * 3, 1 + pair * 211 + turn * 977)
    };
    let rows: String = (0..420).map(message).collect();
    // The slowest pair sends about 240 kB, a packet per round trip of at most 14 us: below 1.5 ms.
    trace(16, flows_per_pair, &rows).replace("star hosts=16", "fat-tree k=4").replace("1ms", "5ms")
}

/// For any distribution of ops over flows, every op ends and every byte is delivered once.
#[test]
fn shared_flows_conserve_ops_and_bytes() {
    for workload in ["", "flows_per_pair = 1\n", "flows_per_pair = 3\n"] {
        let plan = plan(&crowd(workload));
        let expected: u64 =
            connections(&plan).iter().flat_map(|(.., ops)| ops).map(|(_, size)| size).sum();
        let (summary, latencies) = run_recorded(&crowd(workload));
        assert_eq!(latencies.len(), 420, "{workload}");
        let ops = &summary.recording.as_ref().expect("recorded").ops;
        assert_eq!(ops.iter().map(|op| op.size).sum::<u64>(), expected, "{workload}");
        // sum over n of 1 + pair * 211 + turn * 977
        let by_hand = 420 + 7 * 211 * (59 * 60 / 2) + 60 * 977 * 21;
        assert_eq!(expected, by_hand, "{workload}");
        let delivered = summary.goodput_gbps * 1e9 / 8.0 * summary.measured.seconds;
        assert!((delivered / by_hand as f64 - 1.0).abs() < 1e-9, "{workload}: {delivered}");
        assert_eq!(summary.measured.unfinished_ops, 0, "{workload}");
    }
}

#[test]
fn shared_flows_give_the_same_results_on_any_number_of_threads() {
    let plan = plan(&crowd("flows_per_pair = 2\n"));
    let run = |threads| {
        let simulation = Simulation::with_threads(&plan, threads).expect("simulation");
        fingerprint(&simulation.run("threads", &mut |_| {}).expect("run"))
    };
    let one = run(1);
    for threads in [2, 3, 5] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
}
