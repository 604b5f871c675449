//! Scenarios: one TOML file says everything about a run or an experiment.
//!
//! ```toml
//! duration = "20ms"
//! topology = { kind = "star", hosts = 11, rate = "100Gbps", delay = "1us", buffer = "4MB" }
//! algorithm = { name = "swift", base_target = "25us" }
//! [[workload]]
//! kind = "incast"
//! size = "64kB"
//! ```
//!
//! Every quantity carries its unit. Unknown keys, missing or wrong units, impossible values,
//! contradictions and settings without effect are errors that name file, line and remedy; as many
//! as can be found are reported at once.
//!
//! # The run
//! * `duration`, `warmup` (0s), `seed` (1), and `name` (the file's), `title`, `source`: what it
//!   shows, and the publication that says so.
//! * `[topology]`: `kind` with its counts, see [`TOPOLOGIES`]; of the hosts' links `rate`, `delay`
//!   (one way) and `buffer` (per switch port, or "unlimited"). The other links are alike but for what
//!   a table of their name says: `middle = { rate = "400Gbps" }`. `shared = { size, alpha }` in place
//!   of `buffer` is memory of the switch with dynamic thresholds. `pipeline_latency` (0s),
//!   `ecn = { threshold, at }`: packets are marked by what is in the port at their "enqueue" (unless
//!   said otherwise) or "dequeue".
//!   In one line: `topology = "fat-tree k=8 100Gbps 1us"`, kind first, then rate, delay, buffer
//!   ("4MB" unless given) and `key=value` in any order. `kind = "links"` has a table
//!   `[[topology.link]]` per link with `a`, `b` (hosts are h0, h1 and so on, every other name is a
//!   switch) and what differs from the topology's `rate`, `delay`, `buffer`; or a `file`: a .topo of
//!   htsim or a topology.txt of the HPCC simulator.
//! * `[[topology.class]]`, two or more: the traffic classes of every switch port: `name`, `priority`
//!   (0, the first to be served), `weight` (1) among those of its priority, `limit` (bytes in a port),
//!   `ecn`. `topology.ack_class` is the class of acknowledgements and read requests (that of their
//!   flow). The ports of a class take part in the algorithm of the workloads that travel in it, if that
//!   has a switch half (`bolt`, `hpcc`), but for those of the switches named in
//!   `topology.plain = ["left"]`. Signals of switches travel as acknowledgements do, unless
//!   `topology.signals = "instant"`: they are with their source at once and take no bandwidth.
//! * `topology.pfc = { pause, resume, headroom, classes }`: a switch that holds `pause` bytes of what
//!   came over a link in a class pauses that class of the port at the link's other end until it holds
//!   `resume`; what comes beyond `pause` and `headroom` is dropped. All classes unless some are named.
//! * `[packets]`: `payload` (4096B), `header` (64B), `control` (84B).
//! * `[host]`: `model` ("ideal", "t1", "t1-quiet", "t2") and what differs from it: `jitter`, `clock_offset`,
//!   `clock_drift` ("40ppm"), `clock_reading_interval`, `nic` ("pull": the NIC takes the flows' packets in
//!   turn while less than `nic_backlog` waits in it; "queue": flows hand over what their windows let go,
//!   and the NIC's port takes part in the algorithm as those of switches do), `receive_queue`, and in
//!   `[host.engine]` the fields of [`EngineCosts`](crate::host_model::EngineCosts), or a `scale` by
//!   which the model's costs are multiplied.
//! * `[transport]`: `reorder_threshold`, `recovery` ("selective", or "go-back-n": packets behind a gap
//!   are dropped, and all from the gap on is sent again), `max_ops`, `timer_granularity`
//!   ("131072ps"; "8192ps" for algorithms that lean on short gaps, such as credits),
//!   `local_rx_delay` (what t6 - t5 counts as: "endpoint", "fabric" or "ignored").
//! * `[algorithm]`: `name`, `profile` and parameters. Several are `[algorithm.LABEL]`, which workloads
//!   name.
//! * `[[workload]]`: `kind` with its hosts, see [`WORKLOADS`]; `size`, `op` ("write", "read",
//!   "message"), `outstanding` (1) ops per flow, `flows_per_pair` (1), `start` (0s), `start_spread`
//!   (0s), `stop`, `every` (the same again so long after, and again, each time until its `stop`),
//!   `algorithm`, `class`. Hosts are a number, the first ones, or a list.
//!   With `op = "read"` and `service = { time = "100us", parallel = 50, noise = 0 }` reads wait for a
//!   device of the host that answers them, one per host and workload: `parallel` at a time, the others
//!   first come, first served; `noise` (0) is the share of the time that is exponentially distributed.
//!   Latency counts it, slowdown's ideal does not.
//!   A `[[workload.flow]]` has `from`, `to`, its own `start` and `stop`, and `reroute = { at, through =
//!   ["leaf 0", "spine 1", "leaf 2"] }`: from then on it takes the path through these switches, and
//!   its acknowledgements the same back.
//!   Of the other kinds:
//!   * "poisson": `load`, payload bytes offered per time over the rate of a link: each sender's, or the
//!     receiver's, all senders together, if there is a `receiver` (with its `senders`; otherwise
//!     `hosts` send to each other at random, with `to = "other-racks"` never within a rack). `size`, or `sizes`: a name of
//!     [`BUILT_IN`](crate::sizes::BUILT_IN), or `{ file = "mine.txt" }`. `flows = "per-op"`, or
//!     "per-pair" with `flows_per_pair` (1), which take turns. An op that its flow has no room for
//!     waits; its latency counts from when it came.
//!   * "partition-aggregate": `master`, `workers`, `request`, `answer`: sizes of a message to each
//!     worker and of what it sends back; the next round begins when all have answered. An op is an
//!     answer, from the submission of its request to its last byte.
//!   * "trace": the messages of a `file` (CSV with the header `start_us,from,to,bytes`, .cm of htsim,
//!     flow.txt of the HPCC simulator), each an op of a flow of its own. Those that start after the
//!     end of the run are left out.
//! * `[[fault]]`: `link` ("leaf 0 -> spine 1", or with `<->` both directions), `at` (0s), `until`,
//!   `kind`: "down" (what waits and what comes is lost; paths stay as they are), "loss", "corrupt" or
//!   "reorder" (held back by `delay`, so that others overtake),
//!   each packet with `probability`, from a stream of random numbers of the fault's own.
//! * `[measure]`: `interval` and `fair_share_after`: compare each connection's rate per interval with
//!   its max-min share, from that long after each start or stop of a connection. `sizes =
//!   ["0B..10kB", "10kB.."]`: ranges of op sizes (the end excluded) whose latency and slowdown each
//!   named workload reports apart.
//! * `[measure.ports]`: groups of switch ports by name, `edge = ["leaf * -> host *"]`; `*` stands for
//!   any text in the names of ports. Their traffic classes are measured, in windows of
//!   `measure.window` (1ms), and sorted by the utilisation in the window, in buckets of 10 %:
//!   `by_port` by that of the port, `by_class` by the class's own share of the link.
//!   The group as a whole: throughput, utilisation, loss, and its queues, sampled every
//!   `queue_interval` (10us). `[[measure.compare]]`: `name`, `ports`, `class`, `with`: the loss of one class over that of
//!   another, the largest ratio in the buckets in which `with` loses at least `floor` (1e-4); `by`
//!   says what sorts windows into buckets: "port", "class", or "nothing" for one bucket of all.
//! * `[[measure.settle]]`: `name`, `of` (`{ ports = "GROUP" }`, `{ workload = "NAME" }` or
//!   `{ flow = 0 }`), `quantity` ("throughput", "queue", a time, or "queue_bytes" of ports: all of a
//!   group's ports together, and the one with most queued; "goodput" or "share" of all goodput of
//!   workloads and flows), `interval` over which it is averaged, `after` (0s), `above` or `below`, and
//!   `hold`: when the quantity is there to stay for that long, from `after` on. The whole run counts.
//!   `[[measure.span]]`: `name`, `of`, `quantity`, `interval`, `from` (0s), `to` (the end): what it is
//!   between two times.
//! * `name` in a `[[workload]]`: it is measured by itself, see the metrics `workload.<name>`; several
//!   of one name are measured together. With a
//!   `deadline`, the share of its ops that took longer (`late`).
//!
//! * `[record]`: what is kept of a run whose results are written to a directory: `interval` between
//!   samples (a 200th of the run), `flows` (64) and `ports` (32) whose samples are kept, `ops`
//!   (1000000) at most, `nics` (false): also sample the ports of hosts' NICs.
//!
//! # The experiment
//! * `[[variant]]`: `name`, `set = { "algorithm.base_target" = "50us" }`, `value`; or one `[sweep]`
//!   with `key` and `values`. Into lists: `workload.0.size`; without the number if there is one.
//! * `[[check]]`: `name`, `metric` (of [`METRICS`] and [`SCOPED`]), `variant` (a name, a list, "all"),
//!   `reduce` ("min", "max", "mean", "median", or the "exponent" of the power law through the variants'
//!   values; without it each variant is checked), `relative_to` ("max" of the experiment, "value" of
//!   the variant, `{ variant, metric }`, or with a `metric` alone that of the same run), `unit` ("%" for fractions), `paper`, `low`, `high`, `source`,
//!   `why` it may differ. `[[show]]`: the same without a band.
//!   `increasing = ["a", "b", "c"]` in place of `variant` and `reduce`: the metric grows in this order
//!   of variants; its value is the least ratio of one to the one before, and `low` is 1 unless given.
//! * `differs` in a check: it cannot be met honestly; what was found, and what is believed to be in
//!   the way. It is printed as "differs" and counted apart, and fails only if all its medians lie in
//!   the band after all.
//! * `[quick]` with `set = { duration = "20ms" }`: what `apus reproduce --quick` and `apus run --quick` set besides.
//!   `quick = false` in a check, show or variant leaves it out there; `[sweep] quick = ["25us"]`
//!   lists the values that are left. Quick runs say what they leave out.
//! * `runs_of = "swift/cluster"` in place of all of that: only checks, on the runs of another
//!   scenario: of its variants those that the checks look at. `apus reproduce` runs equal runs once.
//! * `testbed = "t1"`: another file with settings that several scenarios share. What differs from it
//!   or from the algorithm's and host's defaults stands in `[[override]]` (`set`, `reason`) or in a
//!   variant or sweep with its `reason`.

