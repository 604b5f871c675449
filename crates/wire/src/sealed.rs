//! Plain-mode datagrams: header, payload and a checksum. The checksum guards against damage, not
//! against an adversary.

use crc::{CRC_32_ISCSI, Crc, Table};

use crate::codec::{authenticated_from, decode, encode};
use crate::error::{DecodeError, EncodeError};
use crate::header::Header;

/// Bytes of the checksum behind the payload.
pub const CHECKSUM_BYTES: usize = 4;

/// CRC-32C (RFC 3385 on why this polynomial). It detects every error of up to 3 bits in a packet of
/// any length used here. Sixteen tables: 16 bytes per step.
static CRC_32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

impl Header {
    /// Returns the bytes of the whole plain-mode datagram without extension: header, payload and checksum.
    #[must_use]
    pub fn sealed_len(&self) -> usize {
        self.encoded_len() + self.payload_len() + CHECKSUM_BYTES
    }
}

/// Writes header, payload and checksum to the start of `out` and returns their length.
///
/// # Errors
/// If the header's values are illegal, `payload` is not as long as the header states, or `out` is
/// too short ([`Header::sealed_len`]); `out` is then unchanged.
pub fn seal(header: &Header, payload: &[u8], out: &mut [u8]) -> Result<usize, EncodeError> {
    let (stated, given) = (header.payload_len(), payload.len());
    if stated != given {
        return Err(EncodeError::PayloadLength { stated, given });
    }
    let (needed, available) = (header.sealed_len(), out.len());
    let Some(out) = out.get_mut(..needed) else {
        return Err(EncodeError::BufferTooSmall { needed, available });
    };
    let header_end = encode(header, out)?;
    let (body, checksum) = out.split_at_mut(needed - CHECKSUM_BYTES);
    body[header_end..].copy_from_slice(payload);
    checksum.copy_from_slice(&CRC_32C.checksum(&body[authenticated_from(body)..]).to_be_bytes());
    Ok(needed)
}

/// Reads a whole plain-mode datagram and returns its header and payload if the checksum matches. Bytes that
/// switches may write are outside the checksum.
///
/// # Errors
/// See [`decode`]; also if the datagram's length differs from the one that its header states, and
/// if the checksum does not match.
pub fn open(datagram: &[u8]) -> Result<(Header, &[u8]), DecodeError> {
    let (header, header_end) = decode(datagram)?;
    let payload_end = header_end + header.payload_len();
    let (expected, available) = (payload_end + CHECKSUM_BYTES, datagram.len());
    if available < expected {
        return Err(DecodeError::Truncated { needed: expected, available });
    }
    if available > expected {
        return Err(DecodeError::TrailingBytes { expected, available });
    }
    let (body, checksum) = datagram.split_at(payload_end);
    let mut carried = [0; CHECKSUM_BYTES];
    carried.copy_from_slice(checksum);
    let carried = u32::from_be_bytes(carried);
    let computed = CRC_32C.checksum(&body[authenticated_from(body)..]);
    if carried != computed {
        return Err(DecodeError::Checksum { carried, computed });
    }
    Ok((header, &body[header_end..]))
}
