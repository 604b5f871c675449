//! Compares Apus with quinn over the loopback interface, alternately in one run: round trips of 64 B, and bulk writes
//! at the same MTU. Both encrypt: quinn with AES-256-GCM, Apus with each of its ciphers.
//!
//! `cargo run --release --manifest-path bench/quinn/Cargo.toml [SECONDS [ROUNDS]]`
//!
//! Round trips are between two processes. For bulk writes both ends are in this process, so CPU seconds include sender
//! and receiver. quinn runs as in its own bulk benchmark: a tokio runtime of one thread per end, default settings,
//! segmentation offload enabled. Apus runs in its default mode, shared (the application's threads and a thread per
//! host), and in inline mode (one thread per end).

mod apus;
mod quic;
mod round_trips;

use std::error::Error;
use std::time::{Duration, Instant};

use apus_udp::session::Cipher;
use rustix::time::{ClockId, clock_gettime};

/// Bytes of one write.
const WRITE: usize = 1 << 20;

/// Results of writing in one turn.
struct Turn {
    bytes: u64,
    seconds: f64,
    cpu_seconds: f64,
}

impl Turn {
    /// Calls `write`, which writes until the time is over and returns the number of arrived bytes.
    fn measure(
        write: impl FnOnce(Instant) -> Result<u64, Box<dyn Error>>,
        duration: Duration,
    ) -> Result<Self, Box<dyn Error>> {
        let (from, cpu) = (Instant::now(), cpu_seconds());
        let bytes = write(from + duration)?;
        Ok(Self { bytes, seconds: from.elapsed().as_secs_f64(), cpu_seconds: cpu_seconds() - cpu })
    }

    fn gbps(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.seconds
    }

    fn cpu_per_gb(&self) -> f64 {
        self.cpu_seconds / (self.bytes as f64 * 1e-9)
    }
}

/// Returns the CPU time of this process, all threads, in seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|first| first == "serve").is_some() {
        return round_trips::serve(&arguments.next().unwrap_or_default());
    }
    let seconds: f64 = arguments.next().map_or(Ok(2.0), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let duration = Duration::from_secs_f64(seconds);
    round_trips::table(duration, rounds.max(1))?;
    println!("\n| MTU | what | goodput, Gb/s | CPU s per GB | goodput / quinn's | CPU / quinn's |");
    println!("|---|---|---|---|---|---|");
    for mtu in [1500, 9000] {
        let quic = quic::Pair::connect(mtu)?;
        let shared = Cipher::ALL.map(|cipher| apus::Pair::connect(mtu, cipher, false));
        let mut of_quinn = Vec::new();
        let mut of_apus = Cipher::ALL.map(|_| [Vec::new(), Vec::new()]);
        for _ in 0..rounds.max(1) {
            of_quinn.push(Turn::measure(|end| quic.write(end), duration)?);
            for ((cipher, shared), turns) in Cipher::ALL.iter().zip(&shared).zip(&mut of_apus) {
                let shared = shared.as_ref().map_err(ToString::to_string)?;
                turns[0].push(Turn::measure(|end| shared.write(end), duration)?);
                // The ends of inline mode spin, so they exist only during their own turn.
                let inline = apus::Pair::connect(mtu, *cipher, true)?;
                turns[1].push(Turn::measure(|end| inline.write(end), duration)?);
            }
        }
        let gbps = |turns: &[Turn]| median(turns.iter().map(Turn::gbps).collect());
        let cpu = |turns: &[Turn]| median(turns.iter().map(Turn::cpu_per_gb).collect());
        let (base_gbps, base_cpu) = (gbps(&of_quinn), cpu(&of_quinn));
        let mut rows = vec![("quinn".to_owned(), &of_quinn)];
        for (cipher, turns) in Cipher::ALL.iter().zip(&of_apus) {
            rows.push((format!("Apus, shared, {cipher}"), &turns[0]));
            rows.push((format!("Apus, inline, {cipher}"), &turns[1]));
        }
        for (name, turns) in rows {
            let (gbps, cpu) = (gbps(turns), cpu(turns));
            let (more, less) = (gbps / base_gbps, cpu / base_cpu);
            println!("| {mtu} | {name} | {gbps:.2} | {cpu:.3} | {more:.1} | {less:.3} |");
        }
    }
    Ok(())
}
