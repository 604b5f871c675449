//! `RangeSet` against a model: a set of bytes.

use apus_transport::RangeSet;
use proptest::prelude::*;

use crate::support::config;

/// Number of bytes that the model contains.
const BYTES: u64 = 260;

/// First byte of the model: at the start, at powers of two, and so that its end is byte 2^64 - 1.
fn first() -> impl Strategy<Value = u64> {
    let power = (9u32..64).prop_map(|bit| (1 << bit) - BYTES / 2);
    prop_oneof![3 => Just(0), 1 => power, 3 => Just(u64::MAX - BYTES), 1 => 0..u64::MAX - BYTES]
}

proptest! {
    #![proptest_config(config(256))]

    /// The bytes before the model arrive at once, before, between or after its bytes.
    #[test]
    fn insert_counts_new_bytes_as_a_set_does(
        first in first(),
        begins_at in 0usize..60,
        ranges in prop::collection::vec((0u64..200, 0u64..60), 0..60),
        asked in prop::collection::vec((0u64..200, 0u64..60), 60),
    ) {
        let mut set = RangeSet::default();
        let mut model = [false; BYTES as usize];
        for (number, ((start, length), asked)) in ranges.into_iter().zip(asked).enumerate() {
            if number == begins_at {
                prop_assert_eq!(set.insert(0, first), first);
            }
            let begun = first == 0 || number >= begins_at;
            let range = start as usize..(start + length) as usize;
            let new = model[range.clone()].iter().filter(|&&there| !there).count() as u64;
            model[range].fill(true);
            prop_assert_eq!(set.insert(first + start, length), new);
            let here = model.iter().take_while(|&&there| there).count() as u64;
            let contiguous = if begun { first + here } else { 0 };
            prop_assert_eq!(set.contiguous(), contiguous);
            prop_assert!(set.is_complete(contiguous) && !set.is_complete(contiguous + 1));
            let (start, length) = asked;
            let all = model[start as usize..(start + length) as usize].iter().all(|&there| there);
            // `contains` states nothing about empty ranges.
            prop_assert!(length == 0 || set.contains(first + start, length) == all);
        }
    }
}

/// The last bytes that a range can contain: the end of a range is at most 2^64 - 1.
#[test]
fn the_last_bytes_are_ranges_like_any_other() {
    let mut set = RangeSet::default();
    assert_eq!(set.insert(u64::MAX - 1, 1), 1);
    assert_eq!(set.insert(u64::MAX, 0), 0, "an empty range at the end");
    assert_eq!(set.insert(u64::MAX - 3, 3), 2);
    assert_eq!(set.insert(0, u64::MAX), u64::MAX - 3, "everything else");
    assert_eq!((set.contiguous(), set.is_complete(u64::MAX)), (u64::MAX, true));
    assert_eq!(set.insert(0, u64::MAX), 0);
    // A request for bytes beyond the end asks for the bytes up to the end.
    assert!(set.contains(u64::MAX, u64::MAX) && set.contains(0, u64::MAX));
    assert!(set.has_room_for(u64::MAX, usize::MAX));
}
