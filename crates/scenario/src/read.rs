//! Reads a whole scenario: turns the file, its testbed and the command line's changes into runs and
//! checks.

use std::path::PathBuf;

use apus_algorithms::Registry;
use apus_units::suggestion;

use super::assignment::{Assignment, ReasonRule, assign_all};
use super::check::{Check, refuse_unused, unused_variants};
use super::keys::{ROOT, RUN, check_keys};
use super::label::{LABEL_RULE, MAX_NAME, default_name, is_name};
use super::memory::MemoryLimit;
use super::overrides::{Override, apply_overrides};
use super::parts;
use super::quick::{self, QuickRun};
use super::read_check::read_checks;
use super::read_run::read_run;
use super::section::Section;
use super::setup::Setup;
use super::source::{FindTestbed, Place, Problem, Problems, ScenarioError, Source};
use super::tree::{self, Table, Value};
use super::variant::{Variant, read_variants};
use super::{format, one_line, runs_of, testbed};

/// A scenario, read and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// Statement that the scenario demonstrates.
    pub title: Option<String>,
    /// The publication that the scenario reproduces, and the place in it.
    pub source: Option<String>,
    /// Runs of the scenario, at least one.
    pub runs: Vec<Run>,
    /// The checks.
    pub checks: Vec<Check>,
    /// Numbers shown without a band.
    pub shown: Vec<Check>,
    /// Differences from the testbed and from the algorithm's defaults, with reasons.
    pub overrides: Vec<Override>,
    /// Differences from a full run, in sentences; empty unless the scenario was read for a quick run.
    pub quick: Vec<String>,
}

/// A run of a scenario.
#[derive(Clone, Debug)]
pub struct Run {
    /// The variant's name; `None` if the scenario has no variants.
    pub variant: Option<String>,
    /// The variant's value, in microseconds, Gb/s or bytes if it has a unit.
    pub value: Option<f64>,
    /// Settings of the run.
    pub setup: Setup,
}

/// Changes that the command line makes to a scenario.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Settings as `key=value` (`--set`).
    pub set: Vec<String>,
    /// Settings as `key=value` that are one point of a sweep (`--vary`), over all others of the command line.
    pub vary: Vec<String>,
    /// The seed (`--seed`).
    pub seed: Option<u64>,
    /// The only variant to run (`--variant`); checks are then left out.
    pub variant: Option<String>,
    /// Whether the scenario is read for a quick run (`--quick`): with the settings of `[quick]`, and without
    /// the checks and variants that have `quick = false`.
    pub quick: bool,
    /// The algorithms that a scenario may name; by default those of this project.
    pub registry: Registry,
    /// The memory that each run may take; `None`: no limit.
    pub memory: Option<MemoryLimit>,
    /// Settings of some runs that remove a mechanism, to find the checks that detect this.
    pub mutation: Option<Mutation>,
    /// Folder of the files that a trace with `stream` names, which are read during the run. `None`: their text
    /// is found like that of other files, and kept in memory.
    pub folder: Option<PathBuf>,
    /// Whether faults will be added later, so that settings for failed links need no fault yet.
    pub expects_faults: bool,
}

/// Settings of some runs, which take precedence over all others.
#[derive(Clone, Debug, Default)]
pub struct Mutation {
    /// Names of the variants, or their beginnings with a `*`. Empty: every run.
    pub variants: Vec<String>,
    /// Settings as `key=value`.
    pub set: Vec<String>,
}

