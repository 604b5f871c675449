//! Checks that `docs/reproduction.md` agrees with the built-in scenarios.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REMEDY: &str = "apus reproduce NAME --report docs/reproduction.md writes its part anew";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the names of the built-in experiments, as `apus list experiments` prints them.
fn experiments() -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_apus"))
        .args(["list", "experiments"])
        .output()
        .expect("process");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// Returns the value of `key = "..."` in a line of a scenario.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.trim_start().strip_prefix("= \"")?.strip_suffix('"')
}

#[test]
fn every_experiment_has_its_section_with_its_checks_and_its_figure() {
    let page = fs::read_to_string(root().join("docs/reproduction.md")).expect("the page");
    let sections: Vec<&str> = page.split("\n## ").skip(1).collect();
    let experiments = experiments();
    let names: Vec<&str> =
        sections.iter().filter_map(|section| section.split([':', '\n']).next()).collect();
    assert_eq!(names, experiments, "sections and experiments; {REMEDY}");
    for (name, section) in experiments.iter().zip(sections) {
        let scenario = root().join("crates/apus/scenarios").join(format!("{name}.toml"));
        let scenario = fs::read_to_string(scenario).expect("scenario");
        let title = scenario.lines().find_map(|line| value(line, "title")).expect("title");
        assert!(section.starts_with(&format!("{name}: {title}\n")), "{name}: {title}; {REMEDY}");
        for check in scenario.split("\n[[").filter(|table| table.starts_with("check]]")) {
            let check = check.lines().find_map(|line| value(line, "name")).expect("name");
            let cell = check.replace('|', "\\|");
            assert!(section.contains(&format!("| {cell}")), "{name}: {check}; {REMEDY}");
        }
        assert!(section.contains(", seeds 1 to 5."), "{name} is of five seeds; {REMEDY}");
        assert!(page.contains(&format!("\n| [{name}](#")), "{name} in the overview; {REMEDY}");
    }
    let version = page.lines().find_map(|line| line.strip_prefix("Written by: ")).expect("version");
    assert!(!version.is_empty(), "the page names its version; {REMEDY}");
    for link in page.split("](figures/").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(root().join("docs/figures").join(link).is_file(), "{link}; {REMEDY}");
    }
}

/// The counts in the README are those of the page.
#[test]
fn the_readme_has_the_counts_of_the_page() {
    let words = |file: &str| {
        let text = fs::read_to_string(root().join(file)).expect(file);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let page = words("docs/reproduction.md");
    let sentence = page.split(" Of ").find(|part| part.contains(" reproductions, "));
    let sentence = sentence.expect("the counts on the page");
    let number = |text: &str| text.split(' ').next().map(str::to_owned).expect("a number");
    let [all, close, near] = ["", " reproductions, ", " paper's number and "]
        .map(|before| number(sentence.split_once(before).expect("a count").1));
    let expected = format!(
        "of {all} numbers of papers and reference simulators {close} are met within 10 % and {near} within 25 %."
    );
    assert!(words("README.md").contains(&expected), "README.md must have: {expected}");
}

/// One section is rewritten, the others stay, and the page does not depend on the machine.
#[test]
fn a_page_is_written_part_by_part() {
    let folder = crate::support::command::folder("reproduction");
    let write = |name: &str| {
        let arguments = ["reproduce", name, "--quick", "--report", "page.md"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_apus"));
        let output = command.current_dir(&folder).args(arguments).output().expect("process");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(folder.join("page.md")).expect("page")
    };
    let first = write("swift/fig22");
    assert!(first.contains("\n## swift/fig22: ") && first.contains("**not the full experiments**"));
    assert!(folder.join("figures/swift-fig22.svg").is_file());
    let both = write("swift/fig20");
    assert!(both.find("\n## swift/fig20: ") < both.find("\n## swift/fig22: "), "in order");
    // Sections of a page of another version can neither be kept nor silently dropped.
    let old = both.replace("Tables and figures of the papers", "Figures");
    fs::write(folder.join("page.md"), &old).expect("page");
    let arguments = ["reproduce", "swift/fig22", "--quick", "--report", "page.md"];
    let output = crate::support::command::apus(&folder, &arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cannot stay (1, swift/fig20 first); write all of them"), "{stderr}");
    assert_eq!(fs::read_to_string(folder.join("page.md")).expect("page"), old);
    fs::write(folder.join("page.md"), &both).expect("page");
    let section = |page: &str| page.split("\n## swift/fig22: ").nth(1).map(str::to_owned);
    assert_eq!(section(&first), section(&both));
    assert_eq!(write("swift/fig22"), both);
}
