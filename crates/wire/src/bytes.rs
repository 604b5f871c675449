//! Writing and reading of the bytes of a packet, field by field.

/// Writes to a buffer whose length the caller has checked.
pub(crate) struct Writer<'a>(pub(crate) &'a mut [u8]);

impl Writer<'_> {
    #[inline]
    pub(crate) fn put_slice(&mut self, bytes: &[u8]) {
        let (head, rest) = core::mem::take(&mut self.0).split_at_mut(bytes.len());
        head.copy_from_slice(bytes);
        self.0 = rest;
    }

    #[inline]
    pub(crate) fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.put_slice(&bytes);
    }
}

/// Reads bytes whose number the caller has checked.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.0 = &self.0[bytes..];
    }

    #[inline]
    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_at(N);
        self.0 = rest;
        let mut bytes = [0; N];
        bytes.copy_from_slice(head);
        bytes
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take())
    }
}
