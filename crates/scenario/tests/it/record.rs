//! `[record]`: the tables and samples of a run that are kept.
use apus_scenario::Simulation;
use apus_sim::record::Record;
use apus_units::Span;

use crate::support::good;

/// The settings of `[record]` take effect and are part of the effective configuration.
#[test]
fn a_scenario_sets_the_recorded_data() {
    let text = "
        duration = \"1ms\"
        topology = { kind = \"star\", hosts = 3, rate = \"8Gbps\", delay = \"1us\", buffer = \"1MB\" }
        algorithm = { name = \"swift\" }
        record = { interval = \"10us\", flows = 1, ops = 7, nics = true }
        [[workload]]
        kind = \"incast\"
        size = \"4kB\"
    ";
    let read = |text: &str| good(text).runs.remove(0).setup;
    let setup = read(text);
    assert_eq!(setup.record(), None, "nothing is recorded unless results are written");
    let record = setup.recorded(true).record().expect("recorded");
    let asked = Record { interval: Span::from_us(10), flows: 1, ports: 32, ops: 7, nics: true };
    assert_eq!(record, asked);
    let again = read(&read(text).to_toml()).recorded(true);
    assert_eq!(again.record(), Some(asked));
    let plan = again.plan().expect("plan");
    let simulation = Simulation::new(&plan).expect("plan").record(record).expect("record");
    let summary = simulation.run("record", &mut |_| {}).expect("run");
    let recording = summary.recording.expect("recorded");
    assert_eq!(recording.times.len(), 100);
    assert_eq!(recording.sampled_ports.len(), 6); // both directions of three links
}

/// One of two links has a quarter of its rate from 1 to 2 ms. Ops of 100 kB, 25 packets of 4160 B at 100 Gb/s,
/// take 8 us, and 33 us during the fault. The flow over this link is slowed until the op that begins before 2
/// ms has ended; the other flow is not.
#[test]
fn a_fault_tells_whom_it_slowed_and_until_when() {
    let flow = |from| format!("[[workload.flow]]\nfrom = {from}\nto = {}\n", from + 1);
    let text = format!(
        "duration = \"4ms\"\ntopology = \"star hosts=4 100Gbps 1us 1MB\"\n\
         algorithm = {{ name = \"constant\", window = 64.0 }}\n\
         [[workload]]\nkind = \"flows\"\nsize = \"100kB\"\n{}{}\
         [[fault]]\nlink = \"host 0 -> switch 0\"\nkind = \"slow\"\nfraction = 0.25\nat = \"1ms\"\nuntil = \"2ms\"\n",
        flow(0),
        flow(2)
    );
    let setup = good(&text).runs.remove(0).setup.recorded(true);
    let simulation = Simulation::new(&setup.plan().expect("plan")).expect("plan");
    let simulation = simulation.record(setup.record().expect("recorded")).expect("record");
    let summary = simulation.run("slowed", &mut |_| {}).expect("run");
    let fault = &summary.faults[0];
    assert_eq!((fault.kind, fault.slowed_flows), ("slow", Some(1)));
    assert_eq!(fault.slowed_most.as_deref(), Some("host 0 -> host 1"));
    let until = fault.slowed_until_us.expect("a time");
    assert!((2000.0..2040.0).contains(&until), "{until}");
    assert_eq!(fault.slowed.len(), 1);
    let one = fault.slowed[0];
    assert!(one.flow == 0 && one.slowdown > 2.0 && !one.before, "{:?}", fault.slowed);
    assert_eq!(fault.slowed_before, 0);
    // Without a recording, no slowed flows are known.
    let alone = Simulation::new(&setup.plan().expect("plan")).expect("plan");
    let alone = alone.run("slowed", &mut |_| {}).expect("run");
    assert_eq!((alone.faults[0].slowed_flows, alone.faults[0].slowed_until_us), (None, None));
}

/// An op of 4 kB waits for 25 MB of its flow, 2 ms, from before the fault. It is the slowest op by far, but was
/// already slow when another link failed.
#[test]
fn an_op_that_was_slow_before_a_fault_is_not_the_one_it_slowed_most() {
    let text = "duration = \"4ms\"\ntopology = \"star hosts=4 100Gbps 1us 1MB\"\n\
        algorithm = { name = \"constant\", window = 64.0 }\n\
        [[workload]]\nkind = \"flows\"\nsize = \"100kB\"\n[[workload.flow]]\nfrom = 2\nto = 3\n\
        [[workload]]\nkind = \"trace\"\nflows_per_pair = 1\n\
        flows = \"start_us,from,to,bytes\\n0,0,1,25000000\\n10,0,1,4000\\n\"\n\
        [[fault]]\nlink = \"host 2 -> switch 0\"\nkind = \"slow\"\nfraction = 0.25\nat = \"1ms\"\nuntil = \"1500us\"\n";
    let setup = good(text).runs.remove(0).setup.recorded(true);
    let simulation = Simulation::new(&setup.plan().expect("plan")).expect("plan");
    let simulation = simulation.record(setup.record().expect("recorded")).expect("record");
    let summary = simulation.run("waiting", &mut |_| {}).expect("run");
    let fault = &summary.faults[0];
    assert_eq!(fault.slowed_flows, Some(2));
    assert_eq!(fault.slowed_most.as_deref(), Some("host 2 -> host 3"));
    let [first, second] = fault.slowed[..] else { panic!("{:?}", fault.slowed) };
    assert!(second.slowdown > 50.0 && second.slowdown > first.slowdown, "{:?}", fault.slowed);
    assert_eq!((first.before, second.before, fault.slowed_before), (false, true, 1));
}
