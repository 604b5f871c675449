//! Jobs: closed forms, times of messages computed by hand, and equal results for any number of threads.

use apus_jobs::collectives::{Algorithm, Collective};
use apus_jobs::{Done, Graph, Op, ProgramBuilder};
use apus_sim::PacketSizes;
use apus_sim::jobs::JobSummary;
use apus_sim::plan::{JobPlan, LocalNetwork, SendOrder};
use apus_sim::summary::Summary;
use apus_units::random::SplitMix64;
use apus_units::{HostId, Rate, Span};

use crate::support::{Plan, Simulation, Topology, fingerprint, run, tier};
use apus_algorithms::build;

/// Places each rank on the host of its number, in a star at 100 Gb/s with links of 1 us.
pub(crate) fn star(job: JobPlan, hosts: u32, control: u32) -> Plan {
    let links = tier(Rate::from_gbps(100), Span::from_us(1));
    plan_on(Topology::star(hosts, &links), vec![job], control)
}

pub(crate) fn plan_on(topology: Topology, jobs: Vec<JobPlan>, control: u32) -> Plan {
    let window = build("constant", None, &[("window", "64")]).expect("algorithm");
    let sizes = PacketSizes { payload: 4096, header: 64, control };
    let mut plan = Plan::builder(topology, Span::from_ms(100)).packets(sizes);
    for job in jobs {
        plan = plan.job(job, &window).expect("job");
    }
    plan.build().expect("plan")
}

pub(crate) fn hosts(count: u32) -> impl Iterator<Item = HostId> {
    (0..count).map(HostId::new)
}

pub(crate) fn collective(algorithm: Algorithm, ranks: u32, bytes: u64) -> JobPlan {
    let collective = Collective::new(algorithm, ranks, bytes);
    let graph = collective.graph().expect("graph");
    JobPlan { collective: Some(collective), ..JobPlan::new("job", graph, hosts(ranks)) }
}

pub(crate) fn job_of(summary: &Summary) -> &JobSummary {
    assert!(!summary.interrupted, "{:?}", summary.stop_reason);
    summary.jobs.first().expect("a job")
}

fn completion(plan: &Plan) -> f64 {
    let summary = run(plan);
    let job = job_of(&summary);
    assert_eq!((job.unfinished, job.unexpected), (0, 0), "{:?} {:?}", job.stuck, job.leftover);
    job.completion_us.expect("it ends")
}

pub(crate) fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-6
}

/// Packets of 4096 B with headers of 64 B over two links: a message of m bytes takes 2 us + (m + m/64) * 80
/// ps + 332.8 ns. Ring: 14 messages of 1 MiB; halving-doubling: two each of 4, 2 and 1 MiB; pairwise: 7 of 1
/// MiB; direct: the packets of 7 MiB one after the other.
#[test]
fn collectives_take_their_closed_forms_with_acknowledgements_of_length_zero() {
    for (algorithm, us) in [
        (Algorithm::RingAllReduce, 1225.4144),
        (Algorithm::HalvingDoubling, 1206.7520),
        (Algorithm::AllToAllPairwise, 612.7072),
        (Algorithm::AllToAllDirect, 598.7104),
    ] {
        let summary = run(&star(collective(algorithm, 8, 8 << 20), 8, 0));
        let job = job_of(&summary);
        assert!(near(job.completion_us.expect("ends"), us), "{algorithm:?}: {job:?}");
        assert!(near(job.ideal_us.expect("closed form"), us), "{algorithm:?}: {job:?}");
        assert_eq!(job.ideal_source, Some("closed form"));
        if algorithm == Algorithm::RingAllReduce {
            // 8 MiB * 8 bits * 14/8 / 1225.4144 us.
            let bus = job.bus_bandwidth_gbps.expect("bus bandwidth");
            assert!((bus - 95.8364).abs() < 1e-3, "{bus}");
        }
    }
}