mod algorithm;
mod check;
mod classes;
mod connections;
mod ecn;
mod effective;
mod fault;
mod graph;
mod halves;
mod host;
mod hosts;
mod measure;
mod measure_ports;
mod metric;
mod one_line;
mod pfc;
mod poisson;
mod quick;
mod record;
mod repeat;
mod reroute;
mod rounds;
mod runs_of;
mod section;
mod series;
mod service;
mod setup;
mod sizes_of;
mod source;
mod topology;
mod trace;
mod tree;
mod under;
mod variant;
mod workload;

pub use check::{Check, Reduce, Relative};
pub(crate) use metric::fits;
pub use metric::{METRICS, SCOPED, STATS, pattern_of, unit_of};
pub use setup::Setup;
pub use source::{Problem, ScenarioError, Source};
pub use topology::TOPOLOGIES;
pub use variant::Override;
pub use workload::WORKLOADS;

use quick::QuickRun;
use section::Section;
use source::{Place, Problems};
use tree::{Table, Value};
use variant::{Assignment, ReasonRule, Variant};

/// The keys at the root of a scenario besides those of its run.
const OTHER_KEYS: &[&str] = &[
    "name", "title", "source", "testbed", "override", "variant", "sweep", "quick", "check", "show",
];

/// A scenario, read and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub title: Option<String>,
    /// The publication that it reproduces, and where.
    pub source: Option<String>,
    /// Its runs, at least one.
    pub runs: Vec<Run>,
    /// What it must show.
    pub checks: Vec<Check>,
    /// What it shows besides, without a band.
    pub shown: Vec<Check>,
    /// What differs from the testbed and the algorithm's defaults, with reasons.
    pub overrides: Vec<Override>,
    /// How it differs from a full run, in sentences, if it was read for a quick one.
    pub quick: Vec<String>,
}

