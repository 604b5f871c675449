//! Choice between several threads and one thread for the parts of a run, by measured speed. The results are the same.
//!
//! Parts on their own threads wait for each other after every window. If other programs need the cores, a
//! thread may lose its core for milliseconds, and all other threads wait for it. One thread that runs the
//! parts in turn does not wait.

use std::time::Duration;

/// Assignment of the parts of a run to threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Each part on its own thread.
    Together,
    /// All parts in turn, on one thread.
    Alone,
}

impl Mode {
    fn other(self) -> Self {
        match self {
            Self::Together => Self::Alone,
            Self::Alone => Self::Together,
        }
    }
}

/// Work that was done in one mode.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    pub(crate) elapsed: Duration,
    /// Number of events.
    pub(crate) events: u64,
    /// Time that threads waited for each other, summed over the threads.
    pub(crate) waited: Duration,
}

/// Duration of a trial of a mode. deviation: no source; several time slices of a scheduler (3 ms on Linux).
const TRIAL: Duration = Duration::from_millis(20);
/// Maximum time between two trials: trials then take 2 % of a run.
const LONGEST: Duration = Duration::from_secs(1);
/// Share of the threads' time below which waiting is ignored. deviation: no source; two threads that wait for
/// a quarter of their time are still 1.5 times as fast as one.
const HARMLESS: f64 = 0.25;

/// The current mode and its known speed.
#[derive(Clone, Debug)]
pub(crate) struct Tempo {
    threads: f64,
    mode: Mode,
    /// If the current mode is on trial: speed of the other mode, in events per second.
    trial: Option<f64>,
    /// Time in this mode before the other mode is tried.
    patience: Duration,
    work: Work,
    /// Whether the mode changes after each piece of work, for tests.
    alternates: bool,
}

impl Tempo {
    /// Returns the choice for this number of threads. It begins with all threads.
    pub(crate) fn new(threads: u32) -> Self {
        Self {
            threads: f64::from(threads),
            mode: Mode::Together,
            trial: None,
            patience: TRIAL,
            work: Work::default(),
            alternates: false,
        }
    }

    /// Changes the mode after each window from now on.
    pub(crate) fn alternate(&mut self) {
        self.alternates = true;
    }

    /// Returns the mode of the next work, and the time after which [`Tempo::note`] may change it.
    pub(crate) fn next(&self) -> (Mode, Duration) {
        if self.alternates {
            return (self.mode, Duration::ZERO);
        }
        (self.mode, self.period().saturating_sub(self.work.elapsed))
    }

    fn period(&self) -> Duration {
        if self.trial.is_some() { TRIAL } else { self.patience }
    }

    /// Records work that was done in the current mode.
    pub(crate) fn note(&mut self, work: Work) {
        if self.alternates {
            self.mode = self.mode.other();
            return;
        }
        self.work.elapsed += work.elapsed;
        self.work.events += work.events;
        self.work.waited += work.waited;
        if self.work.elapsed < self.period() {
            return;
        }
        let Work { elapsed, events, waited } = core::mem::take(&mut self.work);
        let speed = events as f64 / elapsed.as_secs_f64();
        let harmless = waited.as_secs_f64() < HARMLESS * self.threads * elapsed.as_secs_f64();
        match self.trial.take() {
            Some(other) if speed > other => self.patience = TRIAL,
            Some(_) => {
                self.mode = self.mode.other();
                self.patience = (2 * self.patience).min(LONGEST);
            }
            None if self.mode == Mode::Together && harmless => {}
            None => {
                self.trial = Some(speed);
                self.mode = self.mode.other();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates two threads for ten seconds, in pieces of 5 ms, with these speeds in events per millisecond
    /// and this share of waiting. Returns the milliseconds on one thread.
    fn alone(together: u64, alone: u64, waiting: f64) -> u64 {
        let mut tempo = Tempo::new(2);
        let mut time = 0;
        for _ in 0..2000 {
            let (mode, left) = tempo.next();
            assert!(left > Duration::ZERO && left <= LONGEST, "{tempo:?}");
            let elapsed = Duration::from_millis(5);
            let (speed, waited) = match mode {
                Mode::Together => (together, elapsed.mul_f64(2.0 * waiting)),
                Mode::Alone => (alone, Duration::ZERO),
            };
            time += if mode == Mode::Alone { 5 } else { 0 };
            tempo.note(Work { elapsed, events: 5 * speed, waited });
        }
        time
    }

    #[test]
    fn threads_that_hardly_wait_stay_together() {
        assert_eq!(alone(1700, 1000, 0.2), 0);
    }

    /// Of ten seconds, the slower mode gets only the trials.
    #[test]
    fn the_faster_mode_gets_most_of_the_time() {
        let hindered = alone(300, 1000, 0.6);
        assert!(hindered > 9_600, "{hindered} ms");
        let uneven = alone(1200, 1000, 0.4);
        assert!(uneven > 0 && uneven < 400, "{uneven} ms");
    }

    /// The modes change when the behaviour of the machine changes.
    #[test]
    fn a_change_of_the_machine_is_noticed() {
        let mut tempo = Tempo::new(2);
        let mut modes = Vec::new();
        for step in 0..4000 {
            let busy = (1000..2000).contains(&step);
            let elapsed = Duration::from_millis(5);
            let (mode, _) = tempo.next();
            let (events, waited) = match mode {
                Mode::Together if busy => (1, elapsed),
                Mode::Together => (9, elapsed / 10),
                Mode::Alone => (5, Duration::ZERO),
            };
            tempo.note(Work { elapsed, events, waited });
            modes.push(mode);
        }
        assert_eq!(
            [modes[900], modes[1900], modes[3900]],
            [Mode::Together, Mode::Alone, Mode::Together]
        );
    }
}
