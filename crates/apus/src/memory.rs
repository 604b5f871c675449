//! Memory limit of runs: the limit of the machine, or `--max-memory`.

use std::num::NonZeroUsize;
use std::sync::Once;

use apus_scenario::{MemoryLimit, Setup};
use apus_units::Bytes;
use clap::Args;

/// Option of commands with simulated runs.
#[derive(Args, Clone, Copy, Default)]
pub struct MaxMemory {
    /// Refuse runs with a memory estimate above SIZE, such as 32GiB, and limit the sum of the estimates of parallel runs to
    /// SIZE. The results do not depend on it [default: the available memory of the machine].
    #[arg(long, value_name = "SIZE", value_parser = read_size)]
    max_memory: Option<Bytes>,
}

/// Ensures that only one message reports fewer parallel runs because of memory.
static REPORT: Once = Once::new();

impl MaxMemory {
    /// Returns the limit of the user, otherwise that of the machine; `None` if neither is known.
    pub fn limit(self) -> Option<MemoryLimit> {
        if let Some(bytes) = self.max_memory {
            return Some(MemoryLimit { bytes, reason: format!("--max-memory is {bytes}") });
        }
        of_machine()
    }

    /// Returns how many of these runs to execute at once, at most `max`, so that the sum of their memory estimates
    /// stays within the limit. If the limit reduces the number, a message on the terminal says so.
    pub fn runs_at_once<'a>(
        self,
        setups: impl ExactSizeIterator<Item = &'a Setup>,
        max: NonZeroUsize,
    ) -> NonZeroUsize {
        let Some(limit) = self.limit() else { return max };
        let wanted = setups.len().min(max.get());
        let runs = limit.runs_at_once(setups.map(Setup::estimated_memory), max);
        if runs.get() < wanted {
            let reason = limit.reason;
            // A search has many batches of runs, so the message is printed once.
            REPORT.call_once(|| eprintln!("{runs} instead of {wanted} runs at a time: {reason}"));
        }
        runs
    }
}

/// Returns the limit that the available memory of this machine sets.
pub fn of_machine() -> Option<MemoryLimit> {
    // Without this file the available memory is unknown.
    let bytes = available(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    let gigabytes = bytes.get() as f64 / 1e9;
    Some(MemoryLimit { bytes, reason: format!("this machine has {gigabytes:.1}GB available") })
}

fn read_size(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        Ok(size) if size > Bytes::ZERO => Ok(size),
        Ok(_) => Err("must be above 0".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads `MemAvailable` from the text of /proc/meminfo.
fn available(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes::new(kibibytes.saturating_mul(1024)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_meminfo() {
        let text = "MemTotal:       24683912 kB\nMemFree:  1 kB\nMemAvailable:   23000000 kB\n";
        assert_eq!(available(text), Some(Bytes::new(23_000_000 * 1024)));
        for unknown in ["", "MemTotal: 5 kB\n", "MemAvailable: many kB\n"] {
            assert_eq!(available(unknown), None, "{unknown}");
        }
    }
}