/// Acknowledgements of 84 B share the links with the data of the other direction: 84 / 4160 = 2 %.
#[test]
fn collectives_are_within_two_percent_of_their_closed_forms_and_never_below() {
    for ranks in [2u32, 3, 4, 5, 7, 8, 13, 16, 31, 32, 64] {
        for algorithm in [
            Algorithm::RingAllReduce,
            Algorithm::RingReduceScatter,
            Algorithm::RingAllGather,
            Algorithm::HalvingDoubling,
            Algorithm::AllToAllPairwise,
            Algorithm::AllToAllDirect,
            Algorithm::AllToAllBruck,
        ] {
            let packets = if algorithm == Algorithm::AllToAllDirect { 16 } else { 4 };
            let bytes = u64::from(ranks) * packets * 4096;
            let summary = run(&star(collective(algorithm, ranks, bytes), ranks, 84));
            let job = job_of(&summary);
            let slowdown = job.slowdown.expect("slowdown");
            assert_eq!(job.ideal_source, Some("closed form"));
            // Both directions of all links are busy without a pause, so acknowledgements take 2.02 % of them.
            // They also delay packets, so that packets of several ranks meet at a receiver: at most 8 of
            // 332.8 ns.
            let met = 8.0 * 0.3328 / job.ideal_us.expect("closed form");
            let most = match algorithm {
                Algorithm::AllToAllDirect => 1.0 + 84.0 / 4160.0 + met,
                // The form is a bound. A rank that takes no part in the first step is ahead of the other
                // ranks, and its packets alternate with those of their first step. Such a rank then sends or
                // receives a message of the next step next to the message for which the other ranks wait,
                // which takes twice as long at most.
                Algorithm::HalvingDoubling if !ranks.is_power_of_two() => 2.0,
                _ => 1.02,
            };
            assert!((1.0..most).contains(&slowdown), "{algorithm:?} of {ranks}: {slowdown}");
        }
    }
}

/// Rank 0 sends to ranks 1 and 2; rank 1 passes the message on to rank 3. A message has 8 packets of 332.8
/// ns. Sequential: rank 1 has it after 9 packets and 2 us, rank 3 after 9 packets and 2 us more. Interleaved:
/// the packets to ranks 1 and 2 alternate, so the last packet to rank 1 is the 15th of rank 0.
#[test]
fn a_broadcast_takes_its_closed_form_if_messages_leave_one_at_a_time() {
    let broadcast = |order| {
        let job = collective(Algorithm::BroadcastBinomial, 4, 8 * 4096);
        let summary = run(&star(JobPlan { order, ..job }, 4, 0));
        let job = job_of(&summary);
        (job.completion_us.expect("ends"), job.ideal_us.expect("ideal"))
    };
    let (packet, links) = (0.3328, 4.0);
    let (sequential, ideal) = broadcast(SendOrder::Sequential);
    assert!(near(sequential, 18.0 * packet + links), "{sequential}");
    assert!(near(ideal, sequential), "{ideal}");
    let (interleaved, ideal) = broadcast(SendOrder::Interleaved);
    assert!(near(interleaved, 25.0 * packet + links), "{interleaved}");
    assert!(near(ideal, sequential), "{ideal}");
}

/// Rank 0 sends 5096 B to each of two ranks, in packets of 4160 B and 1064 B. Sequential: 2 * 5224 B leave,
/// and on its second link the last packet waits for the first packet of its message: 4160 B more.
/// Interleaved: both first packets leave, then both last packets, and the last one waits less: 12480 B of
/// three first packets precede it. It takes at least its own 1064 B on that link.
#[test]
fn the_short_last_packet_of_a_broadcast_may_follow_one_of_another_message() {
    for (order, packets, least) in [
        (SendOrder::Sequential, 2 * 5224 + 4160, 2 * 5224 + 4160),
        (SendOrder::Interleaved, 12_480 + 1064, 2 * 5224 + 1064),
    ] {
        let job = collective(Algorithm::BroadcastBinomial, 3, 5096);
        let summary = run(&star(JobPlan { order, ..job }, 3, 0));
        let job = job_of(&summary);
        let us = |bytes: u32| 2.0 + f64::from(bytes) * 80e-6;
        assert!(near(job.completion_us.expect("ends"), us(packets)), "{order:?}: {job:?}");
        assert!(near(job.ideal_us.expect("ideal"), us(least)), "{order:?}: {job:?}");
    }
}

