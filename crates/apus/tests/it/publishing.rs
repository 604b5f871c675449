//! Every published crate is complete: it has its metadata, and all files that it includes.

use std::fs;
use std::path::{Component, Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn manifest(folder: &Path) -> toml::Table {
    let text = fs::read_to_string(folder.join("Cargo.toml")).expect("manifest");
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

/// Returns the folder and the manifest of each crate, except those with `publish = false`.
fn published() -> Vec<(PathBuf, toml::Table)> {
    let folders = fs::read_dir(crates()).expect("crates").map(|entry| entry.expect("entry").path());
    let all = folders.map(|folder| (manifest(&folder), folder));
    let is_published = |manifest: &toml::Table| {
        manifest["package"].get("publish").and_then(toml::Value::as_bool) != Some(false)
    };
    all.filter(|(manifest, _)| is_published(manifest)).map(|(m, folder)| (folder, m)).collect()
}

/// Returns the strings of a list in the table `package`.
fn list<'a>(manifest: &'a toml::Table, key: &str) -> Vec<&'a str> {
    let list = manifest["package"].get(key).and_then(toml::Value::as_array);
    list.into_iter().flatten().filter_map(toml::Value::as_str).collect()
}

/// Appends the Rust files of a folder and of the folders in it.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        // A crate that is its own workspace has its own folder of build results.
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Returns the files that a Rust source includes with `include!`, `include_str!`, `include_bytes!` or `#[path]`. The
/// first string literal after it counts, because macros may append to it.
fn included(source: &str) -> Vec<&str> {
    let quoted = |text: &&'static str| -> Vec<&str> {
        let after = source.split(text).skip(1);
        after.filter_map(|rest| rest.split('"').nth(1)).collect()
    };
    ["include!(", "include_str!(", "include_bytes!(", "#[path ="].iter().flat_map(quoted).collect()
}

/// Returns the path without `.` and `..` components.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// The limits are those of crates.io.
#[test]
fn every_published_crate_has_description_keywords_categories_and_readme() {
    let published = published();
    assert!(published.len() >= 10, "only {} crates", published.len());
    for (folder, manifest) in published {
        let package = &manifest["package"];
        let name = package["name"].as_str().expect("name");
        let description = package.get("description").and_then(toml::Value::as_str);
        assert!(description.is_some_and(|text| text.len() > 30), "{name}: {description:?}");
        let keywords = list(&manifest, "keywords");
        assert!((1..=5).contains(&keywords.len()), "{name}: keywords {keywords:?}");
        for keyword in keywords {
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '+';
            assert!(keyword.len() <= 20 && keyword.chars().all(legal), "{name}: {keyword}");
            assert!(keyword.starts_with(|c: char| c.is_ascii_alphabetic()), "{name}: {keyword}");
        }
        let categories = list(&manifest, "categories");
        assert!((1..=5).contains(&categories.len()), "{name}: categories {categories:?}");
        for field in ["version", "license", "rust-version", "edition"] {
            assert!(package.get(field).is_some(), "{name}: {field} is missing");
        }
        assert_eq!(
            package.get("readme").and_then(toml::Value::as_str),
            Some("README.md"),
            "{name}"
        );
        let readme = fs::read_to_string(folder.join("README.md")).expect(name);
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}: title of the README");
        // The examples in these blocks are checked together with those of the other documents.
        assert!(readme.contains("```rust file="), "{name}: no example in the README");
        let licence = fs::read_to_string(folder.join("LICENSE")).expect(name);
        assert!(licence.contains("Apache License"), "{name}: licence");
    }
}

/// The documentation of a published crate shows an example that the crate's tests run or compile.
#[test]
fn every_published_library_has_an_example_in_its_documentation() {
    for (folder, _) in published() {
        let source = fs::read_to_string(folder.join("src/lib.rs")).expect("lib.rs");
        let documentation = source.lines().take_while(|line| {
            line.is_empty() || line.starts_with("//") || line.starts_with("#![doc")
        });
        // Every second fence begins a block.
        let mut fences = documentation.filter(|line| line.starts_with("//! ```")).step_by(2);
        let example = fences.any(|fence| matches!(fence, "//! ```" | "//! ```no_run"));
        assert!(example, "{}: no example in the crate's documentation", folder.display());
    }
}

