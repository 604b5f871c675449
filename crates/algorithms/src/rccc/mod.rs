//! RCCC, the receiver-credit congestion control of the Ultra Ethernet Specification 1.0 (§3.6.14), after EQDS, alone or with NSCC's
//! window.
//!
//! A sender may send while it has credit. Each data packet states the count up to which its sender requests
//! credit. All receiver halves of a host share a pacer. The pacer grants four packets at a time to one flow
//! after the other, a little below the host's rate. Credit that no flow requested then goes to flows that may
//! have data again.
//!
//! The equations are those of uet-htsim (commit 40ccb05). unverified: the text of the specification was not
//! available; its sections are cited second-hand.

mod host;
mod params;
mod receiver;

pub use host::Rccc;
pub use params::Params;
pub use receiver::RcccReceiver;

use apus_cc::{FieldLayout, Fields};

/// Identifier of the fields.
const ID: u8 = 3;

/// Layout of the fields: the count up to which the sender requests credit.
const LAYOUT: FieldLayout = FieldLayout { id: ID, writable: 0, authenticated: 4, echo: 0 };

/// Bytes of a unit of credit (uet-htsim 40ccb05, `UEC_PULL_SHIFT`; unverified: UE Specification 1.0 §3.6.14).
const UNIT: u64 = 256;

/// Returns the fields of a data packet.
fn to_fields(target: u32) -> Fields {
    let [a, b, c, d] = target.to_be_bytes();
    Fields::data(ID, [a, b, c, d, 0, 0])
}

/// Returns the count up to which the sender of a data packet requests credit.
fn target_of(fields: &Fields) -> Option<u32> {
    let &[a, b, c, d, ..] = fields.as_data(ID)?;
    Some(u32::from_be_bytes([a, b, c, d]))
}

/// Returns by how much count `a` is ahead of `b`. Counts are modulo 2^32, since a flow may be granted more than
/// 1 TB.
fn ahead(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}
