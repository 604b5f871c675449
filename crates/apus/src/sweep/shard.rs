//! Shards of a sweep: the part of its runs that one of several processes executes.

use std::fmt;

/// Shard `number` of `count`; numbers start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    count: usize,
}

/// Maximum number of shards.
const MAX: usize = 1_000_000;

impl Shard {
    /// Returns `true` if the run with this index in the table belongs to the shard. Neighbouring runs take similar
    /// times, so they belong to different shards.
    pub fn has(self, place: usize) -> bool {
        place % self.count == self.number - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.number, self.count)
    }
}

/// Reads `--shard`.
pub fn read_shard(text: &str) -> Result<Shard, String> {
    let numbers = text.split_once('/').and_then(|(number, count)| {
        Some((number.trim().parse::<usize>().ok()?, count.trim().parse::<usize>().ok()?))
    });
    match numbers {
        Some((number, count)) if (1..=count).contains(&number) && count <= MAX => {
            Ok(Shard { number, count })
        }
        _ => Err(format!("must be I/N with I from 1 to N, like 3/8; N is at most {MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::read_shard;

    #[test]
    fn shards_divide_the_runs() {
        let shards: Vec<_> =
            ["1/3", "2/3", " 3 / 3 "].iter().map(|text| read_shard(text).expect("shard")).collect();
        for place in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(place)).count(), 1, "{place}");
        }
        assert_eq!(shards[1].to_string(), "2 of 3");
    }

    #[test]
    fn shards_are_numbered_from_1() {
        for wrong in ["0/3", "4/3", "1", "1/0", "a/2", "-1/2", "1/2/3", "1/1000001"] {
            assert!(read_shard(wrong).is_err(), "{wrong}");
        }
    }
}
