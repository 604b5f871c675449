//! Search for operations that wait for each other.

use alloc::vec;
use alloc::vec::Vec;

use super::{ANY, Program};

/// Returns the lowest operation of a cycle and the number of its dependencies, if there is a cycle.
pub(super) fn find(program: &Program) -> Option<(u32, u32)> {
    let mut needs = program.needs.to_vec();
    let mut free: Vec<u32> =
        (0..program.len() as u32).filter(|op| needs[*op as usize] == 0).collect();
    let mut left = program.len();
    let followers = |op| program.after_end(op).iter().chain(program.after_start(op));
    while let Some(op) = free.pop() {
        left -= 1;
        for next in followers(op) {
            needs[*next as usize] -= 1;
            if needs[*next as usize] == 0 {
                free.push(*next);
            }
        }
    }
    if left == 0 {
        return None;
    }
    // Each remaining operation waits for another remaining operation.
    let mut awaited = vec![ANY; program.len()];
    let is_left = |op: &u32| needs[*op as usize] > 0;
    for op in (0..program.len() as u32).filter(is_left) {
        for next in followers(op).filter(|next| is_left(next)) {
            awaited[*next as usize] = op;
        }
    }
    let mut at = (0..program.len() as u32).find(is_left)?;
    // After as many steps as there are operations, the walk is on the cycle.
    for _ in 0..left {
        at = awaited[at as usize];
    }
    let (start, mut lowest, mut length) = (at, at, 0);
    loop {
        at = awaited[at as usize];
        lowest = lowest.min(at);
        length += 1;
        if at == start {
            return Some((lowest, length));
        }
    }
}
