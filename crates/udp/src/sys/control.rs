//! Control messages: aligned headers followed by their data.

/// Number of bytes for the control messages of one datagram: at most five messages, of at most 64 bytes.
pub(super) const CONTROL_BYTES: usize = 256;

/// A buffer for control messages, aligned as their headers must be.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct Control(pub(super) [u8; CONTROL_BYTES]);

const HEADER: usize = size_of::<libc::cmsghdr>();

const fn aligned(length: usize) -> usize {
    length.next_multiple_of(align_of::<libc::cmsghdr>())
}

impl Control {
    pub(super) const EMPTY: Self = Self([0; CONTROL_BYTES]);

    /// Appends a message at `at`. Returns where the next message begins.
    pub(super) fn put(&mut self, at: usize, level: i32, kind: i32, data: &[u8]) -> usize {
        let length = HEADER + data.len();
        self.0[at..at + size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
        let rest = at + size_of::<usize>();
        self.0[rest..rest + 4].copy_from_slice(&level.to_ne_bytes());
        self.0[rest + 4..rest + 8].copy_from_slice(&kind.to_ne_bytes());
        self.0[at + HEADER..at + length].copy_from_slice(data);
        at + aligned(length)
    }

    /// Returns the messages in the first `length` bytes, as (level, kind, data).
    pub(super) fn messages(&self, length: usize) -> impl Iterator<Item = (i32, i32, &[u8])> {
        let mut rest = &self.0[..length.min(CONTROL_BYTES)];
        std::iter::from_fn(move || {
            let (head, _) = rest.split_first_chunk::<HEADER>()?;
            let size = usize::from_ne_bytes(*head.first_chunk()?);
            let level = int(&head[size_of::<usize>()..])?;
            let kind = int(&head[size_of::<usize>() + 4..])?;
            let data = rest.get(HEADER..size)?;
            rest = rest.get(aligned(size)..).unwrap_or(&[]);
            Some((level, kind, data))
        })
    }
}

/// Returns the int at the start of `data`. The kernel writes some of these values as one byte.
pub(super) fn int(data: &[u8]) -> Option<i32> {
    match data.first_chunk() {
        Some(bytes) => Some(i32::from_ne_bytes(*bytes)),
        None => data.first().map(|&byte| i32::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back_until_a_truncated_one() {
        let mut control = Control::EMPTY;
        let end = control.put(0, 1, 2, &7u16.to_ne_bytes());
        let end = control.put(end, 3, 4, &[9; 12]);
        let read: Vec<_> = control.messages(end).map(|(l, k, d)| (l, k, d.to_vec())).collect();
        assert_eq!(read, [(1, 2, 7u16.to_ne_bytes().to_vec()), (3, 4, vec![9; 12])]);
        assert_eq!(control.messages(end - 8).count(), 1);
        control.0[0] = 255;
        assert_eq!(control.messages(end).count(), 0, "a length beyond the buffer");
    }
}
