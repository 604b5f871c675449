//! A ring all-reduce as a GOAL schedule, with its times on ideal NICs and in LogGOPSim's model.

use apus_jobs::collectives::{Algorithm, Collective, closed};
use apus_jobs::ideal::{Cost, Limits, run};
use apus_jobs::loggops::{self, Parameters};
use apus_jobs::{Done, goal};
use apus_units::{Bytes, Rate, Span, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let all_reduce = Collective::new(Algorithm::RingAllReduce, 8, 8 << 20);
    let graph = all_reduce.graph()?;
    let nic: Rate = "100Gbps".parse()?;
    let cost = |bytes| Cost {
        occupies: nic.serialization_time(Bytes::new(bytes)),
        latency: Span::from_us(2),
        acknowledgement: Span::from_us(2),
    };
    let outcome = run(&graph, Done::Delivered, Limits::Serial, |message| cost(message.bytes));
    // 2 (N - 1) steps of 1 MiB: each 83.88608 us and a latency.
    assert_eq!(outcome.completion, Span::from_ps(14 * (83_886_080 + 2_000_000)));
    let form = closed::time(&all_reduce, cost).expect("a closed form");
    assert_eq!(form.span(), outcome.completion);
    let model = loggops::run(&graph, &Parameters::default())?;
    let time = Span::from_ns(14 * (2 * 1500 + 2500 + ((1 << 20) - 1) * 6));
    assert_eq!(model.completion(), Time::ZERO + time);
    let file = goal::write_binary(&graph)?;
    assert_eq!(goal::read(&file)?, graph);
    Ok(())
}
