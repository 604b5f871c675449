//! Keys of jobs.

use apus_jobs::Done;
use apus_sim::plan::SendOrder;

use super::PLACEMENTS;
use crate::declared::{Key, Keys, Kind, key, words_of};

/// Keys of `places`.
pub(crate) static PLACES: Keys = Keys::of(&[
    key(
        "file",
        Kind::Text,
        "A file with the number of the host of rank 0, of rank 1 and so on, separated by spaces or line breaks",
    ),
    key("ranks", Kind::Text, "Content of such a file, in place of `file`"),
]);

/// Keys of `groups`.
pub(crate) static GROUPS: Keys = Keys::of(&[
    key(
        "file",
        Kind::Text,
        "A JSON file with the ranks of each group, such as {\"1\": [0, 2]}; the format is that of `--comm-group-configuration` of ASTRA-sim",
    ),
    key("members", Kind::Text, "Content of such a file, in place of `file`"),
]);

pub(crate) const GROUPS_KEY: Key = key(
    "groups",
    Kind::Table(&GROUPS),
    "With Chakra traces: the ranks of the groups that the traces name by `pg_name`, unless the traces define these groups themselves",
);
pub(crate) const LENIENT: Key = key(
    "lenient",
    Kind::Flag,
    "With Chakra traces. `true`: dependencies on absent nodes, collectives of unknown groups and other items without \
     meaning for the simulation are left out, and the notes of the results list them. `false`: they are errors",
)
.or("false");

pub(crate) const FILE: Key = key(
    "file",
    Kind::Text,
    "A job: GOAL (text or binary), .cm of htsim with triggers, workload.txt of SimAI, or Chakra traces (their \
     folder, or the common beginning of their names). The content determines the format",
);
pub(crate) const OPERATIONS: Key =
    key("operations", Kind::Text, "Content of such a file, in place of `file`");
pub(crate) const SIZE: Key = key(
    "size",
    Kind::Size,
    "Size of the whole array of a rank. For an all-gather, it is the size of the whole result; for a pipeline, the \
     size of the data that a micro-batch sends to the next stage",
)
.at_least(1);
pub(crate) const RANKS: Key =
    key("ranks", Kind::Count, "Number of ranks. Default: as many as the hosts have room for")
        .at_least(2);
pub(crate) const CHUNKS: Key = key(
    "chunks",
    Kind::Count,
    "With the pattern `double-binary-tree` or `chain`: number of pieces into which the data of each tree, or of the chain, is divided",
)
.at_least(1)
.or("8");
pub(crate) const WINDOW: Key = key(
    "window",
    Kind::Count,
    "With the pattern `window`: number of blocks that a rank sends at the same time",
)
.at_least(1)
.or("4");
pub(crate) const GROUP: Key = key(
    "group",
    Kind::Count,
    "With the pattern `hierarchical` or `rail`: number of consecutive ranks that form a node. Default: the number of ranks of a host, if these are consecutive and all hosts have the same number",
)
.at_least(2);
pub(crate) const MICRO_BATCHES: Key = key(
    "micro_batches",
    Kind::Count,
    "Number of micro-batches. All of them pass forward, then all of them backward",
)
.at_least(1)
.or("8");
pub(crate) const FORWARD: Key = key(
    "forward",
    Kind::Time,
    "Time that a stage needs for a micro-batch in the forward direction",
);
pub(crate) const BACKWARD: Key = key(
    "backward",
    Kind::Time,
    "Time that a stage needs for a micro-batch in the backward direction",
);
pub(crate) const CHANNELS: Key = key(
    "channels",
    Kind::Count,
    "Number of equal parts of the data. Each part has its own collective, and these run in parallel",
)
.within(1, 256)
.or("1");
pub(crate) const COMPUTE: Key =
    key("compute", Kind::Time, "Time for which every rank computes before each iteration").or("0s");
pub(crate) const ITERATIONS: Key = key(
    "iterations",
    Kind::Count,
    "Number of iterations: how often the collective, the pipeline or the training step is executed",
)
.at_least(1)
.or("1");
pub(crate) const PLACEMENT: Key = key(
    "placement",
    Kind::Word(&words_of(&PLACEMENTS)),
    "Assignment of ranks to hosts. `block`: each host takes `ranks_per_host` ranks, in order. `round-robin`: the \
     hosts take ranks in turn. `random`: as `block`, but with the ranks in an order drawn from the seed",
)
.or("block");
pub(crate) const PLACES_KEY: Key = key(
    "places",
    Kind::Table(&PLACES),
    "The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`",
);
pub(crate) const JOB_HOSTS: Key =
    key("hosts", Kind::Hosts, "The hosts on which ranks are placed. Default: all hosts");
