//! `apus schema`: editors accept every scenario of the repository, and mark unknown keys.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jsonschema::Validator;
use serde_json::Value;

fn schema() -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_apus")).arg("schema").output().expect("run");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn validator() -> Validator {
    let schema = schema();
    jsonschema::draft202012::meta::validate(&schema).expect("a schema of draft 2020-12");
    jsonschema::draft202012::new(&schema).expect("a schema")
}

/// Returns the problems of a scenario, by the path of each value.
fn problems(validator: &Validator, text: &str) -> Vec<String> {
    let scenario: Value = toml::from_str(text).expect("TOML");
    let errors = validator.iter_errors(&scenario);
    errors.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn scenarios(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            scenarios(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            into.push(path);
        }
    }
}

#[test]
fn every_scenario_and_testbed_fits_the_schema() {
    let validator = validator();
    let mut files = Vec::new();
    scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios"), &mut files);
    assert!(files.len() > 40, "only {} scenarios", files.len());
    let mut failures = String::new();
    for path in files {
        for problem in problems(&validator, &fs::read_to_string(&path).expect("text")) {
            failures += &format!("{}: {problem}\n", path.display());
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

const GOOD: &str = r#"
duration = "20ms"
[topology]
kind = "star"
hosts = 11
rate = "100Gbps"
delay = "1us"
buffer = "4MB"
[host.engine]
batch = 16
[algorithm]
name = "swift"
base_target = "25us"
[[workload]]
kind = "incast"
size = "64kB"
"#;

#[test]
fn a_misspelt_key_or_a_value_of_another_kind_does_not_fit_the_schema() {
    let validator = validator();
    assert_eq!(problems(&validator, GOOD), Vec::<String>::new());
    for (right, wrong) in [
        ("duration =", "duratoin ="),
        ("buffer =", "bufer ="),
        ("batch =", "bach ="),
        ("base_target =", "base_targt ="),
        ("size =", "sise ="),
        // Keys of another topology kind and of another workload kind.
        ("hosts = 11", "leaves = 11"),
        ("size = \"64kB\"", "request = \"64kB\""),
        // Values without a unit, with a wrong unit or of a wrong type, and unknown words.
        ("\"20ms\"", "20"),
        ("\"100Gbps\"", "\"100us\""),
        ("batch = 16", "batch = \"16\""),
        // A number out of range.
        ("batch = 16", "batch = 0"),
        ("batch = 16", "batch = 129"),
        ("batch = 16", "noise = 1.5"),
        ("\"incast\"", "\"incst\""),
        ("\"swift\"", "\"swfit\""),
    ] {
        let text = GOOD.replacen(right, wrong, 1);
        assert_ne!(text, GOOD, "{right}");
        assert!(!problems(&validator, &text).is_empty(), "{wrong} fits");
    }
}

/// Adds the keys of scenarios, and the words that a value can be, to `words`.
fn words_of(schema: &Value, words: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("properties", Value::Object(keys)) => words.extend(keys.keys().cloned()),
                    ("const", Value::String(word)) => _ = words.insert(word.clone()),
                    ("enum", Value::Array(all)) => {
                        words.extend(all.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    _ => {}
                }
                words_of(value, words);
            }
        }
        Value::Array(all) => all.iter().for_each(|one| words_of(one, words)),
        _ => {}
    }
}

/// `APUS_WRITE_DOCS=1` rewrites the dictionary.
#[test]
fn the_dictionary_of_the_fuzzer_has_the_words_of_scenarios() {
    let mut words = BTreeSet::new();
    words_of(&schema(), &mut words);
    let lines: String = words.iter().map(|word| format!("{word:?}\n")).collect();
    let text = format!(
        "# Words of scenarios: their keys and the words that a value can be, from `apus schema`.\n{lines}"
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/dictionaries/scenario.dict");
    if std::env::var_os("APUS_WRITE_DOCS").is_some() {
        fs::write(&path, &text).expect("the dictionary");
    }
    assert!(
        fs::read_to_string(&path).expect("the dictionary") == text,
        "APUS_WRITE_DOCS=1 cargo test -p apus --test it dictionary rewrites it"
    );
}
