//! The native module as a file: Python finds its entry point.
//!
//! This test also has the module built together with all tests of the workspace, for those in Python.

use std::env;
use std::fs;

/// pyproject.toml names the module `apus._native`; Python calls `PyInit_` and its last part.
#[test]
fn the_module_exports_the_entry_point_of_its_name() {
    let folder = env::current_exe().expect("this test").with_file_name("");
    let names = [("lib", "so"), ("lib", "dylib"), ("", "dll")];
    let mut files = names.iter().map(|(start, end)| format!("{start}apus_python.{end}"));
    let file = files.find_map(|name| fs::read(folder.join(name)).ok()).expect("the module");
    let entry = b"PyInit__native";
    assert!(file.windows(entry.len()).any(|part| part == entry));
}