impl Mutation {
    /// Returns `true` if the mutation changes the run of this variant.
    #[must_use]
    pub fn changes(&self, variant: Option<&str>) -> bool {
        let fits = |pattern: &String, name: &str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        self.variants.is_empty()
            || variant.is_some_and(|name| self.variants.iter().any(|pattern| fits(pattern, name)))
    }
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// All mistakes in the scenario, see [`ScenarioError`].
    pub fn read(
        source: &Source,
        find_testbed: FindTestbed<'_>,
        options: &Options,
    ) -> Result<Self, ScenarioError> {
        let mut problems = Problems::default();
        let place = problems.add_file(source);
        let mut own = tree::parse(source, place, &problems);
        let mut scenario = None;
        let mut viewed = false;
        if format::check(&own, &problems) {
            one_line::expand(&mut own, &problems);
            viewed = runs_of::take_over(&mut own, find_testbed, &mut problems);
        }
        let mut table = own.clone();
        // If the text is not TOML or has a newer format, the rest is not read.
        if problems.is_empty() {
            let testbed = testbed::merge(&mut table, find_testbed, &mut problems);
            let set = options.set.iter().map(|text| ("--set", text));
            let given = set.chain(options.vary.iter().map(|text| ("--vary", text)));
            let given: Vec<_> =
                given.filter_map(|(name, text)| read_option(name, text, &mut problems)).collect();
            let mutated = options.mutation.iter().flat_map(|mutation| &mutation.set);
            let mutated =
                mutated.filter_map(|text| read_option("--set", text, &mut problems)).collect();
            for seed in given.iter().filter(|set| set.key == "seed" && options.seed.is_some()) {
                problems.add(seed.place, "`seed` has no effect: --seed replaces it; remove one");
            }
            let rule = ReasonRule { testbed: testbed.as_ref() };
            let reader = Reader {
                own: &own,
                viewed,
                place,
                rule,
                options,
                given,
                mutated,
                problems: &problems,
                find_testbed,
            };
            scenario = reader.read(default_name(&source.name), table);
        }
        problems.into_result()?;
        scenario.ok_or_else(|| {
            let message = "this cannot be read, and the reader does not say why: a bug of ours";
            let source = source.name.clone();
            ScenarioError(vec![Problem { source, position: None, message: message.to_owned() }])
        })
    }
}

/// Reads `key=value` of an option of the command line.
fn read_option(option: &str, text: &str, problems: &mut Problems) -> Option<Assignment> {
    let place = problems.add_option(format!("{option} {text}"));
    let Some((key, value)) = text.split_once('=') else {
        problems.add(place, "it must be key=value, like `topology.rate=100Gbps`");
        return None;
    };
    let node = tree::parse_option(value.trim(), place, problems);
    Some(Assignment { key: key.trim().to_owned(), place, node })
}

struct Reader<'a> {
    /// The file's own settings, without the testbed's.
    own: &'a Table,
    /// Whether the runs belong to another scenario.
    viewed: bool,
    place: Place,
    rule: ReasonRule<'a>,
    options: &'a Options,
    given: Vec<Assignment>,
    /// Settings of the mutation.
    mutated: Vec<Assignment>,
    problems: &'a Problems,
    find_testbed: FindTestbed<'a>,
}

