//! Keys of `[[workload]]`, by kind.

use apus_sim::plan::OpType;

use crate::closed::{FLOW, OUTSTANDING, START_SPREAD};
use crate::declared::{Keys, Kind, KindKeys, key, words_of};
use crate::frame::{FLOWS_PER_PAIR, HANDSHAKE, SIZE};
use crate::hosts::{HOSTS, RECEIVER, SENDERS};
use crate::job;
use crate::job::keys::{self as job_key, job_keys};
use crate::poisson::{FLOWS, LOAD, TO};
use crate::routing::BALANCER;
use crate::service::SERVICE;
use crate::sizes_of::SIZES;

/// Keys of `workload`.
pub(crate) static WORKLOAD: Keys = Keys {
    own: &[
        key("kind", Kind::Discriminant, "Kind of workload"),
        key(
            "name",
            Kind::Text,
            "Name under which the workload is measured separately. Workloads with the same name are measured together",
        ),
        key(
            "deadline",
            Kind::Time,
            "For a workload with a `name`: the share of ops that take longer than this is measured",
        )
        .at_least(1),
        key("op", Kind::Word(&words_of(&OPS)), "Type of op").or(OPS[0].0),
        key(
            "service",
            Kind::Table(&SERVICE),
            "With `op = \"read\"`: a device at each host, separate for each workload, at which reads wait. The latency includes this time; the ideal time of the slowdown does not",
        ),
        key("start", Kind::Time, "Time at which the first ops are submitted").or("0s"),
        key("stop", Kind::Time, "Time from which no more ops are submitted"),
        key(
            "every",
            Kind::Time,
            "Repeats the workload until the end of the run: time from the start of one burst to the start of the next. Each burst lasts from `start` to `stop`, which is then required",
        )
        .at_least(1),
        key("algorithm", Kind::Text, "Label of the algorithm; required if there are several algorithms"),
        key("class", Kind::Text, "Traffic class. Default: the first class"),
        BALANCER,
    ],
    kinds: &WORKLOADS,
    others: None,
};

