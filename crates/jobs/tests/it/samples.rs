//! The schedules of `tests/data`.

use std::fs;
use std::path::Path;

/// Names of the schedules, and the time in ns that LogGOPSim 76451de prints for the last rank with its
/// default parameters (run on 2026-11-22).
pub(crate) const SAMPLES: [(&str, u64); 7] = [
    ("allreduce_ring_8", 88_157_300),
    ("allreduce_recdoub_8", 11_043_012),
    ("allreduce_2groups_4", 3_719_364),
    ("alltoall_w2_8", 16_026_322),
    ("bcast_16", 1_600_840),
    ("binary_tree_32", 27_500),
    ("incast_9", 48_015_952),
];

/// Returns the content of a file.
pub(crate) fn content(name: &str, extension: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    fs::read(folder.join(format!("{name}.{extension}"))).expect(name)
}
