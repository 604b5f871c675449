//! The checksum of the insecure mode: CRC-32C, as in the plain datagrams of `apus_wire`.

use crc_fast::{CrcAlgorithm, checksum};

/// Length of the checksum in bytes.
pub(crate) const CHECKSUM_BYTES: usize = 4;

/// Returns the CRC-32C of these bytes, in network byte order.
#[inline]
pub(crate) fn crc_32c(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    // The crate returns the 32-bit checksum in the low half.
    (checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3720, App. B.4, which lists the bytes in the order of transmission (least significant first).
    #[test]
    fn rfc_3720_b_4_examples() {
        let ascending: [u8; 32] = core::array::from_fn(|i| i as u8);
        let descending: [u8; 32] = core::array::from_fn(|i| 31 - i as u8);
        for (bytes, crc) in [
            ([0; 32], 0x8a91_36aa_u32),
            ([0xff; 32], 0x62a8_ab43),
            (ascending, 0x46dd_794e),
            (descending, 0x113f_db5c),
        ] {
            assert_eq!(crc_32c(&bytes), crc.to_be_bytes());
        }
    }
}
