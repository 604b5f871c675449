//! The reader of logs: it reads any input, or refuses it with the place of the error.

use std::io::{BufRead, BufReader, Read};

use apus_algorithms::build;
use apus_cc::{AlgorithmFactory, FlowInfo};
use apus_scenario::replay::{ReplayError, replay};
use proptest::prelude::*;

const HEADER: &str = "time_ps,event,rtt_ps,fabric_delay_ps,endpoint_delay_ps,hops,acked,\
                      set_fabric_cwnd,set_last_decrease_ps,set_smoothed_rtt_ps,set_timeouts";

/// Replays `input` and returns the number of rows or the message.
fn run(algorithm: &str, profile: Option<&str>, input: impl BufRead) -> Result<u64, String> {
    let sender = build(algorithm, profile, &[]).expect("algorithm").sender(&FlowInfo::default());
    let mut rows = 0;
    let result = replay("log.csv", input, sender, |row| {
        rows += 1;
        assert!(row.cwnd > 0.0 && row.cwnd.is_finite(), "{row}");
        assert_eq!(row.to_string().split(',').count(), 8);
        Ok::<(), ()>(())
    });
    match result {
        Ok(()) => Ok(rows),
        Err(ReplayError::Trace(error)) => Err(error.to_string()),
        Err(ReplayError::Output(())) => unreachable!("nothing refuses the rows"),
    }
}

fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        any::<u8>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|x| x.to_string()),
        "[a-z,\"-]{0,6}",
        Just("ack".to_owned()),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Err(message) = run("swift", None, bytes.as_slice()) {
            prop_assert!(message.starts_with("log.csv:"), "{}", message);
        }
    }

    #[test]
    fn any_cells_are_read_or_refused(
        event in prop_oneof![Just("ack"), Just("loss"), Just("timeout"), Just("x")],
        cells in proptest::collection::vec(cell(), 10),
        falcon in any::<bool>(),
    ) {
        let profile = if falcon { "falcon" } else { "paper" };
        let log = format!("{HEADER}\n{},{event},{}\n", cells[0], cells[1..].join(","));
        if let Err(message) = run("swift", Some(profile), log.as_bytes()) {
            prop_assert!(message.starts_with("log.csv:2: "), "{}", message);
        }
    }

    /// Whole numbers in every cell are a log that can be replayed, for any values.
    #[test]
    fn every_legal_log_is_replayed(
        events in proptest::collection::vec(
            (any::<u64>(), 0..3usize, any::<[u64; 3]>(), any::<u8>(), any::<u32>(), any::<u32>()),
            1..50,
        ),
        algorithm in prop_oneof![Just("swift"), Just("dctcp"), Just("constant")],
    ) {
        let mut log = HEADER.split(",set").next().expect("columns").to_owned();
        for (time, event, [rtt, fabric, endpoint], hops, acked, _) in &events {
            let event = ["ack", "loss", "timeout"][*event];
            log += &format!("\n{time},{event},{rtt},{fabric},{endpoint},{hops},{acked}");
        }
        prop_assert_eq!(run(algorithm, None, log.as_bytes()), Ok(events.len() as u64));
    }
}

/// Yields `lines` lines without storing them.
struct Endless {
    lines: u64,
    rest: Vec<u8>,
    most: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.rest.is_empty() && self.lines > 0 {
            self.lines -= 1;
            self.rest = format!("{},ack,30000000,20000000,10000000,2,1\n", self.lines).into_bytes();
        }
        let length = buffer.len().min(self.rest.len());
        self.most = self.most.max(buffer.len());
        buffer[..length].copy_from_slice(&self.rest[..length]);
        self.rest.drain(..length);
        Ok(length)
    }
}

#[test]
fn a_log_of_a_million_lines_streams() {
    let header = HEADER.split(",set").next().expect("columns").to_owned() + "\n";
    let lines = Endless { lines: 1_000_000, rest: header.into_bytes(), most: 0 };
    // Only the reader's own buffer and one line are in memory.
    let mut input = BufReader::with_capacity(4096, lines);
    assert_eq!(run("swift", None, &mut input), Ok(1_000_000));
    assert!(input.get_ref().most <= 4096);
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let header = HEADER.split(",set").next().expect("columns").to_owned() + "\n";
    let input = BufReader::new(header.as_bytes().chain(std::io::repeat(b'1')));
    let message = run("swift", None, input).expect_err("no end");
    assert!(message.starts_with("log.csv:2: the line is longer than 65536 bytes"), "{message}");
}
