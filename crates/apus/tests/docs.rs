//! The examples of the documents, as a reader would use them.
//!
//! The first line of a block of code says what it is:
//! * ```` ```toml file=mine.toml ```` (or `csv`): a file that the reader saves under this name; a
//!   scenario must be one that can be read.
//! * ```` ```sh run ````: commands that a reader types, in order, in one folder per document.
//! * ```` ```rust file=crates/... ````: a part of that file of the repository, which its own tests
//!   run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DOCUMENTS: [&str; 6] = [
    "README.md",
    "docs/tutorial.md",
    "docs/cookbook.md",
    "docs/adding-an-algorithm.md",
    "docs/adding-a-topology.md",
    "docs/adding-a-workload.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The blocks of code of a document: what their first line says, and their text.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((info.to_owned(), body.join("\n") + "\n"));
        }
    }
    blocks
}

/// Runs the examples of a document in a folder of their own; how many there were.
fn check(document: &str) -> usize {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docs").join(document);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("folder");
    let text = fs::read_to_string(root().join(document)).expect(document);
    let mut count = 0;
    for (info, body) in blocks(&text) {
        let mut words = info.split_whitespace();
        match (words.next(), words.next()) {
            (Some("sh"), Some("run")) => run(document, &folder, &body),
            (Some("rust"), Some(file)) => {
                let file = file.strip_prefix("file=").expect("file=");
                let source = fs::read_to_string(root().join(file)).expect(file);
                assert!(source.contains(&body), "{document}: {file} does not hold\n{body}");
            }
            (Some(kind), Some(file)) => {
                let file = file.strip_prefix("file=").expect("file=");
                fs::write(folder.join(file), &body).expect(file);
                // Read as it is; what it does is what the commands show. A run this short fails a
                // check and ends before a fault, so such a scenario must have a command of its own.
                if kind == "toml" && !body.contains("[[check]]") && !body.contains("[[fault]]") {
                    run(
                        document,
                        &folder,
                        &format!(
                            "apus run {file} --set duration=10us --set warmup=0s --json > /dev/null"
                        ),
                    );
                }
            }
            _ => continue,
        }
        count += 1;
    }
    count
}

fn run(document: &str, folder: &Path, commands: &str) {
    let bin = Path::new(env!("CARGO_BIN_EXE_apus")).parent().expect("folder");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-e", "-c", &commands.replace("target/release/apus", "apus")])
        .env("PATH", path)
        .current_dir(folder)
        .output()
        .expect("sh");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{document}:\n{commands}\n{stderr}");
}

#[test]
fn every_example_of_the_documents_runs() {
    for document in DOCUMENTS {
        let count = check(document);
        assert!(count > 0, "{document} has no example that runs");
    }
}

/// The documents of the repository.
fn documents() -> Vec<PathBuf> {
    let pages = |folder: PathBuf| {
        let files = fs::read_dir(folder).expect("folder").map(|file| file.expect("file").path());
        files.filter(|file| file.extension().is_some_and(|extension| extension == "md"))
    };
    pages(root()).chain(pages(root().join("docs"))).collect()
}

/// A link to a file of the repository leads somewhere, and every figure is shown.
#[test]
fn links_lead_somewhere() {
    let mut figures: Vec<PathBuf> = fs::read_dir(root().join("docs/figures"))
        .expect("figures")
        .map(|file| file.expect("file").path().canonicalize().expect("path"))
        .collect();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("text");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if !file.is_empty() && !file.contains("://") {
                let target = path.parent().expect("folder").join(file);
                assert!(target.exists(), "{}: {link}", path.display());
                let target = target.canonicalize().expect("path");
                figures.retain(|figure| *figure != target);
            }
        }
    }
    assert!(figures.is_empty(), "no document shows {figures:?}");
}
