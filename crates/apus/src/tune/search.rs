//! Search for the smallest value of a parameter that keeps the throughput.

use apus_units::Span;

/// Steps of the first grid, as multiples of the unloaded RTT. They are half an octave apart, and range from targets
/// that cannot work to targets with deep queues everywhere.
const GRID: [f64; 9] = [0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0, 5.66, 8.0];
/// Factor by which the grid is extended while goodput increases, or while all values keep it.
pub const GROWTH: f64 = 2.0;
/// Maximum number of extensions at either end.
const MAX_GROWTH: usize = 3;
/// Ratio of the smallest value that keeps the goodput to the largest one below it that does not, at which the search
/// ends.
const CLOSE: f64 = 1.06;
/// Smaller values count as zero.
const SMALL: Span = Span::from_us(1);
/// Largest value that an algorithm accepts for a parameter of the kind time, where a search ends.
pub const MOST: Span = Span::from_secs(1);
/// Unit to which values are rounded.
const ROUND_PS: u64 = 100_000;

/// A tried value, and its result.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The value.
    pub value: Span,
    /// Goodput with this value.
    pub goodput: f64,
    /// `true` if the value keeps the goodput.
    pub keeps: bool,
}

/// Next step of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try these values, none of which has been tried.
    Try(Vec<Span>),
    /// The smallest value that keeps the goodput. All larger tried values keep it too, up to the best one of those that
    /// keep it.
    Found(Span),
    /// No value keeps the goodput.
    Nothing,
}

/// Returns the first values around the unloaded RTT, none above the largest value of a parameter.
pub fn grid(unloaded: Span) -> Vec<Span> {
    let of = |factor: &f64| round(unloaded.mul_f64(*factor)).min(MOST);
    let mut values: Vec<Span> = GRID.iter().map(of).collect();
    values.dedup();
    values
}

/// Returns the next step after `tried`, which is not empty and in ascending order; `grown` counts the extensions of the
/// grid.
pub fn next(tried: &[Tried], grown: &mut usize) -> Next {
    let last = tried.len() - 1;
    let alone = !tried[last].keeps || last > 0 && !tried[last - 1].keeps;
    let larger = round(tried[last].value.mul_f64(GROWTH)).min(MOST);
    let grows = alone && larger > tried[last].value && best(tried, |_| true) == Some(last);
    if *grown < MAX_GROWTH && grows {
        *grown += 1;
        return Next::Try(vec![larger]);
    }
    // Above the range of good values goodput can decrease again, where buffers overflow. Isolated values that keep the
    // goodput by chance must not be the result.
    let Some(best) = best(tried, |one| one.keeps) else { return Next::Nothing };
    let below = tried[..best].iter().rposition(|one| !one.keeps);
    let Some(below) = below else {
        let first = tried[0].value;
        let lower = round(Span::from_ps((first.as_ps() as f64 / GROWTH) as u64));
        if *grown < MAX_GROWTH && lower < first && !lower.is_zero() {
            *grown += 1;
            return Next::Try(vec![lower]);
        }
        return Next::Found(first);
    };
    let (low, high) = (tried[below].value, tried[below + 1].value);
    let middle = round(between(low, high));
    let close = high.as_ps() as f64 <= low.as_ps() as f64 * CLOSE || high <= SMALL;
    if close || middle <= low || middle >= high {
        return Next::Found(high);
    }
    Next::Try(vec![middle])
}

/// Returns the index of the smallest of the values with the highest goodput among the values that `counts` accepts.
fn best(tried: &[Tried], counts: impl Fn(&Tried) -> bool) -> Option<usize> {
    let all = tried.iter().enumerate().filter(|(_, one)| counts(one));
    all.rev().max_by(|a, b| a.1.goodput.total_cmp(&b.1.goodput)).map(|(place, _)| place)
}

/// Returns the geometric mean, or half of `high` if `low` is zero.
fn between(low: Span, high: Span) -> Span {
    if low.is_zero() {
        return high.mul_f64(0.5);
    }
    low.mul_f64((high.as_ps() as f64 / low.as_ps() as f64).sqrt())
}

/// Rounds a span to a tenth of a microsecond.
pub fn round(span: Span) -> Span {
    Span::from_ps((span.as_ps() + ROUND_PS / 2) / ROUND_PS * ROUND_PS)
}

#[cfg(test)]
mod tests {
    use super::{MOST, Next, Span, Tried, grid, next};