/// One run of a scenario.
#[derive(Clone, Debug)]
pub struct Run {
    /// The variant's name; `None` if the scenario has no variants.
    pub variant: Option<String>,
    /// The variant's value, in microseconds, Gb/s or bytes if it has a unit.
    pub value: Option<f64>,
    /// Its settings.
    pub setup: Setup,
}

/// What the command line changes about a scenario.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Settings as `key=value` (`--set`).
    pub set: Vec<String>,
    /// The seed (`--seed`).
    pub seed: Option<u64>,
    /// The only variant to run (`--variant`); checks are left out then.
    pub variant: Option<String>,
    /// Read it for a quick run (`--quick`): with the settings of `[quick]`, and without
    /// the checks and variants that say `quick = false`.
    pub quick: bool,
}

/// Finds a testbed by name, or reads a file that a scenario names (its name has a dot or a slash; it
/// is relative to the scenario): what it says, or what is wrong with the name and what would be right.
pub type FindTestbed<'a> = &'a dyn Fn(&str) -> Result<Source, String>;

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// Everything that is wrong with it, see [`ScenarioError`].
    pub fn read(
        source: &Source,
        find_testbed: FindTestbed<'_>,
        options: &Options,
    ) -> Result<Self, ScenarioError> {
        let mut problems = Problems::default();
        let place = problems.add_file(source);
        let mut own = tree::parse(source, place, &problems);
        one_line::expand(&mut own, &problems);
        let mut scenario = None;
        let viewed = runs_of::take_over(&mut own, find_testbed, &mut problems);
        let mut table = own.clone();
        // What is no TOML is not worth reading on.
        if problems.is_empty() {
            let testbed = merge_testbed(&mut table, find_testbed, &mut problems);
            let given: Vec<_> =
                options.set.iter().filter_map(|text| read_option(text, &mut problems)).collect();
            let rule = ReasonRule { testbed: testbed.as_ref() };
            let reader = Reader {
                own: &own,
                viewed,
                place,
                rule,
                options,
                given,
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

/// What labels and names of variants must be: they become parts of file names and of keys.
const LABEL_RULE: &str = "1 to 64 letters, digits, `-`, `_` or `.`, and not begin with `.`";

/// What names of parts of a run must be: a metric's name has its parts between dots.
const PART_RULE: &str = "1 to 64 letters, digits, `-` or `_`";

fn is_part_name(text: &str) -> bool {
    is_label(text) && !text.contains('.')
}

fn is_label(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=64).contains(&text.len()) && !text.starts_with('.') && text.chars().all(allowed)
}

/// A label made from any text.
fn label_from(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let label: String = text.trim().chars().map(safe).take(64).collect();
    if is_label(&label) {
        label
    } else {
        format!("x{}", label.chars().take(63).collect::<String>())
    }
}

/// The name of the file without its ending.
fn default_name(file: &str) -> String {
    let base = file.rsplit(['/', '\\']).next().unwrap_or(file);
    label_from(base.strip_suffix(".toml").unwrap_or(base))
}

/// Longest name.
const MAX_NAME: usize = 130;

fn is_name(name: &str) -> bool {
    name.split('/').all(is_label)
}

/// Reads the testbed that `table` names and puts its settings below the table's own.
fn merge_testbed(
    table: &mut Table,
    find_testbed: FindTestbed<'_>,
    problems: &mut Problems,
) -> Option<Table> {
    let node = table.get("testbed")?.clone();
    let Value::Text(name) = &node.value else {
        let message =
            format!("`testbed` must be a name like \"t1\", not {}", node.value.describe());
        problems.add(node.place, message);
        return None;
    };
    let source = match find_testbed(name) {
        Ok(source) => source,
        Err(message) => {
            problems.add(node.place, message);
            return None;
        }
    };
    let start = problems.add_file(&source);
    let mut testbed = tree::parse(&source, start, problems);
    one_line::expand(&mut testbed, problems);
    let root = Section::new(&testbed, "", start, problems);
    setup::check_keys(&root, &[], problems, &testbed);
    let rule = ReasonRule { testbed: Some(&testbed) };
    for (key, place, _) in table.leaves() {
        if rule.applies(&key) {
            let instead = "write it as `[[override]]` with `set` and `reason`";
            let message = match testbed.at_path(&key) {
                Some(theirs) => {
                    let at = problems.locate(theirs.place);
                    format!("`{key}` is set by the testbed `{name}` ({at}); to change it {instead}")
                }
                None => format!("scenarios of a testbed share `{key}`; to change it {instead}"),
            };
            problems.add(place, message);
        }
    }
    table.merge(testbed.clone(), "", &mut |key, place, _| {
        problems.add(place, format!("`{key}` does not fit what the testbed `{name}` sets"));
    });
    Some(testbed)
}

/// Reads `key=value` of the command line.
fn read_option(text: &str, problems: &mut Problems) -> Option<Assignment> {
    let place = problems.add_option(format!("--set {text}"));
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
    /// Whether the runs are those of another scenario.
    viewed: bool,
    place: Place,
    rule: ReasonRule<'a>,
    options: &'a Options,
    given: Vec<Assignment>,
    problems: &'a Problems,
    find_testbed: FindTestbed<'a>,
}

impl Reader<'_> {
    fn read(&self, default_name: String, mut table: Table) -> Option<Scenario> {
        let problems = self.problems;
        let root = Section::new(self.own, "", self.place, problems);
        setup::check_keys(&root, OTHER_KEYS, problems, self.own);
        let name = root.get("name").unwrap_or(default_name);
        let (title, source) = (root.get("title"), root.get::<String>("source"));
        let mut overrides = variant::apply_overrides(&root, &self.rule, &mut table, problems);
        let variants = variant::read_variants(&root, &self.rule, &mut overrides, problems);
        // A run's name is the scenario's and the variant's, and a name again.
        let longest = if variants.is_empty() { MAX_NAME } else { MAX_NAME / 2 - 1 };
        let must = format_args!("must be words joined by `/`, each {LABEL_RULE}; {longest} in all");
        root.check(is_name(&name) && name.len() <= longest, "name", must);
        let quick = quick::read(&root, &self.rule, &table, problems);
        let numbers = measure::names(&table);
        let (mut checks, mut shown) =
            check::read_checks(&root, &variants, &numbers, source.as_deref(), problems);
        let unused = check::unused(&variants, checks.iter().chain(&shown));
        let mut variants = variants;
        if self.viewed {
            // Those that nobody looks at here belong to others.
            let kept: Vec<usize> = (0..variants.len()).filter(|i| !unused.contains(i)).collect();
            checks.iter_mut().chain(&mut shown).for_each(|check| {
                check.keep_runs(&kept);
            });
            variants = kept.iter().map(|&index| variants[index].clone()).collect();
            overrides.clear();
        } else if !checks.is_empty() {
            check::refuse_unused(&variants, &unused, problems);
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
                let message = format!("there is no variant `{wanted}`; this scenario has none");
                self.problems.add(self.place, message);
            }
            let setup = self.setup(name.to_owned(), table.clone(), &[], quick)?;
            return Some(vec![Run { variant: None, value: None, setup }]);
        }
        let chosen: Vec<&Variant> = match &self.options.variant {
            None => of_quick.iter().map(|&index| &variants[index]).collect(),
            Some(wanted) => variants.iter().filter(|variant| variant.name == *wanted).collect(),
        };
        if let (Some(wanted), true) = (&self.options.variant, chosen.is_empty()) {
            let names = variants.iter().map(|variant| variant.name.as_str());
            let hint = apus_cc::suggestion(wanted, names);
            self.problems.add(self.place, format!("there is no variant `{wanted}`{hint}"));
        }
        let runs: Vec<Option<Run>> = chosen
            .iter()
            .map(|variant| {
                let own = if chosen.len() > 1 { variant.settings.as_slice() } else { &[] };
                let own_key = |given: &&Assignment| own.iter().any(|s| s.key == given.key);
                for setting in quick.iter().filter(own_key) {
                    let message = format!(
                        "`{}` is what the variants differ in; choose with `quick` which of them run",
                        setting.key
                    );
                    self.problems.add(setting.place, message);
                }
                for given in self.given.iter().filter(own_key) {
                    let message = format!(
                        "`{}` is what the variants differ in; choose one with --variant",
                        given.key
                    );
                    self.problems.add(given.place, message);
                }
                let name = format!("{name}/{}", variant.name);
                let setup = self.setup(name, table.clone(), &variant.settings, quick)?;
                let value = variant.value.map(|(value, _)| value);
                Some(Run { variant: Some(variant.name.clone()), value, setup })
            })
            .collect();
        let runs: Vec<Run> = runs.into_iter().collect::<Option<_>>()?;
        self.check_different(&runs, &chosen);
        Some(runs)
    }

    fn setup(
        &self,
        name: String,
        mut table: Table,
        settings: &[Assignment],
        quick: &[Assignment],
    ) -> Option<Setup> {
        for assignment in settings.iter().chain(quick).chain(&self.given) {
            variant::assign(&mut table, assignment, self.problems);
            one_line::expand(&mut table, self.problems);
        }
        table.files(&mut |name| self.problems.add_data(name, self.find_testbed));
        let setup = Setup::read(name, &table, self.place, self.problems)?;
        Some(match self.options.seed {
            Some(seed) => setup.with_seed(seed),
            None => setup,
        })
    }

    /// Two variants that are the same run are a mistake: one of them sets nothing new.
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
