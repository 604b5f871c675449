//! Course of a run so far, in a bounded number of points.

use apus_sim::monitor::State;
use apus_units::Span;

/// Maximum number of points. Rationale: twice the columns of a wide terminal.
const POINTS: usize = 512;

/// Mean over a part of the simulated time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Simulated time at the end of the part.
    pub until: Span,
    /// Payload delivered within the part, in bytes.
    pub bytes: u64,
    /// Bytes in all ports at the end of the part.
    pub queued: u64,
}

/// States of a run over time. If there are too many, pairs of neighbours are merged.
#[derive(Debug, Default)]
pub struct History {
    points: Vec<Point>,
    /// Number of states per point, and in the last point.
    per_point: u32,
    in_last: u32,
    last: State,
}

impl History {
    /// Adds a state. A state that is not later than the last one is ignored.
    pub fn add(&mut self, state: State) {
        if state.simulated <= self.last.simulated {
            return;
        }
        let bytes = state.delivered_bytes.saturating_sub(self.last.delivered_bytes);
        let point = Point { until: state.simulated, bytes, queued: state.queued_bytes };
        match self.points.last_mut() {
            Some(last) if self.in_last < self.per_point => {
                *last = Point { bytes: last.bytes + bytes, ..point };
                self.in_last += 1;
            }
            _ => {
                self.points.push(point);
                self.in_last = 1;
            }
        }
        if self.points.len() == POINTS {
            let pair = |pair: &[Point]| match *pair {
                [first, second] => Point { bytes: first.bytes + second.bytes, ..second },
                _ => pair[0],
            };
            self.points = self.points.chunks(2).map(pair).collect();
            self.per_point = self.per_point.max(1) * 2;
            self.in_last = self.per_point;
        }
        self.last = state;
    }

    /// Returns the last state.
    pub fn last(&self) -> &State {
        &self.last
    }

    /// Returns the goodput of all flows over the time: simulated milliseconds and Gb/s.
    pub fn goodput(&self) -> Vec<(f64, f64)> {
        let mut from = Span::ZERO;
        let rate = |point: &Point| {
            let seconds = (point.until - from).as_secs_f64();
            from = point.until;
            (point.until.as_secs_f64() * 1e3, point.bytes as f64 * 8.0 / seconds / 1e9)
        };
        self.points.iter().map(rate).collect()
    }

    /// Returns the bytes in all ports over the time: simulated milliseconds and kilobytes.
    pub fn queued(&self) -> Vec<(f64, f64)> {
        let kilobytes =
            |point: &Point| (point.until.as_secs_f64() * 1e3, point.queued as f64 / 1e3);
        self.points.iter().map(kilobytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(us: u64, delivered_bytes: u64) -> State {
        let queued_bytes = us;
        State { simulated: Span::from_us(us), delivered_bytes, queued_bytes, ..State::default() }
    }

    /// 12,500 bytes per microsecond are 100 Gb/s, regardless of the number of states per point.
    #[test]
    fn the_goodput_is_that_of_the_states_after_points_were_joined() {
        let mut history = History::default();
        for us in 1..=3000 {
            history.add(state(us, us * 12_500));
        }
        let goodput = history.goodput();
        assert!((POINTS / 2 - 1..POINTS).contains(&goodput.len()), "{}", goodput.len());
        assert!(goodput.iter().all(|&(_, gbps)| (gbps - 100.0).abs() < 1e-6), "{goodput:?}");
        assert!(goodput.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(history.queued().last(), Some(&(3.0, 3.0)));
        let total: u64 = history.points.iter().map(|point| point.bytes).sum();
        assert_eq!(total, 3000 * 12_500, "no state is lost");
    }

    #[test]
    fn a_state_of_the_same_time_is_ignored() {
        let mut history = History::default();
        history.add(state(5, 100));
        history.add(state(5, 200));
        assert_eq!((history.points.len(), history.last().delivered_bytes), (1, 100));
    }
}
