//! Zip archives of named entries. Equal entries give equal bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Cursor, Read, Write};

use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// Largest size of an entry, and of all entries together: above the size of a scenario with its traces.
const MAX_BYTES: u64 = 4 << 30;

/// Returns an archive of these entries.
pub fn pack(entries: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, String> {
    let sum: u64 = entries.values().map(|bytes| bytes.len() as u64).sum();
    if sum > MAX_BYTES {
        let (gib, limit) = (sum >> 30, MAX_BYTES >> 30);
        return Err(format!(
            "its files have {gib} GiB together, more than the limit of {limit} GiB"
        ));
    }
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        archive.start_file(name.as_str(), options).map_err(|error| error.to_string())?;
        archive.write_all(bytes).map_err(|error| error.to_string())?;
    }
    let written = archive.finish().map_err(|error| error.to_string())?;
    Ok(written.into_inner())
}

/// Returns the entries of an archive.
pub fn unpack(bytes: &[u8]) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let damaged = |why: String| format!("is damaged: {why}");
    let mut archive =
        ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(error.to_string()))?;
    let (mut entries, mut left) = (BTreeMap::new(), MAX_BYTES);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| damaged(error.to_string()))?;
        let name = entry.name().map_err(|error| damaged(error.to_string()))?.into_owned();
        let mut content = Vec::new();
        let read = entry.take(left + 1).read_to_end(&mut content);
        read.map_err(|error| damaged(format!("{name}: {error}")))?;
        left = left.checked_sub(content.len() as u64).ok_or_else(|| {
            damaged(format!("its entries have more than {} GiB", MAX_BYTES >> 30))
        })?;
        if entries.insert(name.clone(), content).is_some() {
            return Err(damaged(format!("{name} is there twice")));
        }
    }
    Ok(entries)
}

/// Returns the SHA-256 of some bytes in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn the_hash_is_sha_256() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), expected);
    }

    #[test]
    fn archives_are_read_back_and_do_not_depend_on_the_time() {
        let entries: BTreeMap<String, Vec<u8>> =
            [("a/b.txt", "text".repeat(1000)), ("c", String::new())]
                .map(|(name, text)| (name.to_owned(), text.into_bytes()))
                .into();
        let packed = pack(&entries).expect("an archive");
        assert_eq!(unpack(&packed).expect("entries"), entries);
        assert_eq!(pack(&entries).expect("an archive"), packed);
        for end in [0, 10, packed.len() / 2, packed.len() - 1] {
            assert!(unpack(&packed[..end]).is_err(), "{end}");
        }
    }
}
