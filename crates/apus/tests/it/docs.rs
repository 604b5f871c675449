//! Runs the examples of the documents as a reader would.
//!
//! The first line of a code block states its purpose:
//! * ```` ```toml file=mine.toml ```` (or `csv`): a file that the reader saves under this name; a
//!   scenario must be one that can be read.
//! * ```` ```sh run ````: commands that a reader types, in order, in one folder per document.
//! * ```` ```rust file=crates/... ```` (or `python`): a part of that file of the repository, which its own tests
//!   run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DOCUMENTS: [&str; 16] = [
    "README.md",
    "docs/tutorial.md",
    "docs/tutorial-jobs.md",
    "docs/clusters.md",
    "docs/cookbook.md",
    "docs/adding-an-algorithm.md",
    "docs/adding-a-path-policy.md",
    "docs/adding-a-topology.md",
    "docs/adding-a-workload.md",
    "docs/udp.md",
    "docs/python.md",
    "docs/rpc.md",
    "docs/quinn.md",
    "docs/adding-a-metric.md",
    "docs/adding-a-scheduler.md",
    "docs/adding-a-header-field.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the code blocks of a document: the info string, and the text.
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

/// Runs the examples of a document in their own folder; returns their number.
fn check(document: &str) -> usize {
    let folder = crate::support::command::folder(document);
    let text = fs::read_to_string(root().join(document)).expect(document);
    let mut count = 0;
    for (info, body) in blocks(&text) {
        let mut words = info.split_whitespace();
        match (words.next(), words.next()) {
            (Some("sh"), Some("run")) => run(document, &folder, &body),
            (Some("rust" | "python"), Some(file)) => {
                let file = file.strip_prefix("file=").expect("file=");
                let source = fs::read_to_string(root().join(file)).expect(file);
                assert!(source.contains(&body), "{document}: {file} does not hold\n{body}");
            }
            (Some(kind), Some(file)) => {
                let file = file.strip_prefix("file=").expect("file=");
                fs::write(folder.join(file), &body).expect(file);
                // The scenario is read unchanged; the commands show its effect. A run as short as this one fails its
                // checks and ends before a fault, so scenarios with checks or faults must have their own command.
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
    let readmes = readmes();
    let readmes = readmes.iter().map(|path| {
        path.strip_prefix(root()).expect("in the repository").to_str().expect("a plain path")
    });
    for document in DOCUMENTS.into_iter().chain(readmes) {
        let count = check(document);
        assert!(count > 0, "{document} has no example that runs");
    }
}

/// Returns the READMEs of crates.
fn readmes() -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).expect("crates");
    let readmes = crates.map(|entry| entry.expect("entry").path().join("README.md"));
    readmes.filter(|path| path.exists()).collect()
}

/// Returns the pages of the root and of `docs` with its folders.
fn documents() -> Vec<PathBuf> {
    fn collect(folder: &Path, deep: bool, pages: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("folder") {
            let path = entry.expect("entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            } else if deep && path.is_dir() {
                collect(&path, deep, pages);
            }
        }
    }
    let mut pages = Vec::new();
    collect(&root(), false, &mut pages);
    collect(&root().join("docs"), true, &mut pages);
    pages
}

/// Returns the text of a page without its code blocks.
fn prose(text: &str) -> String {
    let mut code = false;
    let lines = text.lines().filter(|line| {
        let fence = line.starts_with("```");
        code ^= fence;
        !code && !fence
    });
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// Returns the text of a heading as GitHub displays it, without the syntax of links and code.
fn displayed(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((shown, after)) = link.split_once("](") else { break };
        text = text + before + shown;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text + rest
}

/// Returns the anchors of a page, as GitHub derives them from its headings.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for line in prose(text).lines() {
        let heading = line.trim_start_matches('#');
        if heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let slug: String = displayed(heading.trim())
            .chars()
            .filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
                _ => None,
            })
            .collect();
        let repeated = anchors.iter().filter(|known| **known == slug).count();
        anchors.push(if repeated == 0 { slug } else { format!("{slug}-{repeated}") });
    }
    anchors
}

/// Returns the targets of links and images on a page, ignoring code blocks.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(str::to_owned).collect()
}

