//! Arbitrary text as a key file: an error, or a key ring whose entries can be written to lines and read back unchanged.
#![no_main]

use apus_udp::session::{KeyRing, entries};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let read = entries(text);
    let ring = KeyRing::parse(text);
    let Ok(read) = read else {
        assert!(ring.is_err(), "a ring of an invalid file");
        return;
    };
    let written: String = read.iter().map(|entry| entry.to_line().to_string() + "\n").collect();
    assert_eq!(entries(&written).as_ref(), Ok(&read), "read back");
    let Ok(ring) = ring else { return };
    for (key, name) in ring.peers() {
        assert_eq!(ring.name_of(&key), Some(name));
        if let Ok(id) = ring.towards(Some(name)) {
            assert!(ring.ids().any(|known| known == id));
        }
    }
    let _ = ring.towards(None);
    // The output of a ring contains no secret, unless the file gives the same value as the public key of a peer.
    let shown = format!("{ring:?}");
    let lines = |own: bool| {
        let entries = read.iter().filter(move |entry| entry.public().is_some() == own);
        entries.map(|entry| entry.to_line().rsplit(' ').next().unwrap_or_default().to_owned())
    };
    let given: Vec<String> = lines(false).collect();
    for secret in lines(true).filter(|secret| !given.contains(secret)) {
        assert!(!shown.contains(&secret));
    }
});
