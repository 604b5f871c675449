//! Search for the smallest value of a parameter that keeps the throughput.

use apus_units::Span;

/// Steps of the first grid, as multiples of the unloaded RTT: half an octave apart, from where no
/// target can work to where every queue is deep.
const GRID: [f64; 9] = [0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0, 5.66, 8.0];
/// The grid grows by this factor while its best end still matters.
const GROWTH: f64 = 2.0;
/// How often it may grow at either end.
const MAX_GROWTH: usize = 3;
/// Ratio of the smallest value that keeps the goodput to the largest one that does not, at which
/// the search ends.
const CLOSE: f64 = 1.06;
/// Smaller values count as zero.
const SMALL: Span = Span::from_us(1);
/// Unit to which values are rounded.
const ROUND_PS: u64 = 100_000;

/// A value that was tried, and its result.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The value.
    pub value: Span,
    /// Whether it keeps the goodput.
    pub keeps: bool,
}

/// Next step of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try these values, none of which has been tried.
    Try(Vec<Span>),
    /// The smallest value that keeps the goodput, and so do all larger ones that were tried.
    Found(Span),
    /// Even the largest value does not.
    Nothing,
}

/// Returns the first values around the unloaded RTT.
pub fn grid(unloaded: Span) -> Vec<Span> {
    let mut values: Vec<Span> =
        GRID.iter().map(|factor| round(unloaded.mul_f64(*factor))).collect();
    values.dedup();
    values
}

/// Returns the next step after `tried`, which is in ascending order and not empty; `grown` counts
/// the extensions of the grid.
pub fn next(tried: &[Tried], grown: &mut usize) -> Next {
    let Some(last_failure) = tried.iter().rposition(|t| !t.keeps) else {
        let first = tried[0].value;
        let lower = round(Span::from_ps((first.as_ps() as f64 / GROWTH) as u64));
        if *grown < MAX_GROWTH && lower < first && !lower.is_zero() {
            *grown += 1;
            return Next::Try(vec![lower]);
        }
        return Next::Found(first);
    };
    let Some(first_kept) = tried.get(last_failure + 1) else {
        if *grown < MAX_GROWTH {
            *grown += 1;
            return Next::Try(vec![round(tried[last_failure].value.mul_f64(GROWTH))]);
        }
        return Next::Nothing;
    };
    let (low, high) = (tried[last_failure].value, first_kept.value);
    let middle = round(between(low, high));
    let close = high.as_ps() as f64 <= low.as_ps() as f64 * CLOSE || high <= SMALL;
    if close || middle <= low || middle >= high {
        return Next::Found(high);
    }
    Next::Try(vec![middle])
}

/// Returns the geometric mean, or half of `high` if `low` is zero.
fn between(low: Span, high: Span) -> Span {
    if low.is_zero() {
        return high.mul_f64(0.5);
    }
    low.mul_f64((high.as_ps() as f64 / low.as_ps() as f64).sqrt())
}

/// Rounds to tenths of a microsecond.
pub fn round(span: Span) -> Span {
    Span::from_ps((span.as_ps() + ROUND_PS / 2) / ROUND_PS * ROUND_PS)
}

#[cfg(test)]
mod tests {
    use super::{Next, Span, Tried, grid, next};

    /// Searches for a threshold: a value keeps if it is at least that.
    fn search(unloaded: Span, threshold: Span) -> (Next, usize) {
        let keeps = |value: Span| Tried { value, keeps: value >= threshold };
        let mut tried: Vec<Tried> = grid(unloaded).into_iter().map(keeps).collect();
        let mut grown = 0;
        loop {
            match next(&tried, &mut grown) {
                Next::Try(values) => {
                    assert!(values.iter().all(|v| tried.iter().all(|t| t.value != *v)));
                    tried.extend(values.into_iter().map(keeps));
                    tried.sort_by_key(|t| t.value);
                }
                end => return (end, tried.len()),
            }
        }
    }

    #[test]
    fn a_threshold_is_found_within_six_percent() {
        for us in [5u64, 8, 13, 20, 21, 27, 55, 79, 300] {
            let (end, tries) = search(Span::from_us(20), Span::from_us(us));
            let Next::Found(found) = end else { panic!("{us} us: {end:?}") };
            let ratio = found.as_us_f64() / us as f64;
            assert!((1.0..=1.07).contains(&ratio), "{us} us: {found}");
            assert!(tries <= 18, "{us} us took {tries} tries");
        }
    }

    #[test]
    fn a_threshold_beyond_reach_is_said() {
        assert_eq!(search(Span::from_us(20), Span::from_ms(20)).0, Next::Nothing);
    }

    #[test]
    fn where_nothing_fails_the_search_ends_below_the_grid() {
        let (end, tries) = search(Span::from_us(20), Span::ZERO);
        assert_eq!((end, tries), (Next::Found(Span::from_ns(1300)), 12));
    }

    #[test]
    fn zero_is_a_value_like_others() {
        let tried =
            |kept| [0, 10, 20].map(|us| Tried { value: Span::from_us(us), keeps: us >= kept });
        assert_eq!(next(&tried(0), &mut 0), Next::Found(Span::ZERO));
        assert_eq!(next(&tried(10), &mut 0), Next::Try(vec![Span::from_us(5)]));
    }

    #[test]
    fn one_value_that_fails_above_moves_the_answer_above_it() {
        let tried: Vec<Tried> = [(10, false), (20, true), (30, false), (31, true)]
            .map(|(us, keeps)| Tried { value: Span::from_us(us), keeps })
            .into();
        assert_eq!(next(&tried, &mut 0), Next::Found(Span::from_us(31)));
    }
}