    /// Runs a search in which `goodput` returns the goodput of a value; 98 % of the best goodput, or of `rival`, must
    /// be kept.
    fn search(unloaded: Span, rival: f64, goodput: impl Fn(Span) -> f64) -> (Next, usize) {
        let mut values = grid(unloaded);
        let mut grown = 0;
        loop {
            values.sort();
            let best = values.iter().map(|value| goodput(*value)).fold(rival, f64::max);
            let tried = |value: &Span| {
                let goodput = goodput(*value);
                Tried { value: *value, goodput, keeps: goodput >= 0.98 * best }
            };
            let tried: Vec<Tried> = values.iter().map(tried).collect();
            match next(&tried, &mut grown) {
                Next::Try(more) => {
                    assert!(more.iter().all(|value| !values.contains(value)));
                    values.extend(more);
                }
                end => return (end, tried.len()),
            }
        }
    }

    /// Returns a goodput that increases with the value up to `threshold`, where it is 1.
    fn rising(threshold: Span) -> impl Fn(Span) -> f64 {
        move |value| (value.as_us_f64() / threshold.as_us_f64()).min(1.0)
    }

    #[test]
    fn a_threshold_is_found_within_six_percent() {
        for us in [5u64, 8, 13, 20, 21, 27, 55, 79, 300] {
            let (end, tries) = search(Span::from_us(20), 0.0, rising(Span::from_us(us)));
            let Next::Found(found) = end else { panic!("{us} us: {end:?}") };
            let ratio = found.as_us_f64() / (0.98 * us as f64);
            assert!((1.0..=1.07).contains(&ratio), "{us} us: {found}");
            assert!(tries <= 18, "{us} us took {tries} tries");
        }
    }

    #[test]
    fn a_threshold_beyond_reach_is_said() {
        let beyond = search(Span::from_us(20), 1.0, rising(Span::from_ms(20)));
        // Nine values of the grid and three extensions.
        assert_eq!(beyond, (Next::Nothing, 12));
    }

    /// With an RTT of 400 ms, the grid would reach 3.2 s.
    #[test]
    fn no_value_is_above_the_largest_that_a_parameter_takes() {
        let unloaded = Span::from_ms(400);
        assert_eq!(grid(unloaded).last(), Some(&MOST));
        let beyond = search(unloaded, 1.0, rising(Span::from_secs(2)));
        // 200, 284, 400, 564, 800 and 1000 ms.
        assert_eq!(beyond, (Next::Nothing, 6));
        // With an RTT of 100 ms, the grid ends at 800 ms and grows once, to 1 s.
        let beyond = search(Span::from_ms(100), 1.0, rising(Span::from_secs(2)));
        assert_eq!(beyond, (Next::Nothing, 10));
    }

    #[test]
    fn where_nothing_fails_the_search_ends_below_the_grid() {
        let (end, tries) = search(Span::from_us(20), 0.0, |_| 1.0);
        assert_eq!((end, tries), (Next::Found(Span::from_ns(1300)), 12));
    }

    #[test]
    fn zero_is_a_value_like_others() {
        let tried = |kept| {
            [0, 10, 20].map(|us| Tried {
                value: Span::from_us(us),
                goodput: if us >= kept { 1.0 } else { 0.5 },
                keeps: us >= kept,
            })
        };
        assert_eq!(next(&tried(0), &mut 0), Next::Found(Span::ZERO));
        assert_eq!(next(&tried(10), &mut 0), Next::Try(vec![Span::from_us(5)]));
    }

    /// The buffer overflows from three times the threshold upwards, and goodput falls to 0.6.
    #[test]
    fn a_threshold_is_found_where_goodput_falls_again_above() {
        let goodput = |value: Span| {
            let falls = value > Span::from_us(60);
            if falls { 0.6 } else { rising(Span::from_us(20))(value) }
        };
        let (end, tries) = search(Span::from_us(20), 0.0, goodput);
        let Next::Found(found) = end else { panic!("{end:?}") };
        assert!((19.6..=20.8).contains(&found.as_us_f64()), "{found}");
        assert!(tries <= 14, "{tries}");
        // No value keeps the goodput of the other curve, and larger values have less.
        assert_eq!(search(Span::from_us(20), 2.0, goodput), (Next::Nothing, 9));
    }

    #[test]
    fn of_two_ranges_that_keep_the_goodput_that_with_the_best_is_the_answer() {
        let tried = |goodputs: [f64; 4]| -> Vec<Tried> {
            let of = |(us, goodput): (u64, f64)| Tried {
                value: Span::from_us(us),
                goodput,
                keeps: goodput >= 0.98,
            };
            [10, 20, 30, 31].into_iter().zip(goodputs).map(of).collect()
        };
        let above = tried([0.5, 0.99, 0.9, 1.0]);
        // The search first tests whether goodput increases further.
        assert_eq!(next(&above, &mut 0), Next::Try(vec![Span::from_us(62)]));
        assert_eq!(next(&above, &mut 3), Next::Found(Span::from_us(31)));
        let below = tried([0.5, 1.0, 0.9, 0.99]);
        assert_eq!(next(&below, &mut 0), Next::Try(vec![Span::from_ps(14_100_000)]));
    }
}