#[test]
fn every_internal_link_has_its_file_and_its_anchor() {
    let mut dead = Vec::new();
    for path in documents().into_iter().chain(readmes()) {
        let text = fs::read_to_string(&path).expect("text");
        for link in links(&text).iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().expect("folder").join(file),
            };
            let page = target.extension().is_some_and(|extension| extension == "md");
            let found = match fs::read_to_string(&target) {
                Ok(text) if page && !anchor.is_empty() => {
                    anchors(&text).iter().any(|a| a == anchor)
                }
                _ => target.exists(),
            };
            if !found {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links: {dead:#?}");
}

#[test]
fn every_figure_is_shown_by_a_page() {
    let figures = fs::read_dir(root().join("docs/figures")).expect("figures");
    let mut figures: Vec<PathBuf> =
        figures.map(|file| file.expect("file").path().canonicalize().expect("path")).collect();
    for path in documents() {
        let text = fs::read_to_string(&path).expect("text");
        for link in links(&text) {
            let target = path.parent().expect("folder").join(&link).canonicalize();
            figures.retain(|figure| target.as_ref().ok() != Some(figure));
        }
    }
    assert!(figures.is_empty(), "no page shows {figures:?}");
}

#[test]
fn anchors_follow_githubs_rules() {
    let page = "# A title\n```sh\n# no heading\n```\n## x/a: 5 %, `b_c` & [d](e.md)\n## A title\n";
    assert_eq!(anchors(page), ["a-title", "xa-5--b_c--d", "a-title-1"]);
}

/// The site has exactly one page for every document.
#[test]
fn the_navigation_of_the_site_names_every_page() {
    let configuration = fs::read_to_string(root().join("tools/docs/zensical.toml")).expect("text");
    let quoted = configuration.lines().filter_map(|line| line.split(" = \"").nth(1));
    let named = quoted.filter_map(|value| value.split('"').next()).filter(|v| v.ends_with(".md"));
    let mut named: Vec<String> = named.map(str::to_owned).collect();
    let root = root();
    let mut pages: Vec<String> = documents()
        .iter()
        .map(|path| {
            let path = path.strip_prefix(root.join("docs")).or(path.strip_prefix(&root));
            path.expect("path").display().to_string().replace("README.md", "index.md")
        })
        .collect();
    named.sort();
    pages.sort();
    assert_eq!(named, pages, "tools/docs/zensical.toml");
}

/// Returns `true` if a Rust source file defines an item with this name, or implements a type with this name.
fn defines(source: &str, name: &str) -> bool {
    let word = |text: &str| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        text[..end] == *name
    };
    let keywords = ["fn ", "struct ", "enum ", "trait ", "const ", "type ", "static "];
    let item = |line: &str| keywords.iter().any(|key| line.split(key).skip(1).any(word));
    let implemented = |line: &str| {
        line.starts_with("impl") && line.split([' ', '<', '>']).any(|part| part == name)
    };
    source.lines().any(|line| {
        let line = line.trim_start();
        !line.starts_with("//") && (item(line) || implemented(line))
    })
}

/// Rows have three cells: the part of the paper, a link to a file, and items of that file.
#[test]
fn every_file_and_item_of_paper_to_code_exists() {
    let page = root().join("docs/paper-to-code.md");
    let text = fs::read_to_string(&page).expect("docs/paper-to-code.md");
    let mut count = 0;
    for row in text.lines().filter(|line| line.starts_with("| ") && line.contains("](")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [_, file, items] = cells[..] else { panic!("not three cells: {row}") };
        let file = file.split("](").nth(1).and_then(|rest| rest.split(')').next());
        let file = page.parent().expect("folder").join(file.expect("a link"));
        let source = fs::read_to_string(&file).unwrap_or_else(|_| panic!("no such file: {row}"));
        let items: Vec<&str> = items.split('`').skip(1).step_by(2).collect();
        assert!(!items.is_empty(), "no item: {row}");
        for name in items.iter().flat_map(|item| item.split("::")) {
            assert!(defines(&source, name), "{}: no item `{name}`", file.display());
            count += 1;
        }
    }
    assert!(count > 50, "{count} items");
}

#[test]
fn defines_finds_items_and_implemented_types_only() {
    let source =
        "impl Sender for Swift {\n    fn on_ack(&mut self) {\n// fn gone()\nlet on_acks = 1;\n";
    assert!(defines(source, "on_ack") && defines(source, "Swift"));
    assert!(!defines(source, "gone") && !defines(source, "on_acks") && !defines(source, "on"));
}
