"""Tables within topologies, workloads and scenarios: dictionaries.

Made from the declarations of scenario files (`python/tools/generate.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from apus._types import Rate, Size, Time, Value

__all__ = [
    "Check",
    "Class",
    "Compare",
    "Divisor",
    "Ecn",
    "Engine",
    "Fault",
    "Flow",
    "Groups",
    "Host",
    "Link",
    "Measure",
    "Measured",
    "Override",
    "Packets",
    "Pfc",
    "Places",
    "Quick",
    "Record",
    "Reroute",
    "Routing",
    "Service",
    "Settle",
    "Shared",
    "Sizes",
    "Span",
    "Sweep",
    "SwitchLink",
    "Transport",
    "Variant",
]


class Shared(TypedDict, total=False):
    """A table of a scenario."""

    size: Size
    """Shared memory of each switch (size)."""
    alpha: float
    """Factor of the dynamic threshold: a queue may hold at most `alpha` times the free memory
    (number, above 0 and at most 1024)."""


class Ecn(TypedDict, total=False):
    """A table of a scenario."""

    threshold: Size
    """Packets are marked if the port holds more than this many bytes of their class (size)."""
    at: Literal["enqueue", "dequeue"]
    """Time at which the queue is compared with the thresholds: when the packet joins the queue
    ("enqueue"), or when the packet leaves the queue ("dequeue") ("enqueue", "dequeue"; default
    "enqueue")."""
    k_min: Size
    """In place of `threshold`: queue above which packets are marked at random, with a probability
    that rises from 0 to `p_max` at `k_max` (size)."""
    k_max: Size
    """Queue above which every packet is marked (size)."""
    p_max: float
    """Probability that a packet is marked if the queue is `k_max` (number, above 0 and at most
    1)."""


class Class(TypedDict, total=False):
    """A table of a scenario."""

    name: str
    """Name of the class (text)."""
    priority: int
    """Priority. Classes with priority 0 are served first (whole number, at most 7; default "0")."""
    weight: int
    """Weight relative to the other classes of the same priority (whole number, from 1 to 1000;
    default "1")."""
    limit: Size
    """Maximum number of bytes of the class in a port. Default: no limit (size)."""
    trim_to: str
    """Turns on trimming. A packet that exceeds `limit` loses its payload, and its header of
    `packets.control` bytes joins the class named here. The receiver reports the trimmed packet to
    the sender at once (text)."""
    trim_tail: bool
    """When a packet has to be trimmed, the last packet of the queue is trimmed instead of the
    arriving one with probability 1/2 (true or false; default "true")."""
    drop_last: bool
    """When a packet has to be dropped, the last packet of the queue is dropped instead of the
    arriving one with probability 1/2. Synchronised senders then have similar losses (true or false;
    default "false")."""
    ecn: Ecn
    """Marking of this class, in place of `topology.ecn` (table)."""
    balancer: str
    """Path policy of the workloads of this class, in place of `routing.balancer`. A `balancer` of
    the workload takes precedence (text)."""


class Pfc(TypedDict, total=False):
    """A table of a scenario."""

    pause: Size
    """A switch pauses a link when it holds this many bytes of a class that arrived over the link
    (size)."""
    resume: Size
    """The switch resumes the link when it holds no more than this many of these bytes (size)."""
    headroom: Size
    """Memory above `pause` for packets that arrive before the pause takes effect. Packets that
    exceed it are dropped (size)."""
    classes: Sequence[str]
    """Classes that are paused. Default: all classes (list of texts)."""


class SwitchLink(TypedDict, total=False):
    """A table of a scenario."""

    rate: Rate
    """Rate of the links (rate, at least 1kbps)."""
    delay: Time
    """One-way propagation delay of the links (time, at most 1s)."""
    buffer: Size
    """Memory of each switch port (size or "unlimited")."""


class Link(TypedDict, total=False):
    """A table of a scenario."""

    a: str
    """A node. Hosts are h0, h1 and so on; every other name is a switch (text)."""
    b: str
    """The node at the other end (text)."""
    rate: Rate
    """Rate of the links (rate, at least 1kbps)."""
    delay: Time
    """One-way propagation delay of the links (time, at most 1s)."""
    buffer: Size
    """Memory of each switch port (size or "unlimited")."""


class Service(TypedDict, total=False):
    """A table of a scenario."""

    time: Time
    """Mean service time of a read (time, above 0 and at most 1s)."""
    parallel: int
    """Number of reads that are served at the same time. Other reads wait, in order of arrival
    (whole number, from 1 to 65536)."""
    noise: float
    """Fraction of the time that is exponentially distributed (number, from 0 to 1; default "0")."""


class Places(TypedDict, total=False):
    """A table of a scenario."""

    file: str
    """A file with the number of the host of rank 0, of rank 1 and so on, separated by spaces or
    line breaks (text)."""
    ranks: str
    """Content of such a file, in place of `file` (text)."""


Flow = TypedDict(
    "Flow",
    {
        # The host that submits ops (whole number).
        "from": "int",
        # The peer of this host (whole number).
        "to": "int",
        # Start of the flow, in place of that of the workload (time).
        "start": "Time",
        # Time from which the flow submits no more ops, in place of that of the workload (time).
        "stop": "Time",
        # One change of the path of the flow and of its acknowledgements (table).
        "reroute": "Reroute",
    },
    total=False,
)


class Sizes(TypedDict, total=False):
    """A table of a scenario."""

    file: str
    """A file with a size and its cumulative percentage on each line (text)."""
    points: str
    """Content of such a file, in place of `file` (text)."""


class Groups(TypedDict, total=False):
    """A table of a scenario."""

    file: str
    """A JSON file with the ranks of each group, such as {"1": [0, 2]}; the format is that of
    `--comm-group-configuration` of ASTRA-sim (text)."""
    members: str
    """Content of such a file, in place of `file` (text)."""


class Packets(TypedDict, total=False):
    """A table of a scenario."""

    payload: Size
    """Payload of a full data packet. Default: 4096B, unless the profile of the algorithm defines
    its own (size, from 1B to 65.535kB)."""
    header: Size
    """Bytes that a data packet has in addition to its payload. Default: 64B, unless the profile of
    the algorithm defines its own (size, at most 65.535kB)."""
    control: Size
    """Size of a control packet, such as an acknowledgement or a read request. Default: 84B, unless
    the profile of the algorithm defines its own (size, from 1B to 65.535kB)."""


class Host(TypedDict, total=False):
    """A table of a scenario."""

    model: Literal["ideal", "t1", "t1-quiet", "t2", "loggops"]
    """The model. The other keys replace settings of the model ("ideal", "t1", "t1-quiet", "t2",
    "loggops"; default "ideal")."""
    jitter: Time
    """Maximum random delay between a timestamp of the stack and the wire, in each direction (time,
    at most 1s)."""
    nic: Literal["pull", "queue"]
    """"pull": the NIC takes packets from the flows in turn while it holds less than `nic_backlog`.
    "queue": flows pass on all packets that their windows allow, and the port of the NIC takes part
    in the algorithm like a switch port ("pull", "queue"; default "pull")."""
    nic_backlog: Time
    """Limit on the packets in the NIC, as their time on the wire. Below this limit, the NIC takes
    more packets (time, above 0 and at most 1s)."""
    clock_offset: Time
    """Maximum offset of the clock of a host or NIC (time)."""
    clock_drift: str
    """Maximum drift of the clock of a host or NIC, such as "40ppm" (ppm or ppb, at most
    1000ppm)."""
    clock_reading_interval: Time
    """Time between two comparisons of the clock of a host with that of its NIC (time, above 0)."""
    receive_queue: Size
    """Size of the receive queue of the NIC (size or "unlimited", at least 1B)."""
    engine: Engine
    """Costs of the host engine (table)."""
    latency: Time
    """With the model "loggops": L, the minimum time from the departure of the first byte of a
    message to its arrival. Default: 2500ns, as in LogGOPSim (time, at most 1s)."""
    overhead: Time
    """With the model "loggops": o, the time for which a message occupies a stream, at each end.
    Default: 1500ns, as in LogGOPSim (time, at most 1s)."""
    overhead_per_byte: Time
    """With the model "loggops": O, the time for which each byte of a message occupies a stream, at
    each end. Default: 0ns, as in LogGOPSim (time, at most 1s)."""
    gap: Time
    """With the model "loggops": g, the time for which a message occupies a NIC. Default: 1000ns, as
    in LogGOPSim (time, at most 1s)."""
    gap_per_byte: Time
    """With the model "loggops": G, the time for which each byte of a message occupies a NIC.
    Default: 6ns, as in LogGOPSim (time, at most 1s)."""
    eager: Size
    """With the model "loggops": S, the largest message whose send does not wait for the receiver.
    Default: 65535B, as in LogGOPSim (size)."""


class Transport(TypedDict, total=False):
    """A table of a scenario."""

    reorder_threshold: int
    """A packet is declared lost when a packet sent this many packets later has been acknowledged
    (whole number, from 1 to 128; default "3")."""
    recovery: Literal["selective", "go-back-n"]
    """"selective": only lost packets are retransmitted. "go-back-n": the receiver drops the packets
    after a gap, and the sender retransmits everything from the gap onwards ("selective",
    "go-back-n"; default "selective")."""
    max_ops: int
    """Maximum number of ops of a flow from the oldest outstanding op to the newest op (whole
    number, from 1 to 65536; default "1024")."""
    timer_granularity: Time
    """Slot of the timing wheel; must be a power of two of picoseconds. Default: 131072ps, or 8192ps
    with algorithms that depend on short gaps, such as those with credits (time)."""
    local_rx_delay: Literal["endpoint", "fabric", "ignored"]
    """Kind of delay that the time t6 - t5 in the local NIC counts as ("endpoint", "fabric",
    "ignored"; default "endpoint")."""


class Routing(TypedDict, total=False):
    """A table of a scenario."""

    balancer: str
    """Path policy: a name, optionally followed by parameters as `key=value`, such as "reps" or
    "reps profile=uet freeze=200us". A workload uses its own policy, else that of its class, else
    that of `routing`, else "ecmp" (one path per flow) (text)."""
    ev: Literal["hashed", "indexed"]
    """Meaning of entropy values. "hashed": a hash of the value and the flow selects the path, so
    that several values may select the same path. "indexed": the number of the path is the value
    modulo the number of paths ("hashed", "indexed"; default "hashed")."""
    ack_path: Literal["symmetric", "own"]
    """Path of acknowledgements. "symmetric": the reverse of the path of the data packet. "own": a
    path by a hash of the number of the acknowledgement ("symmetric", "own"; default
    "symmetric")."""
    loss: Literal["time", "count", "ev-order", "timeout", "sleek"]
    """What declares a packet lost before its timeout. "time": the acknowledgement of a packet sent
    `loss_delay` later. "count": the acknowledgement of a packet sent `transport.reorder_threshold`
    packets later. "ev-order": the acknowledgement of a later packet with the same entropy value.
    "timeout": nothing. "sleek": many packets out of order, or the answer to a probe after a
    silence. With "ev-order", "timeout" and "sleek", each packet has its own timeout. Default:
    "timeout" if switches trim; otherwise "sleek" for `nscc` and "time" for other algorithms
    ("time", "count", "ev-order", "timeout", "sleek")."""
    loss_delay: Time
    """With `loss = "time"`: minimum time from the departure of the lost packet to that of the
    acknowledged packet. Default: the unloaded RTT of the longest path (time, above 0 and at most
    1s)."""
    range: int
    """Maximum number of packet numbers from the oldest packet in flight to the newest one; must be
    a power of two. The sender stops at this limit (whole number, from 128 to 16384; default
    "1024")."""
    reroute_local: Time
    """Time after the failure of a link at which the switches at both ends stop using the link, and
    time after its repair at which they use it again. Default: never (time)."""
    reroute_global: Time
    """Time after the failure of a link at which all switches avoid paths through the link, and time
    after its repair at which they use these paths again. Default: never (time)."""
    rehash: Literal["resilient", "modulo"]
    """Treatment of the flows of a group of ports that has lost a member. "resilient": only the
    flows of the lost member move. "modulo": the hash is taken modulo the new number of members, so
    that most flows move ("resilient", "modulo"; default "resilient")."""
    ack_bytes: Size
    """Number of payload bytes after which the receiver acknowledges. The receiver acknowledges some
    packets at once: the first packet, marked packets, repeated packets, and packets after which the
    sender waits for an acknowledgement. 0: each packet is acknowledged (size, at most 16MiB;
    default "0B")."""


class Fault(TypedDict, total=False):
    """A table of a scenario."""

    link: str
    """The link, such as "leaf 0 -> spine 1"; with `<->`, both directions. `*` stands for any text
    in a name, so that "agg * <-> core *" is a tier. With `*`, the fault applies to every link that
    matches; without it, to the first of parallel links (text)."""
    switch: str
    """In place of `link`: a switch, such as "spine 1", with all its links in both directions. `*`
    stands for any text (text)."""
    at: Time
    """Start of the fault (time; default "0s")."""
    until: Time
    """End of the fault, which may be in the drain. Default: never. With `every`, it is the latest
    end of the last fault (time)."""
    kind: Literal["down", "slow", "loss", "corrupt", "reorder"]
    """"down": packets that are queued, on the link or arriving are lost; paths change as
    `routing.reroute_local` and `routing.reroute_global` define. "slow": the link has `fraction` of
    its rate. "loss", "corrupt": packets are lost or corrupted with `probability`. "reorder":
    packets are held back by `delay` with `probability`, so that other packets overtake them
    ("down", "slow", "loss", "corrupt", "reorder")."""
    fraction: float
    """With `kind = "slow"`: factor on the rate of the link, its rate limits, the memory of its port
    and the thresholds of marking. Memory that the ports of a switch share does not change (number,
    above 0 and at most 1)."""
    probability: float
    """Probability that a packet is lost, corrupted or held back (number, above 0 and at most 1)."""
    delay: Time
    """With `kind = "reorder"`: time by which packets are held back (time, above 0 and at most
    1s)."""
    lasts: Time
    """With `every`: duration of each fault (time, above 0)."""
    every: Time
    """The fault recurs: time from the start of one fault to the start of the next (time, above
    0)."""
    spacing: Literal["fixed", "random"]
    """With `every`: "random" draws the time from the end of a fault to the start of the next one,
    separately for each link or switch. The distribution is exponential with the same mean. The time
    from `at` to the first fault is drawn too ("fixed", "random"; default "fixed")."""
    share: float
    """The fault applies only to this share of the matching links or switches, chosen by the seed.
    Their number is rounded, and is at least one (number, above 0 and at most 1)."""
    count: int
    """The fault applies only to this number of the matching links or switches, chosen by the seed
    (whole number, at least 1)."""
    keep_paths: bool
    """With `share` or `count`: no pair of hosts loses its last shortest path. If there are not
    enough such links or switches, fewer are chosen (true or false; default "false")."""


class Measure(TypedDict, total=False):
    """A table of a scenario."""

    interval: Time
    """Length of the intervals in which the rate of each connection is compared with its max-min
    fair share (time, above 0)."""
    fair_share_after: Time
    """Time after each start or stop of a connection during which rates are not compared (time)."""
    sizes: Sequence[str]
    """Ranges of op sizes, such as ["0B..10kB", "10kB.."], for which each named workload reports
    latency and slowdown. The upper end of a range is excluded; ranges must not overlap (list of
    texts)."""
    ports: Mapping[str, Sequence[str]]
    """Groups of switch ports by name, such as `edge = ["leaf * -> host *"]`; `*` stands for any
    text. The results of each group are throughput, utilisation, loss and queues, and the loss of
    each class in time windows sorted by utilisation (table)."""
    window: Time
    """Length of the time windows in which the classes of ports are measured (time, above 0; default
    "1ms")."""
    queue_interval: Time
    """Time between two samples of the queues of ports (time, above 0; default "10us")."""
    compare: Sequence[Compare]
    """The loss of one class divided by that of another: the largest ratio over the buckets of
    utilisation (list of tables)."""
    settle: Sequence[Settle]
    """Time until a quantity stays above or below a threshold. The whole run counts, including the
    warm-up (list of tables)."""
    span: Sequence[Span]
    """Value of a quantity between two times (list of tables)."""


class Record(TypedDict, total=False):
    """A table of a scenario."""

    interval: Time
    """Time between two samples. Default: 1/200 of the run (time, above 0)."""
    flows: int
    """Number of flows, evenly spaced, whose samples are kept (whole number; default "64")."""
    ports: int
    """Number of ports whose samples are kept: those with the most traffic (whole number; default
    "32")."""
    ops: int
    """Maximum number of ops that are kept: those that complete first (whole number, at most
    10000000; default "1000000")."""
    nics: bool
    """`true`: the ports of the NICs of hosts are sampled too (true or false; default "false")."""
    packets: Sequence[str]
    """Ports whose packets are written to packets.pcapng, such as "leaf 0 -> host 1"; `*` stands for
    any text (list of texts)."""
    most_packets: int
    """Maximum number of packets that are kept (whole number, from 1 to 1000000; default
    "100000")."""
    events: int
    """Number of flows, evenly spaced, whose packets and states are written as qlog (whole number,
    at most 1000; default "0")."""
    most_events: int
    """Maximum number of packets and states of these flows that are kept (whole number, from 1 to
    1000000; default "100000")."""


class Override(TypedDict, total=False):
    """A table of a scenario."""

    set: Mapping[str, Value]
    """Settings by dotted key, such as { "algorithm.base_target" = "50us" }. An item of a list is
    named by its number, such as `workload.0.size`; a list of one item does not need the number
    (table of settings by dotted key)."""
    reason: str
    """Why the settings differ from those that all scenarios of the testbed share (text)."""


class Variant(TypedDict, total=False):
    """A table of a scenario."""

    name: str
    """Name of the variant (text)."""
    value: str | float | bool
    """A number or quantity with which checks can compare a metric (value)."""
    set: Mapping[str, Value]
    """Settings by dotted key, such as { "algorithm.base_target" = "50us" }. An item of a list is
    named by its number, such as `workload.0.size`; a list of one item does not need the number
    (table of settings by dotted key)."""
    reason: str
    """Why the settings differ from those that all scenarios of the testbed share (text)."""
    quick: bool
    """`false`: quick runs omit the variant (true or false)."""


class Sweep(TypedDict, total=False):
    """A table of a scenario."""

    key: str
    """The dotted key that the variants set (text)."""
    values: Sequence[str | float | bool]
    """The values of the key, one for each variant (list of values)."""
    quick: Sequence[str | float | bool]
    """The values in quick runs. Default: all values (list of values)."""
    reason: str
    """Why the settings differ from those that all scenarios of the testbed share (text)."""


class Quick(TypedDict, total=False):
    """A table of a scenario."""

    set: Mapping[str, Value]
    """Settings by dotted key, such as { "algorithm.base_target" = "50us" }. An item of a list is
    named by its number, such as `workload.0.size`; a list of one item does not need the number
    (table of settings by dotted key)."""


class Check(TypedDict, total=False):
    """A table of a scenario."""

    name: str
    """Name of the check (text)."""
    kind: Literal["reproduction", "shape", "invariant", "formula"]
    """What the check shows. `reproduction`: a number of a publication. `shape`: an order, a limit
    or an exponent that a publication states. `invariant`: a property of every correct run.
    `formula`: the value of a formula of a specification ("reproduction", "shape", "invariant",
    "formula")."""
    metric: str
    """The metric, see below (text)."""
    variant: str | Sequence[str]
    """A variant, a list of variants, or "all" (text or list of texts; default "all")."""
    increasing: Sequence[str]
    """In place of `variant` and `reduce`: the variants in the order in which the metric must grow.
    The value of the check is the smallest ratio of a variant to the previous one. If neither `low`
    nor `high` is given, `low` is 1 (list of texts)."""
    reduce: Literal["min", "max", "mean", "median", "exponent"]
    """Combines the metrics of several variants into one value. "exponent": the exponent of the
    power law that fits the metrics over the `value` of the variants. Without `reduce`, each variant
    is checked separately ("min", "max", "mean", "median", "exponent")."""
    rank_of: float
    """In place of `reduce`: the value of the check is the share of the variants whose metric is
    less than this number. If a number of a publication is one draw from the distribution of the
    variants, its share is neither near 0 nor near 1 (number)."""
    relative_to: str | Divisor
    """Divisor of the metric: "max" (the largest value of the metric in any run of the experiment),
    "value" (the `value` of the variant), or a table (text or table)."""
    samples: int
    """For a metric of a distribution, such as a percentile: minimum number of values in each run.
    With fewer values, the check fails (whole number, at least 1)."""
    unit: str
    """"%" if a fraction is given in percent (text)."""
    paper: float
    """The value in the publication. A reproduction needs it. If a check of another kind has it,
    `why` must state why the check is not a reproduction (number)."""
    fitted: str
    """The setting that was fitted, and the number to which it was fitted. The check then shows only
    that the number is possible, and is not counted as a reproduction (text)."""
    reading_error: str
    """Why the value in the publication is known less precisely than within 25 %, which is the
    widest band of a reproduction (text)."""
    low: float
    """Lower end of the band (number)."""
    high: float
    """Upper end of the band (number)."""
    source: str
    """Source of the value. Default: the `source` of the scenario (text)."""
    why: str
    """Why the metric may differ from the publication (text)."""
    differs: str
    """For a check that cannot be met without bending the model: the measured value and the likely
    cause. The result is printed as "differs", and fails only if all its medians are in the band
    (text)."""
    quick: bool
    """`false`: quick runs omit the check (true or false)."""


class Reroute(TypedDict, total=False):
    """A table of a scenario."""

    at: Time
    """Time of the change (time)."""
    through: Sequence[str]
    """Switches on the new path, such as ["leaf 0", "spine 1", "leaf 2"] (list of texts)."""


class Engine(TypedDict, total=False):
    """A table of a scenario."""

    scale: float
    """Factor on the costs of the model. It does not apply to stalls, and to costs that the scenario
    sets (number, from 0.1 to 10)."""
    round: Time
    """One iteration of the loop (time, above 0 and at most 1s)."""
    receive_packet: Time
    """Receiving a data packet (time, at most 1s)."""
    receive_op: Time
    """Finishing an op at the receiver (time, at most 1s)."""
    receive_ack: Time
    """Receiving an acknowledgement (time, at most 1s)."""
    send_ack: Time
    """Sending an acknowledgement (time, at most 1s)."""
    send_packet: Time
    """Sending a data packet (time, at most 1s)."""
    send_op: Time
    """Starting an op at the sender (time, at most 1s)."""
    copy_kib: Time
    """Copying 1 KiB of payload at the receiver (time, at most 1s)."""
    stall: Time
    """Mean length of a stall, in which the thread is descheduled (exponentially distributed) (time,
    at most 1s)."""
    stall_every: Time
    """Mean working time between two stalls (exponentially distributed). 0s: no stalls (time)."""
    noise: float
    """Fraction of every cost that is random (exponentially distributed) (number, from 0 to 1)."""
    batch: int
    """Maximum number of packets that one iteration receives, and that it sends. One acknowledgement
    must be able to report them (whole number, from 1 to 128)."""
    shared: bool
    """`true`: one thread serves both directions. `false`: each direction has its own thread (true
    or false)."""


Compare = TypedDict(
    "Compare",
    {
        # Name of the comparison (text).
        "name": "str",
        # A group of `[measure.ports]` (text).
        "ports": "str",
        # Class whose loss is divided by that of `with` (text).
        "class": "str",
        # Class whose loss is the divisor (text).
        "with": "str",
        # Only buckets in which `with` loses at least this share of its packets are compared
        # (number, above 0 and at most 1; default "1e-4").
        "floor": "float",
        # What sorts the time windows into buckets: the utilisation of the port ("port") or of the
        # class ("class"). "nothing": all time windows are in one bucket ("port", "class",
        # "nothing"; default "port").
        "by": 'Literal["port", "class", "nothing"]',
    },
    total=False,
)


class Settle(TypedDict, total=False):
    """A table of a scenario."""

    name: str
    """Name of the measurement (text)."""
    of: Measured
    """What is measured: a group of ports, a workload or a flow (table)."""
    quantity: Literal["throughput", "queue", "queue_bytes", "goodput", "share"]
    """For ports: "throughput" of all ports of the group together, or "queue" (as a time) or
    "queue_bytes" of the port with the longest queue. For workloads and flows: "goodput", or its
    "share" of the goodput of all flows ("throughput", "queue", "queue_bytes", "goodput",
    "share")."""
    interval: Time
    """Length of the intervals over which the quantity is averaged (time, above 0)."""
    after: str
    """Start of the search (time, "first end of NAME" or "last end of NAME" (of a workload's ops);
    default "0s")."""
    above: str | float
    """The quantity must be at least this (time, rate, size or number)."""
    below: str | float
    """The quantity must be at most this (time, rate, size or number)."""
    hold: Time
    """Minimum time for which the quantity must stay above or below the threshold (time)."""
    lead: Time
    """Time that is subtracted from "first end of NAME" or "last end of NAME". Intervals count if
    they begin at or after the resulting start (time; default "0s")."""


Span = TypedDict(
    "Span",
    {
        # Name of the measurement (text).
        "name": "str",
        # What is measured: a group of ports, a workload or a flow (table).
        "of": "Measured",
        # For ports: "throughput" of all ports of the group together, or "queue" (as a time) or
        # "queue_bytes" of the port with the longest queue. For workloads and flows: "goodput", or
        # its "share" of the goodput of all flows ("throughput", "queue", "queue_bytes", "goodput",
        # "share").
        "quantity": 'Literal["throughput", "queue", "queue_bytes", "goodput", "share"]',
        # Length of the intervals over which the quantity is averaged (time, above 0).
        "interval": "Time",
        # Start of the span (time, "first end of NAME" or "last end of NAME" (of a workload's ops);
        # default "0s").
        "from": "str",
        # End of the span. Default: the end of the run (time, "first end of NAME" or "last end of
        # NAME" (of a workload's ops)).
        "to": "str",
        # Time that is subtracted from "first end of NAME" or "last end of NAME". Intervals count if
        # they begin at or after the resulting start (time; default "0s").
        "lead": "Time",
    },
    total=False,
)


class Divisor(TypedDict, total=False):
    """A table of a scenario."""

    variant: str | Sequence[str]
    """The variant whose metric is the divisor, or a list with one such variant for each variant of
    the check (text or list of texts)."""
    metric: str
    """The metric that is the divisor: of `variant`, or of the same run if `variant` is not given.
    Default: the metric of the check (text)."""
    gain: bool
    """`true`: the value is the gain over the divisor, which is the ratio minus 1. A small gain is
    then not hidden by a ratio near 1 (true or false)."""


class Measured(TypedDict, total=False):
    """A table of a scenario."""

    ports: str
    """A group of `[measure.ports]` (text)."""
    workload: str
    """A workload with a `name` (text)."""
    flow: int
    """A flow by its number (whole number)."""
