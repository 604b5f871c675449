//! Reading of files with a limit on their size, so that no file fills the memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of a scenario in bytes. deviation: no source; about a million lines.
pub const SCENARIO_BYTES: u64 = 64 << 20;
/// Maximum size in bytes of any other file that is read as a whole, and of a decompressed file. deviation: no
/// source; traces of a hundred million messages, and still a part of the memory of a server.
pub const DATA_BYTES: u64 = 4 << 30;

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// If the file cannot be read or is longer ([`io::ErrorKind::FileTooLarge`]).
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let expected = file.metadata()?.len();
    let mut bytes = Vec::new();
    if expected <= most {
        bytes.try_reserve_exact(expected as usize)?;
        file.take(most + 1).read_to_end(&mut bytes)?;
    }
    // Devices and pipes do not report their length.
    if expected.max(bytes.len() as u64) > most {
        let why = match most >> 20 {
            0 => format!("it is larger than the limit of {most} bytes"),
            mib => format!("it is larger than the limit of {mib} MiB"),
        };
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a text of at most `most` bytes.
///
/// # Errors
/// If the file cannot be read, is longer, or is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read_bytes(path, most)?;
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not text (UTF-8)");
    String::from_utf8(bytes).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let path = std::env::temp_dir().join(format!("apus-{}-limit", std::process::id()));
        std::fs::write(&path, "five\n").expect("a file");
        assert_eq!(read_text(&path, 5).expect("short enough"), "five\n");
        let why = read_text(&path, 4).expect_err("too long").to_string();
        assert_eq!(why, "it is larger than the limit of 4 bytes");
        std::fs::write(&path, [0xff]).expect("a file");
        let why = read_text(&path, 4).expect_err("no text").to_string();
        assert_eq!(why, "it is not text (UTF-8)");
        std::fs::remove_file(&path).expect("it is there");
    }

    #[cfg(unix)]
    #[test]
    fn a_device_without_an_end_is_too_long() {
        let why = read_bytes(Path::new("/dev/zero"), 1 << 20).expect_err("endless").to_string();
        assert_eq!(why, "it is larger than the limit of 1 MiB");
    }
}