/// A package contains only the files of its folder, so files from outside would be missing.
#[test]
fn published_crates_include_no_file_from_outside_their_package() {
    let mut count = 0;
    for (folder, manifest) in published() {
        let folder = plain(&folder);
        let left_out: Vec<PathBuf> = list(&manifest, "exclude")
            .iter()
            .map(|name| folder.join(name.trim_start_matches('/')))
            .collect();
        let mut files = Vec::new();
        sources(&folder, &mut files);
        for file in files.iter().filter(|file| !left_out.iter().any(|out| file.starts_with(out))) {
            let source = fs::read_to_string(file).expect("source");
            for name in included(&source) {
                let target = plain(&file.parent().expect("folder").join(name));
                let inside = target.starts_with(&folder)
                    && !left_out.iter().any(|out| target.starts_with(out));
                assert!(inside, "{} includes {name} from outside its package", file.display());
                count += 1;
            }
            // Tests may construct such paths at run time.
            let outside = source.lines().find(|line| {
                line.split('"').skip(1).step_by(2).any(|text| {
                    text.trim_start_matches('/').starts_with("../..")
                        && !line.contains("include")
                        && !line.contains("#[path")
                })
            });
            assert_eq!(outside, None, "{} names a file outside its package", file.display());
        }
    }
    assert!(count > 20, "only {count} files are included");
}

#[test]
fn included_files_are_found_in_macros_and_attributes() {
    let source = r#"#![doc = include_str!("../a.md")] #[path = "b.rs"] mod b; include_bytes!(concat!("c/", $name))"#;
    let mut found = included(source);
    found.sort_unstable();
    assert_eq!(found, ["../a.md", "b.rs", "c/"]);
}

/// A published crate depends on other crates of the workspace by version; the path applies only to this repository.
#[test]
fn crates_of_the_workspace_depend_on_each_other_by_version_and_path() {
    let root = manifest(&crates().join(".."));
    let version = root["workspace"]["package"]["version"].as_str().expect("version");
    let dependencies = root["workspace"]["dependencies"].as_table().expect("dependencies");
    let own = dependencies.iter().filter(|(name, _)| name.starts_with("apus"));
    let own: Vec<_> = own.collect();
    let (apart, inside): (Vec<_>, Vec<_>) =
        published().into_iter().partition(|(_, manifest)| manifest.contains_key("workspace"));
    assert_eq!(own.len(), inside.len(), "published crates and [workspace.dependencies]");
    // Crates that are their own workspace.
    let apart = apart.iter().filter_map(|(_, manifest)| manifest["dependencies"].as_table());
    let apart = apart.flatten().filter(|(name, _)| name.starts_with("apus"));
    for (name, dependency) in own.into_iter().chain(apart) {
        let found = dependency.get("version").and_then(toml::Value::as_str);
        assert_eq!(found, Some(version), "{name} in its table of dependencies");
        assert!(dependency.get("path").is_some(), "{name} in its table of dependencies");
    }
}

/// A crate that is its own workspace cannot inherit these fields.
#[test]
fn crates_outside_the_workspace_have_its_version_edition_compiler_and_licence() {
    let root = manifest(&crates().join(".."));
    let common = &root["workspace"]["package"];
    let published = published();
    let mut names = Vec::new();
    for (_, manifest) in published.iter().filter(|(_, m)| m.contains_key("workspace")) {
        let package = &manifest["package"];
        let name = package["name"].as_str().expect("name");
        for field in ["version", "edition", "rust-version", "license"] {
            assert!(common[field].is_str(), "{field} of the workspace");
            assert_eq!(package[field], common[field], "{name}: {field}");
        }
        names.push(name);
    }
    assert_eq!(names, ["apus-quinn"]);
}

#[test]
fn the_citation_has_the_version_of_the_workspace() {
    let root = crates().join("..");
    let citation = fs::read_to_string(root.join("CITATION.cff")).expect("citation");
    let version = manifest(&root)["workspace"]["package"]["version"].clone();
    let line = format!("version: {}", version.as_str().expect("version"));
    assert!(citation.lines().any(|found| found == line), "CITATION.cff lacks `{line}`");
}