/// 6096 B in packets of 4160 B and 2064 B over links of 100, 40, 40 and 100 Gb/s. The first packet takes
/// 332.8 ns. The last packet follows it on the slow links (832 ns and 412.8 ns each) and finds the last link
/// free, where the first packet needs 332.8 ns. Over a last link of 10 Gb/s, both packets follow each other.
#[test]
fn a_short_last_packet_does_not_wait_on_a_fast_link_behind_a_slow_one() {
    for (last, ns) in [
        (100, 332.8 + 832.0 + 832.0 + 412.8 + 165.12),
        (10, 332.8 + 832.0 + 832.0 + 3328.0 + 1651.2),
    ] {
        let mut sender = ProgramBuilder::new(0, 2);
        let mut receiver = ProgramBuilder::new(1, 2);
        sender.push(Op::send(1, 6096, 0)).expect("op");
        receiver.push(Op::receive(0, 6096, 0)).expect("op");
        let programs = [sender, receiver].map(|program| program.finish().expect("program"));
        let graph = Graph::new(programs.into()).expect("graph");
        let job = JobPlan::new("one", graph, hosts(2));
        let us = |rate| tier(Rate::from_gbps(rate), Span::from_us(1));
        let topology = Topology::leaf_spine(2, 1, 1, &us(100), &us(40));
        let topology = topology.with_switch_ports(|port| {
            if port.rate == Rate::from_gbps(100) {
                port.rate = Rate::from_gbps(last);
            }
        });
        let summary = run(&plan_on(topology, vec![job], 0));
        let job = job_of(&summary);
        assert!(near(job.completion_us.expect("ends"), 4.0 + ns / 1e3), "{last}: {job:?}");
        assert!(near(job.ideal_us.expect("ideal"), 4.0 + ns / 1e3), "{last}: {job:?}");
    }
}

/// The packets of four leaves with a host each go up to 64 spines, in most seeds over links of their own.
/// Three messages of 1 MB at the same time, at 33 Gb/s each, are not limited by uplinks of 40 Gb/s. One after
/// the other, they would take 80 us each at the NIC, and 120 us more for the last one.
#[test]
fn messages_sent_at_once_may_take_slow_uplinks_of_their_own() {
    let (edge, up) = [100, 40].map(|gbps| tier(Rate::from_gbps(gbps), Span::from_us(1))).into();
    let window = build("constant", None, &[("window", "100000")]).expect("algorithm");
    let mut fastest = f64::MAX;
    for seed in 1..=8 {
        let topology = Topology::leaf_spine(4, 1, 64, &edge, &up);
        let job = collective(Algorithm::AllToAllDirect, 4, 4_000_000);
        let plan = Plan::builder(topology, Span::from_ms(100)).seed(seed).job(job, &window);
        let summary = run(&plan.expect("job").build().expect("plan"));
        let job = job_of(&summary);
        let (time, least) = (job.completion_us.expect("ends"), job.ideal_us.expect("ideal"));
        assert!(time >= least, "seed {seed}: {time} is below {least}");
        fastest = fastest.min(time);
    }
    assert!(fastest < 3.0 * 80.0 * 1.1, "{fastest}");
}

/// Two messages of one packet; the second one starts when the first one is done. A packet takes 332.8 ns per
/// link, and 2 us for the two links. The notice of a delivery also takes 2 us; an acknowledgement takes 6.72
/// ns per link more.
#[test]
fn the_next_operation_starts_when_the_setting_says_that_a_send_is_done() {
    let arrives = 2.0 * 0.3328 + 2.0;
    let known = 2.0 + 2.0 * 0.00672;
    for (done, us) in [
        (Done::Local, 0.3328 + arrives),
        (Done::Delivered, arrives + 2.0 + arrives),
        (Done::Acknowledged, 2.0 * (arrives + known)),
    ] {
        for order in [SendOrder::Interleaved, SendOrder::Sequential] {
            let mut sender = ProgramBuilder::new(0, 2);
            let mut receiver = ProgramBuilder::new(1, 2);
            for tag in 0..2 {
                sender.push(Op::send(1, 4096, tag)).expect("op");
                receiver.push(Op::receive(0, 4096, tag)).expect("op");
            }
            sender.requires(1, 0);
            let programs = [sender, receiver].map(|program| program.finish().expect("program"));
            let graph = Graph::new(programs.into()).expect("graph");
            let job = JobPlan { done, order, ..JobPlan::new("two", graph, hosts(2)) };
            let found = completion(&star(job, 2, 84));
            assert!(near(found, us), "{done:?}, {order:?}: {found} instead of {us}");
        }
    }
}