/// The kinds of workload by name, with their meaning and keys.
pub const WORKLOADS: [KindKeys; 15] = [
    KindKeys {
        name: "incast",
        doc: "`senders` hosts send to one `receiver`, or to each of several receivers",
        keys: &[SENDERS, RECEIVER, SIZE, OUTSTANDING, FLOWS_PER_PAIR, START_SPREAD],
    },
    KindKeys {
        name: "permutation",
        doc: "each host sends to one other host and receives from one other host; the pairs are drawn from the seed",
        keys: &[HOSTS, SIZE, OUTSTANDING, FLOWS_PER_PAIR, START_SPREAD],
    },
    KindKeys {
        name: "all-to-all",
        doc: "each host sends to every other host, in closed loops. With a `pattern`, the workload is a job, and \
              `size` is the whole array of a rank",
        keys: &[
            HOSTS,
            SIZE,
            OUTSTANDING,
            FLOWS_PER_PAIR,
            START_SPREAD,
            job_key::ALL_TO_ALL_PATTERN,
            job_key::WINDOW,
            job_key::GROUP,
            job_key::RANKS,
            job_key::CHANNELS,
            job_key::COMPUTE,
            job_key::ITERATIONS,
            job_key::RANKS_PER_HOST,
            job_key::PLACEMENT,
            job_key::PLACES_KEY,
            job_key::LOCAL_RATE,
            job_key::LOCAL_DELAY,
            job_key::DONE,
            job_key::SEND_ORDER,
        ],
    },
    KindKeys {
        name: "flows",
        doc: "pairs of hosts, each in a table `[[workload.flow]]` with `from` and `to`",
        keys: &[
            key("flow", Kind::Tables(&FLOW), "A flow from one host to another"),
            SIZE,
            OUTSTANDING,
            FLOWS_PER_PAIR,
            START_SPREAD,
        ],
    },
    KindKeys {
        name: "poisson",
        doc: "an open loop: ops of random `sizes` at random times, with a given `load` of the links",
        keys: &[
            LOAD,
            SIZE,
            key(
                "sizes",
                Kind::TextOrTable(&SIZES),
                "Distribution of op sizes, in place of `size`: a name (see below) or a table",
            ),
            HOSTS,
            TO,
            SENDERS,
            RECEIVER,
            FLOWS,
            FLOWS_PER_PAIR,
            HANDSHAKE,
        ],
    },
    KindKeys {
        name: "partition-aggregate",
        doc: "a `master` sends a `request` to all `workers`, and each worker sends an `answer`. The next round \
              begins when all workers have answered. An op is an answer; it lasts from the submission of the request \
              to the arrival of the last byte",
        keys: &[
            key("master", Kind::Count, "The host that sends requests. Default: the last host"),
            key("workers", Kind::Hosts, "The hosts that answer. Default: all other hosts"),
            key("request", Kind::Size, "Size of the request to each worker").at_least(1),
            key("answer", Kind::Size, "Size of the answer of each worker").at_least(1),
        ],
    },
    KindKeys {
        name: "trace",
        doc: "the messages of a `file`: CSV, flow.txt of the HPCC simulator, or .cm of htsim",
        keys: &[
            key(
                "file",
                Kind::Text,
                "CSV with the header `start_us,from,to,bytes`, .cm of htsim, or flow.txt of the HPCC \
                 simulator. Messages that start after the end of the run are left out",
            ),
            key("flows", Kind::Text, "Content of such a file, in place of `file`"),
            key(
                "flows_per_pair",
                Kind::Count,
                "Maximum number of flows from one host to another. The ops use these flows in turn, in the order of \
                 their start times. If a flow cannot accept an op yet, the op is queued, and its latency counts from \
                 its arrival. Default: one flow per op",
            )
            .at_least(1),
            key(
                "stream",
                Kind::Flag,
                "The file is read during the run, so that the memory does not grow with the number of messages. The \
                 results are the same. Requires CSV in the order of start times, and `flows_per_pair`",
            )
            .or("false"),
            key(
                "digest",
                Kind::Text,
                "With `stream`: SHA-256 of the file in hexadecimal digits. A file with a different content is an error",
            ),
            HANDSHAKE,
        ],
    },
    KindKeys {
        name: "job",
        doc: "ranks that send, receive and compute in the order that a `file` defines; the main result is the completion time",
        keys: job_keys![
            job_key::FILE,
            job_key::OPERATIONS,
            job_key::GROUPS_KEY,
            job_key::LENIENT,
        ],
    },
    KindKeys {
        name: "all-reduce",
        doc: "a generated job: every rank gets the sum of all arrays",
        keys: job_keys![
            job_key::ALL_REDUCE_PATTERN,
            job_key::SIZE,
            job_key::RANKS,
            job_key::CHUNKS,
            job_key::GROUP,
            job_key::CHANNELS,
            job_key::COMPUTE,
            job_key::ITERATIONS,
        ],
    },
    KindKeys {
        name: "reduce-scatter",
        doc: "a generated job: every rank gets one block of the sum of all arrays, in a ring",
        keys: job_keys![
            job_key::SIZE,
            job_key::RANKS,
            job_key::CHANNELS,
            job_key::COMPUTE,
            job_key::ITERATIONS,
        ],
    },
    KindKeys {
        name: "all-gather",
        doc: "a generated job: every rank gets the blocks of all ranks, in a ring",
        keys: job_keys![
            job_key::SIZE,
            job_key::RANKS,
            job_key::CHANNELS,
            job_key::COMPUTE,
            job_key::ITERATIONS,
        ],
    },
    KindKeys {
        name: "broadcast",
        doc: "a generated job: every rank gets the array of rank 0",
        keys: job_keys![
            job_key::BROADCAST_PATTERN,
            job_key::SIZE,
            job_key::RANKS,
            job_key::CHUNKS,
            job_key::CHANNELS,
            job_key::COMPUTE,
            job_key::ITERATIONS,
        ],
    },
    KindKeys {
        name: "pipeline",
        doc: "a generated job: stages pass all micro-batches forward, then all of them backward",
        keys: job_keys![
            job_key::SIZE,
            job_key::RANKS,
            job_key::MICRO_BATCHES,
            job_key::FORWARD,
            job_key::BACKWARD,
            job_key::ITERATIONS,
        ],
    },
    KindKeys {
        name: "training",
        doc: "a generated job: training steps of a transformer with tensor, pipeline, data and expert parallelism; \
              docs/jobs.md describes the model of its computations and messages",
        keys: job_keys![
            job::MODEL_KEYS[0],
            job::MODEL_KEYS[1],
            job::MODEL_KEYS[2],
            job::MODEL_KEYS[3],
            job::MODEL_KEYS[4],
            job::MODEL_KEYS[5],
            job::MODEL_KEYS[6],
            job::MODEL_KEYS[7],
            job::STEP_KEYS[0],
            job::STEP_KEYS[1],
            job::STEP_KEYS[2],
            job::STEP_KEYS[3],
            job::STEP_KEYS[4],
            job::STEP_KEYS[5],
            job::STEP_KEYS[6],
            job::STEP_KEYS[7],
            job::STEP_KEYS[8],
            job_key::GRADIENTS_PATTERN,
            job_key::CHUNKS,
            job_key::ITERATIONS,
        ],
    },
    KindKeys {
        name: "external",
        doc: "messages between ranks, which a program sends while it drives the simulation (docs/embedding.md)",
        keys: job_keys![job_key::RANKS],
    },
];

/// Words for the type of an op.
pub(super) const OPS: [(&str, OpType); 3] =
    [("write", OpType::Write), ("read", OpType::Read), ("message", OpType::Message)];
