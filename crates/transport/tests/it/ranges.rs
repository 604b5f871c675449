//! `RangeSet` against a model: a set of bytes.

use apus_transport::RangeSet;
use proptest::prelude::*;

proptest! {
    #[test]
    fn insert_counts_new_bytes_as_a_set_does(
        ranges in proptest::collection::vec((0u64..200, 0u64..60), 0..60)
    ) {
        let mut set = RangeSet::default();
        let mut model = vec![false; 300];
        for (start, length) in ranges {
            let range = start as usize..(start + length) as usize;
            let new = model[range.clone()].iter().filter(|&&there| !there).count() as u64;
            model[range].fill(true);
            prop_assert_eq!(set.insert(start, length), new);
            let contiguous = model.iter().take_while(|&&there| there).count() as u64;
            prop_assert!(set.is_complete(contiguous));
            prop_assert!(!set.is_complete(contiguous + 1));
        }
    }
}