/// Within a host, 1 MB at 400 Gb/s takes 20 us, and its delay is 1 us. Rank 0 sends to 1 and 2, one after the
/// other; both send to rank 3, which receives 1 MB at a time.
#[test]
fn ranks_of_a_host_have_a_network_of_their_own() {
    let mut programs: Vec<_> = (0..4).map(|rank| ProgramBuilder::new(rank, 4)).collect();
    for middle in [1, 2] {
        programs[0].push(Op::send(middle, 1_000_000, 0)).expect("op");
        let of_middle = &mut programs[middle as usize];
        of_middle.push(Op::receive(0, 1_000_000, 0)).expect("op");
        of_middle.push(Op::send(3, 1_000_000, middle)).expect("op");
        of_middle.requires(1, 0);
        programs[3].push(Op::receive(middle, 1_000_000, middle)).expect("op");
    }
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    let graph = Graph::new(programs.collect()).expect("graph");
    let local = Some(LocalNetwork { rate: Rate::from_gbps(400), delay: Span::from_us(1) });
    let job = JobPlan { local, ..JobPlan::new("local", graph, [0; 4].map(HostId::new)) };
    let plan = star(job, 2, 84);
    assert_eq!(plan.connections.len(), 0);
    // 21 us to rank 1, 41 us to rank 2, and 21 us more to rank 3.
    assert!(near(completion(&plan), 62.0));
    let nowhere = JobPlan { local: None, ..(*plan.jobs[0]).clone() };
    let window = build("constant", None, &[]).expect("algorithm");
    let links = tier(Rate::from_gbps(100), Span::from_us(1));
    let plan = Plan::builder(Topology::star(2, &links), Span::from_ms(1));
    let refused = plan.job(nowhere, &window).expect_err("no network").to_string();
    assert!(refused.contains("ranks 0 and 1 are both on host 0"), "{refused}");
}

/// Rank 0 sends messages of 2^40 B. Each takes 278 years at 1 kb/s, longer than any time here.
#[test]
fn messages_are_bounded_and_sums_of_their_times_do_not_wrap() {
    let graph = |bytes: u64| {
        let mut programs = [0, 1].map(|rank| ProgramBuilder::new(rank, 2));
        for tag in 0..3 {
            programs[0].push(Op::send(1, bytes, tag)).expect("op");
            programs[1].push(Op::receive(0, bytes, tag)).expect("op");
        }
        Graph::new(programs.map(|program| program.finish().expect("program")).into())
            .expect("graph")
    };
    let window = build("constant", None, &[]).expect("algorithm");
    let plan = |bytes: u64, on: [u32; 2], switch: SendOrder| {
        let links = tier(Rate::from_bps(1000), Span::from_us(1));
        let local = Some(LocalNetwork { rate: Rate::from_bps(1000), delay: Span::from_us(1) });
        let job = JobPlan::new("long", graph(bytes), on.map(HostId::new));
        let job = JobPlan { local, order: switch, ..job };
        Plan::builder(Topology::star(2, &links), Span::from_us(1)).job(job, &window)
    };
    for on in [[0, 1], [0, 0]] {
        for order in [SendOrder::Interleaved, SendOrder::Sequential] {
            let summary = run(&plan(1 << 40, on, order).expect("plan").build().expect("plan"));
            let ideal = summary.jobs[0].ideal_us.expect("ideal");
            assert!(near(ideal / Span::MAX.as_us_f64(), 1.0), "{ideal}");
        }
        for bytes in [(1 << 40) + 1, u64::MAX] {
            let error = plan(bytes, on, SendOrder::Interleaved).expect_err("too long").to_string();
            let part =
                format!("rank 0, op 0: send {bytes} B to rank 1, tag 0: a message has at most");
            assert!(error.contains(&part), "{error}");
        }
    }
}

