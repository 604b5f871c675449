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
//! * `duration`, `warmup` (0s), `drain` (`duration` less `warmup`: how much longer the run may go on,
//!   under the same load, until the ops submitted after the warm-up have ended), `ends_with_ops` (false;
//!   for traces alone: the measured phase ends with the last op if all ops end before `duration`), `seed`
//!   (1), and `name` (the file's), `title`, `source`: what it shows, and the publication that says so.
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
//!   `[host.engine]` the fields of [`EngineCosts`](apus_sim::host_model::EngineCosts), or a `scale` by
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
//!     [`BUILT_IN`](apus_sim::sizes::BUILT_IN), or `{ file = "mine.txt" }`. `flows = "per-op"`, or
//!     "per-pair" with `flows_per_pair` (1), which take turns. An op that its flow has no room for
//!     waits; its latency counts from when it came.
//!   * "partition-aggregate": `master`, `workers`, `request`, `answer`: sizes of a message to each
//!     worker and of what it sends back; the next round begins when all have answered. An op is an
//!     answer, from the submission of its request to its last byte.
//!   * "trace": the messages of a `file` (CSV with the header `start_us,from,to,bytes`, .cm of htsim,
//!     flow.txt of the HPCC simulator), each an op of a flow of its own. With `flows_per_pair`, the ops
//!     from one host to another share at most that many flows: in the order of their times they take the
//!     flows in turn. An op that its flow cannot accept yet is queued; its latency counts from its
//!     arrival. Messages that start after the end of the run are left out. Without a `warmup`, a run of traces alone is measured from its first
//!     message on.
//! * `[[fault]]`: `link` ("leaf 0 -> spine 1", or with `<->` both directions; `*` stands for any text
//!   in the name of a node, and the fault is then one of every link that fits; of parallel links that
//!   are named without `*`, it is one of the first), `at` (0s), `until` (for ever; it may be in the drain),
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
//!   between two times. `after`, `from` and `to` can also be "first end of NAME" or "last end of
//!   NAME": when the first or the last op of a workload is done, as its sender learns, less `lead`
//!   (0s); whole intervals from there on count.
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
//! * `[[check]]`: `name`, `metric` (of [`METRICS`](apus_sim::columns::METRICS) and [`SCOPED`](apus_sim::columns::SCOPED)), `variant` (a name, a list, "all"),
//!   `reduce` ("min", "max", "mean", "median", or the "exponent" of the power law through the variants'
//!   values; without it each variant is checked), `relative_to` ("max" of the experiment, "value" of
//!   the variant, `{ variant, metric }`, the variant one for all or a list of one for each, or with a `metric` alone that of the same run), `unit` ("%" for fractions), `paper`, `low`, `high`, `source`,
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
