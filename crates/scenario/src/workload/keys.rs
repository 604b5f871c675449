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
        key("kind", Kind::Discriminant, "The kind of workload"),
        key(
            "name",
            Kind::Text,
            "The workload is measured by itself under this name; several of one name are measured together",
        ),
        key(
            "deadline",
            Kind::Time,
            "For a workload with a `name`: the share of ops that take longer is measured",
        )
        .at_least(1),
        key("op", Kind::Word(&words_of(&OPS)), "Type of op").or(OPS[0].0),
        key(
            "service",
            Kind::Table(&SERVICE),
            "With `op = \"read\"`: a device per host and workload that reads wait for. Latency includes it, the ideal of slowdown does not",
        ),
        key("start", Kind::Time, "When the first ops are submitted").or("0s"),
        key("stop", Kind::Time, "No op is submitted from this time on"),
        key(
            "every",
            Kind::Time,
            "The workload is repeated after this time, and again, each time until its `stop`",
        )
        .at_least(1),
        key("algorithm", Kind::Text, "Label of the algorithm, if there are several"),
        key("class", Kind::Text, "Traffic class; the first if not given"),
        BALANCER,
    ],
    kinds: &WORKLOADS,
    others: None,
};

/// The kinds of workload by name, with their meaning and keys.
pub const WORKLOADS: [KindKeys; 15] = [
    KindKeys {
        name: "incast",
        doc: "`senders` hosts to one `receiver`, or to each of a list of them",
        keys: &[SENDERS, RECEIVER, SIZE, OUTSTANDING, FLOWS_PER_PAIR, START_SPREAD],
    },
    KindKeys {
        name: "permutation",
        doc: "every host to one other, every host from one other; drawn from the seed",
        keys: &[HOSTS, SIZE, OUTSTANDING, FLOWS_PER_PAIR, START_SPREAD],
    },
    KindKeys {
        name: "all-to-all",
        doc: "every host to every other, in closed loops; with a `pattern` a job, in which `size` is the whole array of a \
              rank",
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
        doc: "the pairs listed as `[[workload.flow]]` with `from` and `to`",
        keys: &[
            key("flow", Kind::Tables(&FLOW), "A flow"),
            SIZE,
            OUTSTANDING,
            FLOWS_PER_PAIR,
            START_SPREAD,
        ],
    },
    KindKeys {
        name: "poisson",
        doc: "an open loop: ops of random `sizes` at random times, at a `load` of the links",
        keys: &[
            LOAD,
            SIZE,
            key(
                "sizes",
                Kind::TextOrTable(&SIZES),
                "Distribution of sizes: a name, see below, or a table, in place of `size`",
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
        doc: "a `master` sends a `request` to all `workers`, each sends an `answer`; the next round begins \
              when all have answered. An op is an answer, from the submission of its request to its last byte",
        keys: &[
            key("master", Kind::Count, "The host that asks; the last if not given"),
            key("workers", Kind::Hosts, "The hosts that answer; all others if not given"),
            key("request", Kind::Size, "Size of the message to each worker").at_least(1),
            key("answer", Kind::Size, "Size of the message that it sends back").at_least(1),
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
            key("flows", Kind::Text, "The text of such a file"),
            key(
                "flows_per_pair",
                Kind::Count,
                "Most flows from one host to another, which its ops take in turn, in the order of their \
                 times; a flow per op if not given. An op that its flow cannot accept yet is queued, and \
                 its latency counts from its arrival",
            )
            .at_least(1),
            key(
                "stream",
                Kind::Flag,
                "The file is read while the run goes, so that memory does not grow with its messages. It needs \
                 CSV in the order of start times, and `flows_per_pair`. The results are the same",
            )
            .or("false"),
            key(
                "digest",
                Kind::Text,
                "With `stream`: SHA-256 of the file in hexadecimal digits; another content is an error",
            ),
            HANDSHAKE,
        ],
    },
    KindKeys {
        name: "job",
        doc: "ranks that send, receive and compute in the order of a `file`; the first result is the completion time",
        keys: job_keys![
            job_key::FILE,
            job_key::OPERATIONS,
            job_key::GROUPS_KEY,
            job_key::LENIENT,
        ],
    },
    KindKeys {
        name: "all-reduce",
        doc: "a job that is generated: every rank gets the sum of all arrays",
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
        doc: "a job that is generated: every rank gets a block of the sum of all arrays, in a ring",
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
        doc: "a job that is generated: every rank gets the blocks of all, in a ring",
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
        doc: "a job that is generated: every rank gets the array of rank 0",
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
        doc: "a job that is generated: stages that pass micro-batches forward, then all of them backward",
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
        doc: "a job that is generated: steps of a transformer by tensor, pipeline, data and expert parallelism; the \
              model of its computations and messages is in docs/jobs.md",
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
        doc: "the messages between ranks that a program sends while it drives the simulation (docs/embedding.md)",
        keys: job_keys![job_key::RANKS],
    },
];

/// Words for the type of an op.
pub(super) const OPS: [(&str, OpType); 3] =
    [("write", OpType::Write), ("read", OpType::Read), ("message", OpType::Message)];