/// Each rank computes for 5 us and then sends a packet to the other one: 5 + 2.6656 us per iteration.
#[test]
fn iterations_and_the_time_of_ranks_add_up() {
    let mut collective = Collective::new(Algorithm::AllToAllDirect, 2, 2 * 4096);
    (collective.iterations, collective.compute) = (3, Span::from_us(5));
    let job = JobPlan::new("steps", collective.graph().expect("graph"), hosts(2));
    let summary = run(&star(JobPlan { collective: Some(collective), ..job }, 2, 0));
    let job = job_of(&summary);
    assert_eq!(job.iterations_us.len(), 3);
    assert!(job.iterations_us.iter().all(|us| near(*us, 7.6656)), "{:?}", job.iterations_us);
    assert!(near(job.completion_us.expect("ends"), 3.0 * 7.6656));
    assert!(near(job.compute_us, 15.0), "{}", job.compute_us);
    let all = job.compute_us + job.send_us + job.wait_us;
    assert!(near(all, 3.0 * 7.6656), "{all}");
}

#[test]
fn operations_that_cannot_end_and_messages_without_receive_are_named() {
    let mut programs: Vec<_> = (0..2).map(|rank| ProgramBuilder::new(rank, 2)).collect();
    programs[0].push(Op::send(1, 100, 7)).expect("op");
    programs[1].push(Op::receive(0, 100, 8)).expect("op");
    programs[1].label("l1").expect("label");
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    let graph = Graph::new(programs.collect()).expect("graph");
    let summary = run(&star(JobPlan::new("stuck", graph, hosts(2)), 2, 84));
    let job = job_of(&summary);
    assert_eq!((job.completion_us, job.ideal_us), (None, None));
    assert_eq!((job.unfinished, job.unexpected), (1, 1));
    assert_eq!(job.stuck, ["rank 1, op 0 (l1): receive 100 B from rank 0, tag 8: started"]);
    assert_eq!(job.leftover, ["rank 1: 100 B from rank 0, tag 7"]);
}

/// Returns matching messages in an order in which they can run; each operation waits for operations that were
/// created before it.
pub(crate) fn random_job(seed: u64) -> JobPlan {
    let mut random = SplitMix64::new(seed);
    let mut below = |n: u64| random.below(n);
    let ranks = 2 + below(7) as u32;
    let mut programs: Vec<_> = (0..ranks).map(|rank| ProgramBuilder::new(rank, ranks)).collect();
    for tag in 0..below(40) as u32 {
        let (from, to) = (below(u64::from(ranks)) as u32, below(u64::from(ranks)) as u32);
        let bytes = below(50_000);
        let mut steps = vec![(from, Op::send(to, bytes, tag)), (to, Op::receive(from, bytes, tag))];
        if below(2) == 0 {
            steps.push((from, Op::compute(Span::from_ns(below(5_000)))));
        }
        for (rank, op) in steps {
            let program = &mut programs[rank as usize];
            let number = program.push(op).expect("op");
            for _ in 0..below(3) {
                if number > 0 {
                    program.requires(number, below(u64::from(number)) as u32);
                }
            }
        }
    }
    let programs = programs.into_iter().map(|program| program.finish().expect("program"));
    let graph = Graph::new(programs.collect()).expect("graph");
    let placed: Vec<HostId> = (0..ranks).map(|_| HostId::new(below(16) as u32)).collect();
    let local = Some(LocalNetwork { rate: Rate::from_gbps(400), delay: Span::from_ns(300) });
    let mut job = JobPlan { local, ..JobPlan::new("random", graph, placed) };
    job.done = [Done::Local, Done::Delivered, Done::Acknowledged][below(3) as usize];
    job.order = [SendOrder::Interleaved, SendOrder::Sequential][below(2) as usize];
    job.flows_per_pair = 1 + below(2) as u32;
    job
}