impl Reader<'_> {
    fn read(&self, default_name: String, mut table: Table) -> Option<Scenario> {
        let problems = self.problems;
        let root = Section::new(self.own, &ROOT, "", self.place, problems);
        check_keys(&root, &[&RUN, &ROOT], problems, self.own);
        let name = root.get("name").unwrap_or(default_name);
        let (title, source) = (root.get("title"), root.get::<String>("source"));
        let mut overrides = apply_overrides(&root, &self.rule, &mut table, problems);
        let variants = read_variants(&root, &self.rule, &mut overrides, problems);
        // A run's name joins the names of the scenario and the variant, and must be a valid name too.
        let longest = if variants.is_empty() { MAX_NAME } else { MAX_NAME / 2 - 1 };
        let must = format_args!("must be words joined by `/`, each {LABEL_RULE}; {longest} in all");
        root.check(is_name(&name) && name.len() <= longest, "name", must);
        let quick = quick::read(&root, &self.rule, &table, problems);
        let numbers = parts::names(&table);
        let (mut checks, mut shown) =
            read_checks(&root, &variants, &numbers, source.as_deref(), problems);
        let unused = unused_variants(&variants, checks.iter().chain(&shown));
        let mut variants = variants;
        if self.viewed {
            // Variants that no check uses here belong to other scenarios.
            let kept: Vec<usize> = (0..variants.len()).filter(|i| !unused.contains(i)).collect();
            checks.iter_mut().chain(&mut shown).for_each(|check| {
                check.keep_runs(&kept);
            });
            variants = kept.iter().map(|&index| variants[index].clone()).collect();
            overrides.clear();
        } else if !checks.is_empty() {
            refuse_unused(&variants, &unused, problems);
        }
        let mut quick_run = QuickRun::new(&quick, &variants, &root, problems);
        if self.options.quick {
            checks = quick_run.narrow(checks);
            shown = quick_run.narrow(shown);
        } else {
            quick_run = QuickRun::none(variants.len());
        }
        let quick = if self.options.quick { quick } else { Vec::new() };
        let runs = self.runs(&name, &table, &variants, (&quick, &quick_run.variants));
        let alone = self.options.variant.is_some();
        let unless_alone = |checks| if alone { Vec::new() } else { checks };
        Some(Scenario {
            name,
            title,
            source,
            runs: runs?,
            checks: unless_alone(checks),
            shown: unless_alone(shown),
            overrides,
            quick: quick_run.notes,
        })
    }

    fn runs(
        &self,
        name: &str,
        table: &Table,
        variants: &[Variant],
        (quick, of_quick): (&[Assignment], &[usize]),
    ) -> Option<Vec<Run>> {
        if variants.is_empty() {
            if let Some(wanted) = &self.options.variant {
                let message = format!("unknown variant `{wanted}`; this scenario has none");
                self.problems.add(self.place, message);
            }
            let setup = self.setup(name.to_owned(), None, table.clone(), &[], quick)?;
            return Some(vec![Run { variant: None, value: None, setup }]);
        }
        let chosen: Vec<&Variant> = match &self.options.variant {
            None => of_quick.iter().map(|&index| &variants[index]).collect(),
            Some(wanted) => variants.iter().filter(|variant| variant.name == *wanted).collect(),
        };
        if let (Some(wanted), true) = (&self.options.variant, chosen.is_empty()) {
            let names = variants.iter().map(|variant| variant.name.as_str());
            let hint = suggestion(wanted, names);
            self.problems.add(self.place, format!("unknown variant `{wanted}`{hint}"));
        }
        let runs: Vec<Option<Run>> = chosen
            .iter()
            .map(|variant| {
                let own = if chosen.len() > 1 { variant.settings.as_slice() } else { &[] };
                let own_key = |given: &&Assignment| own.iter().any(|s| s.key == given.key);
                for setting in quick.iter().filter(own_key) {
                    let message = format!(
                        "the variants differ in `{}`; choose with `quick` which of them run",
                        setting.key
                    );
                    self.problems.add(setting.place, message);
                }
                for given in self.given.iter().filter(own_key) {
                    let message = format!(
                        "the variants differ in `{}`; choose one with --variant",
                        given.key
                    );
                    self.problems.add(given.place, message);
                }
                let name = format!("{name}/{}", variant.name);
                let own = Some(variant.name.as_str());
                let setup = self.setup(name, own, table.clone(), &variant.settings, quick)?;
                let value = variant.value.map(|(value, _)| value);
                Some(Run { variant: Some(variant.name.clone()), value, setup })
            })
            .collect();
        let runs: Vec<Run> = runs.into_iter().collect::<Option<_>>()?;
        match &self.options.mutation {
            // Without its mechanism a run may equal another run.
            Some(mutation) => {
                let changed = chosen.iter().any(|v| mutation.changes(Some(v.name.as_str())));
                if let (false, Some(first)) = (changed, self.mutated.first()) {
                    self.problems.add(first.place, "the mutation changes none of the variants");
                }
            }
            None => self.check_different(&runs, &chosen),
        }
        Some(runs)
    }

    fn setup(
        &self,
        name: String,
        variant: Option<&str>,
        mut table: Table,
        settings: &[Assignment],
        quick: &[Assignment],
    ) -> Option<Setup> {
        for assignments in [settings, quick, &self.given] {
            assign_all(&mut table, assignments, self.problems);
        }
        if self.options.mutation.as_ref().is_some_and(|mutation| mutation.changes(variant)) {
            assign_all(&mut table, &self.mutated, self.problems);
        }
        table.files(&mut |name, of| {
            let streamed = of.get("stream").is_some_and(|node| node.value.same(&Value::Flag(true)));
            if !streamed || self.options.folder.is_none() {
                self.problems.add_data(name, self.find_testbed);
            }
        });
        let setup = read_run(name, &table, self.place, self.problems, self.options)?;
        Some(match self.options.seed {
            Some(seed) => setup.with_seed(seed),
            None => setup,
        })
    }

    /// Reports two variants with equal runs: one of them changes no setting.
    fn check_different(&self, runs: &[Run], variants: &[&Variant]) {
        let anonymous: Vec<String> = runs
            .iter()
            .map(|run| Setup { name: String::new(), ..run.setup.clone() }.to_toml())
            .collect();
        for (index, text) in anonymous.iter().enumerate() {
            if let Some(first) = anonymous[..index].iter().position(|other| other == text) {
                let (a, b) = (&variants[first].name, &variants[index].name);
                let message = format!("the variants `{a}` and `{b}` are the same run; remove one");
                self.problems.add(variants[index].place, message);
            }
        }
    }
}