pub(crate) const RANKS_PER_HOST: Key =
    key("ranks_per_host", Kind::Count, "Number of ranks of each host; they share its NIC. If the topology has NICs (`rails`, and `links` with `nics` or `servers`), each rank uses one of them, and the default is the number of NICs of a host. Otherwise the default is 1").at_least(1);
pub(crate) const LOCAL_RATE: Key = key(
    "local_rate",
    Kind::Rate,
    "With several ranks per host: rate of each rank, in each direction, in the network within its host, such as NVLink. Default: `scale_up_rate` of the topology",
)
.at_least(1);
pub(crate) const LOCAL_DELAY: Key = key(
    "local_delay",
    Kind::Time,
    "With several ranks per host: delay of the network within the host. Default: `scale_up_delay` of the topology, or 0s",
);
pub(crate) const DONE: Key = key(
    "done",
    Kind::Word(&words_of(&DONES)),
    "When a send is done. `delivered`: its message has arrived; the sender learns this after the propagation delay \
     of the path. `local`: the last byte of its message has left the sender. `acknowledged`: the sender has the \
     acknowledgement",
)
.or("delivered");
pub(crate) const SEND_ORDER: Key = key(
    "send_order",
    Kind::Word(&words_of(&SendOrder::ALL)),
    "Order of messages. `interleaved`: a host sends packets of all its messages in turn. `sequential`: a rank sends \
     one message after the other, as the closed forms of trees assume",
)
.or("interleaved");
pub(crate) const JOB_FLOWS: Key = key(
    "flows_per_pair",
    Kind::Count,
    "Number of flows from one rank to another. Messages use these flows in turn",
)
.at_least(1)
.or("1");

/// The words for the end of a send, in the order of the reference: the default first.
pub(super) const DONES: [(&str, Done); 3] =
    [("delivered", Done::Delivered), ("local", Done::Local), ("acknowledged", Done::Acknowledged)];

/// Declares a `pattern`; the first word is the default.
const fn pattern(words: &'static [&'static str], doc: &'static str) -> Key {
    key("pattern", Kind::Word(words), doc).or(words[0])
}

pub(crate) const ALL_REDUCE_PATTERN: Key = pattern(
    &["ring", "halving-doubling", "double-binary-tree", "hierarchical"],
    "The algorithm. Rank r has position r in the ring and in the trees. `hierarchical`: first within the nodes, then along the rails",
);
pub(crate) const BROADCAST_PATTERN: Key =
    pattern(&["binomial", "chain"], "The algorithm; rank 0 is the root");
/// The key has no default: its presence makes an all-to-all a job.
pub(crate) const ALL_TO_ALL_PATTERN: Key = key(
    "pattern",
    Kind::Word(&["direct", "pairwise", "window", "bruck", "rail"]),
    "If given, the workload is a job: one collective by this algorithm, with dependencies between its messages. \
     `rail`: by node and rail, like PXN of NCCL",
);
pub(crate) const GRADIENTS_PATTERN: Key = pattern(
    &["ring", "halving-doubling", "double-binary-tree"],
    "Algorithm of the all-reduces of gradients",
);

/// Keys of `all-to-all` that only a job has.
pub(crate) const ONLY_JOBS: [&str; 13] = [
    "window",
    "group",
    "channels",
    "compute",
    "iterations",
    "ranks",
    "ranks_per_host",
    "placement",
    "places",
    "local_rate",
    "local_delay",
    "done",
    "send_order",
];

/// The keys of a kind of job: its own keys and those of all jobs.
macro_rules! job_keys {
    ($($own:expr),* $(,)?) => {
        &[
            $($own,)*
            $crate::job::keys::JOB_HOSTS,
            $crate::job::keys::RANKS_PER_HOST,
            $crate::job::keys::PLACEMENT,
            $crate::job::keys::PLACES_KEY,
            $crate::job::keys::LOCAL_RATE,
            $crate::job::keys::LOCAL_DELAY,
            $crate::job::keys::DONE,
            $crate::job::keys::SEND_ORDER,
            $crate::job::keys::JOB_FLOWS,
        ]
    };
}
pub(crate) use job_keys;
