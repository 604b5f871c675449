//! Scenarios: one TOML file describes a run or an experiment.
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
//! contradictions and settings without effect are errors that name file, line and remedy. The reader
//! reports as many of them as possible at once. Values in parentheses are defaults.
//!
//! # The run
//! * Top level: `duration`, `warmup` (0s), `seed` (1), `name` (the name of the file), `title`, `source`
//!   (the publication that the scenario reproduces).
//!   `drain` (`duration` minus `warmup`): maximum time after `duration`, under the same load, in which
//!   ops of the measured phase may still end. `ends_with_ops` (false; traces only): the measured phase
//!   ends with the last op if all ops end before `duration`.
//! * `[topology]`: `kind` with its counts, see [`TOPOLOGIES`]; `rate`, `delay` (one way) and `buffer`
//!   (per switch port, or "unlimited") of the links of hosts. Other links have the same values, except
//!   the values in a table of their name: `middle = { rate = "400Gbps" }`.
//!   `shared = { size, alpha }` instead of `buffer`: switch memory with dynamic thresholds.
//!   `pipeline_latency` (0s). `ecn = { threshold, at }`: switches mark packets by the queue length at
//!   "enqueue" (default) or "dequeue".
//!   One line is an alternative to the table: `topology = "fat-tree k=8 100Gbps 1us"` has the kind
//!   first, then rate, delay, buffer ("4MB") and `key=value` in any order.
//!   `kind = "links"` has one table `[[topology.link]]` per link with `a`, `b` (h0, h1 and so on are
//!   hosts, all other names are switches) and optionally `rate`, `delay`, `buffer`; or it has a `file`:
//!   a .topo of htsim or a topology.txt of the HPCC simulator.
//! * `[[topology.class]]`, at least two: the traffic classes of every switch port. `name`, `priority`
//!   (0, the highest), `weight` (1) among classes of the same priority, `limit` (bytes per port),
//!   `ecn`. `topology.ack_class`: class of acknowledgements and read requests (that of their flow).
//!   The ports of a class take part in the algorithm of its workloads if the algorithm has a switch
//!   half (`bolt`, `hpcc`), except on the switches in `topology.plain = ["left"]`.
//!   Signals of switches use the class of acknowledgements. With `topology.signals = "instant"` they
//!   reach their source without delay and use no bandwidth.
//! * `topology.pfc = { pause, resume, headroom, classes }`: a switch that holds `pause` bytes from one
//!   link in one class pauses that class at the other end of the link until it holds `resume` bytes. It
//!   drops packets beyond `pause` plus `headroom`. `classes` (all).
//! * `[packets]`: `payload` (4096B), `header` (64B), `control` (84B).
//! * `[host]`: `model` ("ideal", "t1", "t1-quiet", "t2"). These keys override values of the model:
//!   `jitter`, `clock_offset`, `clock_drift` ("40ppm"), `clock_reading_interval`, `receive_queue`, and
//!   `nic`. With "pull" the NIC takes packets from the flows in turn while it holds less than
//!   `nic_backlog`. With "queue" flows send as much as their windows allow into the NIC's port, which
//!   takes part in the algorithm like the port of a switch.
//!   `[host.engine]` has the fields of [`EngineCosts`](apus_sim::host_model::EngineCosts), or a `scale`
//!   that multiplies the costs of the model.
//! * `[transport]`: `reorder_threshold`, `recovery` ("selective"; or "go-back-n": the receiver drops
//!   packets after a gap, and the sender retransmits everything from the gap), `max_ops`,
//!   `timer_granularity` ("131072ps"; "8192ps" for algorithms with short pacing intervals, such as
//!   credits), `local_rx_delay` (t6 - t5 counts as "endpoint", "fabric" or "ignored").
//! * `[algorithm]`: `name`, `profile` and parameters. Several algorithms are `[algorithm.LABEL]`; each
//!   workload then names its label.
//! * `[[workload]]`: `kind` with its hosts, see [`WORKLOADS`]; `size`, `op` ("write", "read",
//!   "message"), `outstanding` (1) ops per flow, `flows_per_pair` (1), `start` (0s), `start_spread`
//!   (0s), `stop`, `every` (interval at which the workload starts again, each time until its `stop`),
//!   `algorithm`, `class`. Hosts are a number (the first hosts) or a list.
//!   With `op = "read"` and `service = { time = "100us", parallel = 50, noise = 0 }` a storage device
//!   of the answering host serves reads, one device per host and workload: `parallel` at a time, the
//!   others queued in order of arrival. `noise` (0) is the exponentially distributed fraction of the
//!   time. Latency includes the service; the ideal completion time of slowdown does not.
//!   A `[[workload.flow]]` has `from`, `to`, its own `start` and `stop`, and `reroute = { at, through =
//!   ["leaf 0", "spine 1", "leaf 2"] }`: at this time its packets change to the path through these
//!   switches, and its acknowledgements to the reverse path.
//!   * "poisson": `load`, offered payload rate over the link rate of each sender. With a `receiver`
//!     (and its `senders`) it is the rate of all senders over the receiver's link rate. Otherwise
//!     `hosts` send to each other at random; with `to = "other-racks"` never within a rack. `size`, or
//!     `sizes`: a name of [`BUILT_IN`](apus_sim::sizes::BUILT_IN), or `{ file = "mine.txt" }`.
//!     `flows = "per-op"`, or "per-pair" with `flows_per_pair` (1), which are used in turn. An op that
//!     its flow cannot accept yet is queued; its latency counts from its arrival.
//!   * "partition-aggregate": `master`, `workers`, `request` and `answer` (sizes of the message to each
//!     worker and of its answer). The next round begins when all workers have answered. An op is an
//!     answer, from the submission of its request to its last byte.
//!   * "trace": the messages of a `file` (CSV with the header `start_us,from,to,bytes`, .cm of htsim,
//!     flow.txt of the HPCC simulator), each an op of a separate flow. With `flows_per_pair`, the ops
//!     from one host to another share at most that many flows: in the order of their times they take
//!     the flows in turn. An op that its flow cannot accept yet is queued; its latency counts from its
//!     arrival. Messages that start after the end of the run are left out. Without a `warmup`, the
//!     measured phase of a run of traces alone starts with its first message.
//! * `[[fault]]`: `link` ("leaf 0 -> spine 1", or with `<->` both directions), `at` (0s), `until` (end
//!   of the run; may be in the drain), `kind`: "down" (queued and arriving packets are dropped; routes
//!   do not change), "loss", "corrupt" or "reorder" (packets are delayed by `delay`, so that others
//!   overtake them). The last three affect each packet with `probability`, from a separate random
//!   number stream per fault. `*` in a link stands for any text in the name of a node; the fault then
//!   affects every matching link. Of parallel links with one name it affects the first.
//! * `[measure]`: `interval` and `fair_share_after`: compares the rate of each connection per interval
//!   with its max-min fair share, starting this long after each start or stop of a connection.
//!   `sizes = ["0B..10kB", "10kB.."]`: ranges of op sizes (end excluded) for which each named workload
//!   reports latency and slowdown separately.
//! * `[measure.ports]`: groups of switch ports by name, `edge = ["leaf * -> host *"]`; `*` stands for
//!   any text in the names of ports. Metrics of a group: throughput, utilisation, loss, and queues,
//!   sampled every `queue_interval` (10us). Its traffic classes are measured in time windows of
//!   `measure.window` (1ms), which are sorted into buckets of 10 % utilisation: `by_port` by that of
//!   the port, `by_class` by the share of the class in the link.
//!   `[[measure.compare]]`: `name`, `ports`, `class`, `with`: the loss of one class over that of
//!   another, the maximum over the buckets in which `with` loses at least `floor` (1e-4). `by` is the
//!   bucket key: "port", "class", or "nothing" for a single bucket.
//! * `[[measure.settle]]`: the first time from which a quantity stays above or below a threshold for
//!   `hold`. `name`, `of` (`{ ports = "GROUP" }`, `{ workload = "NAME" }` or `{ flow = 0 }`),
//!   `quantity` ("throughput" of all ports of a group; "queue", a time, or "queue_bytes" of the port
//!   with the longest queue; "goodput", or "share" of all goodput, of workloads and flows), `interval`
//!   over which the quantity is averaged, `after` (0s), `above` or `below`. The whole run counts.
//! * `[[measure.span]]`: the quantity between two times. `name`, `of`, `quantity`, `interval`, `from`
//!   (0s), `to` (the end). `after`, `from` and `to` can also be "first end of NAME" or "last end of
//!   NAME": the time at which the sender learns that the first or last op of a workload has ended,
//!   minus `lead` (0s). Whole intervals from this time count.
//! * `name` in a `[[workload]]`: measures the workload separately, see the metrics `workload.<name>`.
//!   Workloads of the same name are measured together. With a `deadline`, `late` is the fraction of its
//!   ops that took longer.
//! * `[record]`: limits of recorded data of a run with an output directory: `interval` between samples
//!   (1/200 of the run), `flows` (64) and `ports` (32) with samples, `ops` (1000000), `nics` (false):
//!   also sample the ports of NICs.
//!
//! # The experiment
//! * `[[variant]]`: `name`, `set = { "algorithm.base_target" = "50us" }`, `value`; or one `[sweep]`
//!   with `key` and `values`. Keys of lists: `workload.0.size`; without the number if there is one
//!   entry.
//! * `[[check]]`: `name`, `metric` (of [`METRICS`](apus_sim::columns::METRICS) and
//!   [`SCOPED`](apus_sim::columns::SCOPED)), `variant` (a name, a list, "all"), `reduce` ("min", "max",
//!   "mean", "median", or the "exponent" of the power law through the values of the variants; without
//!   it each variant is checked), `relative_to` ("max" of the experiment, "value" of the variant,
//!   `{ variant, metric }` with one variant for all or a list of one for each, or only a `metric` of the
//!   same run), `unit` ("%" for fractions), `paper` (the paper's value), `low`, `high`, `source`, `why`
//!   (reason for possible differences). `[[show]]`: the same without a band.
//!   `increasing = ["a", "b", "c"]` instead of `variant` and `reduce`: the metric grows in this order
//!   of variants. Its value is the smallest ratio of consecutive variants, and `low` is 1 by default.
//! * `differs` in a check: the check cannot be met without bending the model; the text gives the
//!   measured value and the likely cause. The check is reported as "differs" and counted separately. It
//!   fails only if all its medians are within the band.
//! * `[quick]` with `set = { duration = "20ms" }`: additional settings of `apus reproduce --quick` and
//!   `apus run --quick`. `quick = false` in a check, show or variant omits it there;
//!   `[sweep] quick = ["25us"]` lists the remaining values. Quick runs report omitted parts.
//! * `runs_of = "swift/cluster"` replaces all of the above: the scenario has only checks, on the runs
//!   of another scenario, of the variants that the checks use. `apus reproduce` executes identical runs
//!   once.
//! * `testbed = "t1"`: another file with settings that several scenarios share. Deviations from it, or
//!   from defaults of the algorithm or host, are in `[[override]]` (`set`, `reason`) or in a variant or
//!   sweep with a `reason`.

mod algorithm;
mod assignment;
mod check;
mod classes;
mod closed;
mod connections;
mod contradictions;
mod ecn;
mod effective;
pub mod experiment;
mod fault;
mod frame;
mod graph;
mod halves;
mod host;
mod hosts;
pub mod import;
mod keys;
mod label;
mod links;
mod measure;
mod measure_ports;
mod memory;
mod moment;
mod one_line;
mod overrides;
mod parts;
mod pattern;
mod pfc;
mod poisson;
mod quick;
mod read;
mod read_check;
mod read_run;
mod record;
mod repeat;
pub mod replay;
mod reroute;
mod rounds;
mod runs_of;
mod section;
mod series;
mod service;
mod setup;
mod shape;
mod sizes_of;
mod source;
mod testbed;
mod to_plan;
mod topology;
mod trace;
mod tree;
mod under;
mod variant;
mod workload;

pub use check::{Check, Reduce, Relative};
pub use memory::MemoryLimit;
pub use overrides::Override;
pub use read::{Options, Run, Scenario};
pub use setup::Setup;
pub use shape::TOPOLOGIES;
pub use source::{FindTestbed, Problem, ScenarioError, Source};
pub use under::{MarkingRule, Under};
pub use workload::WORKLOADS;