#[test]
fn five_hundred_random_jobs_are_the_same_for_any_threads_and_never_below_the_critical_path() {
    let links = tier(Rate::from_gbps(100), Span::from_us(1));
    let tree = Topology::fat_tree(4, 2, &links, &links, &links).expect("fat tree");
    for seed in 0..500 {
        let plan = plan_on(tree.clone(), vec![random_job(seed)], 84);
        let alone = run(&plan);
        let job = job_of(&alone);
        assert_eq!((job.unfinished, job.unexpected), (0, 0), "seed {seed}: {:?}", job.stuck);
        let (time, least) = (job.completion_us.expect("ends"), job.ideal_us.expect("ideal"));
        assert!(time >= least - 1e-6, "seed {seed}: {time} is below {least}");
        let [compute, wire, delay] =
            [job.critical_compute_us, job.critical_wire_us, job.critical_delay_us]
                .map(|us| us.expect("critical path"));
        assert!(near(compute + wire + delay, time), "seed {seed}: {compute} {wire} {delay} {time}");
        if seed % 5 > 0 {
            continue;
        }
        let windows = Simulation::new(&plan).expect("plan").in_windows();
        let windows = windows.run("test", &mut |_| {}).expect("run");
        assert_eq!(fingerprint(&windows), fingerprint(&alone), "seed {seed}: windows");
        for threads in [2, 5] {
            let simulation = Simulation::with_threads(&plan, threads).expect("plan");
            let simulation = if threads == 5 { simulation.in_windows() } else { simulation };
            let together = simulation.run("test", &mut |_| {}).expect("run");
            assert_eq!(
                fingerprint(&together),
                fingerprint(&alone),
                "seed {seed}: {threads} threads"
            );
        }
    }
}

/// A job whose sends are done when their last byte has left is done before its last acknowledgement arrives.
/// Its run ends with that acknowledgement, so that no op of the transport is cut off.
#[test]
fn a_run_that_ends_with_random_jobs_has_no_unfinished_op_for_any_meaning_of_done() {
    let links = tier(Rate::from_gbps(100), Span::from_us(1));
    let star = Topology::star(16, &links);
    for seed in 0..240 {
        let mut job = random_job(seed);
        job.done = [Done::Local, Done::Delivered, Done::Acknowledged][seed as usize % 3];
        let mut plan = plan_on(star.clone(), vec![job], 84);
        (plan.ends_with_ops, plan.duration) = (true, Span::from_ms(2));
        let summary = run(&plan);
        let job = job_of(&summary);
        assert_eq!((job.unfinished, job.unexpected), (0, 0), "seed {seed}: {:?}", job.stuck);
        let (measured, latency) = (&summary.measured, &summary.op_latency_us);
        assert_eq!((measured.unfinished_ops, latency.unfinished()), (0, 0), "seed {seed}");
        assert_eq!(summary.packets.in_flight, 0, "seed {seed}");
    }
}

/// Two jobs on the same hosts slow each other down: each of two rings has half of the links.
#[test]
fn jobs_share_the_fabric() {
    let alone = completion(&star(collective(Algorithm::RingAllReduce, 8, 8 << 20), 8, 0));
    let links = tier(Rate::from_gbps(100), Span::from_us(1));
    let job = || collective(Algorithm::RingAllReduce, 8, 8 << 20);
    let both = run(&plan_on(Topology::star(8, &links), vec![job(), job()], 0));
    for job in &both.jobs {
        let ratio = job.completion_us.expect("ends") / alone;
        assert!((1.9..=2.0).contains(&ratio), "{ratio}");
    }
}

/// Ranks 0 and 2 share a host, and so do ranks 1 and 3, so all messages of a ring of four ranks leave their
/// host. Each NIC carries twice 6 of 4 shares of 1 MiB, in packets of 4160 B for 4096 B.
#[test]
fn the_ideal_time_of_ranks_that_share_a_nic_is_that_of_its_bytes() {
    let job = collective(Algorithm::RingAllReduce, 4, 4 << 20);
    let on = [0, 1, 0, 1].map(HostId::new);
    let local = LocalNetwork { rate: Rate::from_gbps(400), delay: Span::from_us(1) };
    let job = JobPlan { hosts: on.into(), local: Some(local), ..job };
    let summary = run(&star(job, 2, 0));
    let job = job_of(&summary);
    let bytes = 12.0 * f64::from(1u32 << 20) * 65.0 / 64.0;
    let ideal = job.ideal_us.expect("ideal");
    assert_eq!(job.ideal_source, Some("bytes of the busiest NIC"));
    assert!(near(ideal, bytes * 80e-6), "{ideal}");
    assert!(job.slowdown.expect("slowdown") >= 1.0, "{job:?}");
}
