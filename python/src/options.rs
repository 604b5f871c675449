//! Options of Python functions, as dictionaries whose keys `_native.pyi` declares.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;

use apus::api;
use apus_scenario::{MemoryLimit, Options, Setup};
use apus_sim::{Tell, Watch};
use apus_units::Bytes;
use pyo3::prelude::*;

use crate::{algorithm, errors};

/// Largest seed, as in the command and in scenarios: JSON represents integers exactly up to this value.
const MAX_SEED: u64 = 1 << 53;
/// Largest number of seeds per call, as in `apus sweep`.
const MAX_SEEDS: u64 = 10_000;

/// An integer from Python, or the text of a value that is not a valid one.
#[derive(Clone)]
pub struct Count(Result<u64, String>);

impl<'py> FromPyObject<'_, 'py> for Count {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match value.extract() {
            Ok(number) => Ok(Self(Ok(number))),
            Err(_) => Ok(Self(Err(value.repr()?.to_string()))),
        }
    }
}

impl Count {
    /// Returns the number of the argument `name`, which must be from `low` to `high`.
    pub fn within(self, name: &str, low: u64, high: u64) -> PyResult<u64> {
        let value = match self.0 {
            Ok(number) if (low..=high).contains(&number) => return Ok(number),
            Ok(number) => number.to_string(),
            Err(text) => text,
        };
        Err(errors::of_input(&format!("{name}={value}: must be from {low} to {high}")))
    }

    /// Returns the number of seeds of a call.
    pub fn seeds(self) -> PyResult<u64> {
        self.within("seeds", 1, MAX_SEEDS)
    }
}

/// Options for reading a scenario.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ReadOptions {
    set: Vec<String>,
    seed: Option<Count>,
    variant: Option<String>,
    quick: bool,
    max_memory: Option<String>,
}

impl ReadOptions {
    /// Returns the options of the crates below.
    pub fn options(self) -> PyResult<Options> {
        let memory = limit(self.max_memory.as_deref())?;
        let Self { set, seed, variant, quick, .. } = self;
        let seed = seed.map(|seed| seed.within("seed", 0, MAX_SEED)).transpose()?;
        Ok(Options { set, seed, variant, quick, memory, ..Options::default() })
    }
}

/// Options for executing runs.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct RunOptions {
    threads: Option<Count>,
    watchdog: String,
    max_memory: Option<String>,
}

impl RunOptions {
    /// Returns the watch that can end the runs early, and the list of its reports: name of the run, and sentence.
    pub fn watch(&self) -> PyResult<(Watch, Warnings)> {
        let silence = api::read_watchdog(&self.watchdog)
            .map_err(|why| errors::of_input(&format!("watchdog={:?}: {why}", self.watchdog)))?;
        let warnings = Warnings::default();
        let heard = Arc::clone(&warnings);
        let tell = Tell(Arc::new(move |run: &str, what: &str| {
            if let Ok(mut heard) = heard.lock() {
                heard.push(format!("{run}: {what}"));
            }
        }));
        Ok((Watch { silence, tell: Some(tell), ..Watch::default() }, warnings))
    }

    /// Returns the memory limit as the user wrote it.
    pub fn max_memory(&self) -> Option<&str> {
        self.max_memory.as_deref()
    }

    /// Returns the threads and the memory that runs may take.
    pub fn cores(&self) -> PyResult<Cores> {
        let all = available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let wanted = self.threads.clone().map(|n| n.within("threads", 1, u32::MAX.into()));
        let wanted = wanted.transpose()?.and_then(|n| NonZeroUsize::new(n as usize));
        let threads = wanted.map_or(all, |n| n.min(all));
        // Without `threads` each run has one thread, as with the command.
        let divided = wanted.is_some();
        Ok(Cores { threads, divided, memory: limit(self.max_memory.as_deref())? })
    }
}

/// Threads and memory that runs may take.
pub struct Cores {
    threads: NonZeroUsize,
    /// `true` if each run gets several threads when there are fewer runs than threads.
    divided: bool,
    memory: Option<MemoryLimit>,
}

impl Cores {
    /// Returns how many of these runs to execute in parallel, and the number of threads of each.
    pub fn share(&self, setups: &[Setup]) -> (NonZeroUsize, u32) {
        let runs = NonZeroUsize::new(setups.len()).unwrap_or(NonZeroUsize::MIN);
        let mut at_once = self.threads.min(runs);
        if let Some(limit) = &self.memory {
            at_once = limit.runs_at_once(setups.iter().map(Setup::estimated_memory), at_once);
        }
        // Runs that call Python would only wait for each other, and so would the threads of a single one.
        let calls_python = setups.iter().any(algorithm::calls_python);
        if !self.divided && calls_python {
            at_once = NonZeroUsize::MIN;
        }
        let divided = self.divided && !calls_python;
        let each = if divided { self.threads.get() / at_once.get() } else { 1 };
        (at_once, each as u32)
    }
}

/// Reports of flows without progress.
pub type Warnings = Arc<Mutex<Vec<String>>>;

/// Returns the limit that the user sets, or that of the machine.
pub fn limit(max_memory: Option<&str>) -> PyResult<Option<MemoryLimit>> {
    let Some(text) = max_memory else { return Ok(api::memory_of_machine()) };
    match text.parse::<Bytes>() {
        Ok(bytes) if bytes > Bytes::ZERO => {
            Ok(Some(MemoryLimit { bytes, reason: format!("max_memory is {bytes}") }))
        }
        Ok(_) => Err(errors::of_input(&format!("max_memory={text:?}: must be above 0"))),
        Err(error) => Err(errors::of_input(&format!("max_memory={text:?}: {error}"))),
    }
}
