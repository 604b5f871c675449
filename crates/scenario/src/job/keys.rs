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
        "A file with the number of the host of rank 0, of rank 1 and so on, divided by blanks or line ends",
    ),
    key("ranks", Kind::Text, "The text of such a file"),
]);

/// Keys of `groups`.
pub(crate) static GROUPS: Keys = Keys::of(&[
    key(
        "file",
        Kind::Text,
        "A JSON file of groups and their ranks, like {\"1\": [0, 2]}: ASTRA-sim's `--comm-group-configuration`",
    ),
    key("members", Kind::Text, "The text of such a file"),
]);

pub(crate) const GROUPS_KEY: Key = key(
    "groups",
    Kind::Table(&GROUPS),
    "With Chakra traces: the ranks of the groups that their `pg_name` names, unless the traces define them",
);
pub(crate) const LENIENT: Key = key(
    "lenient",
    Kind::Flag,
    "With Chakra traces: leaves out dependencies on absent nodes, collectives of unknown groups and other things without \
     meaning here, and the notes of the results list them. Without it they are errors",
)
.or("false");

pub(crate) const FILE: Key = key(
    "file",
    Kind::Text,
    "A job: GOAL (text or binary), .cm of htsim with triggers, workload.txt of SimAI, or the beginning of the names of \
     Chakra traces; told by its content",
);
pub(crate) const OPERATIONS: Key = key("operations", Kind::Text, "The text of such a file");
pub(crate) const SIZE: Key = key(
    "size",
    Kind::Size,
    "The whole array of a rank; of an all-gather the whole result, of a pipeline what a micro-batch sends to the next \
     stage",
)
.at_least(1);
pub(crate) const RANKS: Key =
    key("ranks", Kind::Count, "Number of ranks; as many as there are places for if not given")
        .at_least(2);
pub(crate) const CHUNKS: Key = key(
    "chunks",
    Kind::Count,
    "With the pattern `double-binary-tree` or `chain`: pieces of the data, of each tree or of the chain",
)
.at_least(1)
.or("8");
pub(crate) const WINDOW: Key =
    key("window", Kind::Count, "With the pattern `window`: blocks that a rank sends at a time")
        .at_least(1)
        .or("4");
pub(crate) const GROUP: Key = key(
    "group",
    Kind::Count,
    "With the pattern `hierarchical` or `rail`: consecutive ranks of a node; if not given, the ranks of a host, if these are consecutive and all hosts have as many",
)
.at_least(2);
pub(crate) const MICRO_BATCHES: Key =
    key("micro_batches", Kind::Count, "Micro-batches, all forward and then all backward")
        .at_least(1)
        .or("8");
pub(crate) const FORWARD: Key =
    key("forward", Kind::Time, "Time of a stage for a micro-batch, forward");
pub(crate) const BACKWARD: Key =
    key("backward", Kind::Time, "Time of a stage for a micro-batch, backward");
pub(crate) const CHANNELS: Key = key(
    "channels",
    Kind::Count,
    "Equal parts of the data, each a collective of its own beside the others",
)
.within(1, 256)
.or("1");
pub(crate) const COMPUTE: Key =
    key("compute", Kind::Time, "Time that every rank computes before each iteration").or("0s");
pub(crate) const ITERATIONS: Key =
    key("iterations", Kind::Count, "How often the collective takes place").at_least(1).or("1");
pub(crate) const PLACEMENT: Key = key(
    "placement",
    Kind::Word(&words_of(&PLACEMENTS)),
    "Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`), the hosts take ranks in turn \
     (`round-robin`), or the ranks of `block` in an order drawn from the seed (`random`)",
)
.or("block");
pub(crate) const PLACES_KEY: Key = key(
    "places",
    Kind::Table(&PLACES),
    "The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`",
);
pub(crate) const JOB_HOSTS: Key =
    key("hosts", Kind::Hosts, "The hosts that ranks are placed on; all if not given");
pub(crate) const RANKS_PER_HOST: Key =
    key("ranks_per_host", Kind::Count, "Ranks of a host, which share its NIC. If the topology has NICs (`rails`, and `links` with `nics` or `servers`), a rank has one of them, and there are as many ranks as NICs if not given; otherwise 1").at_least(1);
pub(crate) const LOCAL_RATE: Key = key(
    "local_rate",
    Kind::Rate,
    "With several ranks per host: rate of a rank in each direction in the network within its host, such as NVLink; `scale_up_rate` of the topology if not given",
)
.at_least(1);
pub(crate) const LOCAL_DELAY: Key = key(
    "local_delay",
    Kind::Time,
    "With several ranks per host: delay of that network; `scale_up_delay` of the topology, or 0s, if not given",
);
pub(crate) const DONE: Key = key(
    "done",
    Kind::Word(&words_of(&DONES)),
    "When a send is done: its message has arrived (`delivered`; the sender hears of it after the propagation delay of \
     the path), its last byte has left (`local`), or the sender has the acknowledgement (`acknowledged`)",
)
.or("delivered");
pub(crate) const SEND_ORDER: Key = key(
    "send_order",
    Kind::Word(&words_of(&SendOrder::ALL)),
    "Whether a host sends packets of all messages in turn (`interleaved`), or a rank sends one message after the other \
     (`sequential`), as closed forms of trees assume",
)
.or("interleaved");
pub(crate) const JOB_FLOWS: Key = key(
    "flows_per_pair",
    Kind::Count,
    "Flows from one rank to another, which its messages take in turn",
)
.at_least(1)
.or("1");

/// Order in which the reference lists them: the default first.
pub(super) const DONES: [(&str, Done); 3] =
    [("delivered", Done::Delivered), ("local", Done::Local), ("acknowledged", Done::Acknowledged)];

/// Declares a `pattern`; the first word is the default.
const fn pattern(words: &'static [&'static str], doc: &'static str) -> Key {
    key("pattern", Kind::Word(words), doc).or(words[0])
}

pub(crate) const ALL_REDUCE_PATTERN: Key = pattern(
    &["ring", "halving-doubling", "double-binary-tree", "hierarchical"],
    "The algorithm. Rank r is the r-th in the ring and the trees; `hierarchical`: by node and rail",
);
pub(crate) const BROADCAST_PATTERN: Key =
    pattern(&["binomial", "chain"], "The algorithm, from rank 0");
/// Without a default: it makes an all-to-all a job.
pub(crate) const ALL_TO_ALL_PATTERN: Key = key(
    "pattern",
    Kind::Word(&["direct", "pairwise", "window", "bruck", "rail"]),
    "With it, it is a job: one collective with dependencies between its messages, by this algorithm. `rail`: by node and \
     rail, as NCCL's PXN",
);
pub(crate) const GRADIENTS_PATTERN: Key = pattern(
    &["ring", "halving-doubling", "double-binary-tree"],
    "The algorithm of the all-reduces of gradients",
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

/// The keys of a kind of job: its own, and those of all.
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
