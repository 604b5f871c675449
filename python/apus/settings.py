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
    """Memory of a switch (size)."""
    alpha: float
    """Factor of the dynamic threshold: a queue may hold `alpha` times the free memory (number,
    above 0 and at most 1024)."""


class Ecn(TypedDict, total=False):
    """A table of a scenario."""

    threshold: Size
    """Packets are marked if the port holds more than this (size)."""
    at: Literal["enqueue", "dequeue"]
    """When the queue is looked at ("enqueue", "dequeue"; default "enqueue")."""
    k_min: Size
    """Queue above which packets are marked by chance, in place of `threshold` (size)."""
    k_max: Size
    """Queue above which every packet is marked (size)."""
    p_max: float
    """Probability of a mark at `k_max` (number, above 0 and at most 1)."""


class Class(TypedDict, total=False):
    """A table of a scenario."""

    name: str
    """Name of the class (text)."""
    priority: int
    """Priority; 0 is served first (whole number, at most 7; default "0")."""
    weight: int
    """Share among the classes of the same priority (whole number, from 1 to 1000; default "1")."""
    limit: Size
    """Most bytes of the class in a port; no limit if not given (size)."""
    trim_to: str
    """Trims packets: a packet above `limit` loses its payload, and its header, of `packets.control`
    bytes, joins the class of this name; the receiver reports it to the sender at once (text)."""
    trim_tail: bool
    """With probability 1/2, the last packet of the queue is trimmed instead of the arriving one
    (true or false; default "true")."""
    drop_last: bool
    """With probability 1/2, the last packet of the queue is dropped instead of the arriving one, so
    that senders in step lose alike (true or false; default "false")."""
    ecn: Ecn
    """Marks of this class, in place of `topology.ecn` (table)."""
    balancer: str
    """Path policy of the workloads of this class, in place of `routing.balancer`; that of a
    workload comes first (text)."""


class Pfc(TypedDict, total=False):
    """A table of a scenario."""

    pause: Size
    """Bytes of a class from one link in a switch at which the link is paused (size)."""
    resume: Size
    """Bytes at which the link is resumed (size)."""
    headroom: Size
    """Memory above `pause` for packets in flight; packets beyond it are dropped (size)."""
    classes: Sequence[str]
    """The classes that are paused; all if not given (list of texts)."""


class SwitchLink(TypedDict, total=False):
    """A table of a scenario."""

    rate: Rate
    """Rate of the links (rate, at least 1kbps)."""
    delay: Time
    """One-way delay of the links (time, at most 1s)."""
    buffer: Size
    """Memory of a switch port (size or "unlimited")."""


class Link(TypedDict, total=False):
    """A table of a scenario."""

    a: str
    """A node: hosts are h0, h1 and so on, every other name is a switch (text)."""
    b: str
    """The node at the other end (text)."""
    rate: Rate
    """Rate of the links (rate, at least 1kbps)."""
    delay: Time
    """One-way delay of the links (time, at most 1s)."""
    buffer: Size
    """Memory of a switch port (size or "unlimited")."""


class Service(TypedDict, total=False):
    """A table of a scenario."""

    time: Time
    """Mean time of a read (time, above 0 and at most 1s)."""
    parallel: int
    """Reads that are served at a time; others wait in order (whole number, from 1 to 65536)."""
    noise: float
    """Share of the time that is exponentially distributed (number, from 0 to 1; default "0")."""


class Places(TypedDict, total=False):
    """A table of a scenario."""

    file: str
    """A file with the number of the host of rank 0, of rank 1 and so on, divided by blanks or line
    ends (text)."""
    ranks: str
    """The text of such a file (text)."""


Flow = TypedDict(
    "Flow",
    {
        # The host that submits ops (whole number).
        "from": "int",
        # Its peer (whole number).
        "to": "int",
        # When the flow starts, in place of the workload's (time).
        "start": "Time",
        # When the flow stops, in place of the workload's (time).
        "stop": "Time",
        # The flow and its acknowledgements change their path once (table).
        "reroute": "Reroute",
    },
    total=False,
)


class Sizes(TypedDict, total=False):
    """A table of a scenario."""

    file: str
    """A file with size and cumulative percent per line (text)."""
    points: str
    """The text of such a file (text)."""


class Groups(TypedDict, total=False):
    """A table of a scenario."""

    file: str
    """A JSON file of groups and their ranks, like {"1": [0, 2]}: ASTRA-sim's
    `--comm-group-configuration` (text)."""
    members: str
    """The text of such a file (text)."""


class Packets(TypedDict, total=False):
    """A table of a scenario."""

    payload: Size
    """Payload of a full data packet; 4096B unless the profile of the algorithm has its own (size,
    from 1B to 65.535kB)."""
    header: Size
    """Bytes that a data packet adds to its payload; 64B unless the profile of the algorithm has its
    own (size, at most 65.535kB)."""
    control: Size
    """An acknowledgement or a read request; 84B unless the profile of the algorithm has its own
    (size, from 1B to 65.535kB)."""


class Host(TypedDict, total=False):
    """A table of a scenario."""

    model: Literal["ideal", "t1", "t1-quiet", "t2", "loggops"]
    """The model; the other keys replace its settings ("ideal", "t1", "t1-quiet", "t2", "loggops";
    default "ideal")."""
    jitter: Time
    """Largest random delay between a timestamp of the stack and the wire, each way (time, at most
    1s)."""
    nic: Literal["pull", "queue"]
    """"pull": the NIC takes packets of the flows in turn while it holds less than `nic_backlog`;
    "queue": flows hand over everything that their windows allow, and the port of the NIC takes part
    in the algorithm as ports of switches do ("pull", "queue"; default "pull")."""
    nic_backlog: Time
    """Time on the wire of the packets in the NIC below which it takes more (time, above 0 and at
    most 1s)."""
    clock_offset: Time
    """Largest offset of a clock of a host or NIC (time)."""
    clock_drift: str
    """Largest drift of a clock, like "40ppm" (ppm or ppb, at most 1000ppm)."""
    clock_reading_interval: Time
    """Time between two comparisons of the clocks of host and NIC (time, above 0)."""
    receive_queue: Size
    """Receive queue of the NIC (size or "unlimited", at least 1B)."""
    engine: Engine
    """Costs of the engine (table)."""
    latency: Time
    """With the model "loggops", L: least time from the departure of the first byte of a message to
    its arrival; LogGOPSim's 2500ns if not given (time, at most 1s)."""
    overhead: Time
    """With the model "loggops", o: time of a stream per message, at either end; LogGOPSim's 1500ns
    if not given (time, at most 1s)."""
    overhead_per_byte: Time
    """With the model "loggops", O: time of a stream per byte, at either end; LogGOPSim's 0ns if not
    given (time, at most 1s)."""
    gap: Time
    """With the model "loggops", g: time of a NIC per message; LogGOPSim's 1000ns if not given
    (time, at most 1s)."""
    gap_per_byte: Time
    """With the model "loggops", G: time of a NIC per byte; LogGOPSim's 6ns if not given (time, at
    most 1s)."""
    eager: Size
    """With the model "loggops", S: largest message whose send does not wait for its receiver;
    LogGOPSim's 65535B if not given (size)."""


class Transport(TypedDict, total=False):
    """A table of a scenario."""

    reorder_threshold: int
    """Distance in packets behind the newest acknowledged packet at which a packet is lost (whole
    number, from 1 to 128; default "3")."""
    recovery: Literal["selective", "go-back-n"]
    """"go-back-n": packets behind a gap are dropped, and everything from the gap on is sent again
    ("selective", "go-back-n"; default "selective")."""
    max_ops: int
    """Most ops of a flow at a time (whole number, from 1 to 65536; default "1024")."""
    timer_granularity: Time
    """Slot of the timing wheel, a power of two of picoseconds; 131072ps, or 8192ps with algorithms
    that depend on short gaps, such as credits (time)."""
    local_rx_delay: Literal["endpoint", "fabric", "ignored"]
    """Kind of delay that t6 - t5 in the local NIC counts as ("endpoint", "fabric", "ignored";
    default "endpoint")."""


class Routing(TypedDict, total=False):
    """A table of a scenario."""

    balancer: str
    """Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps profile=uet
    freeze=200us"; "ecmp", one path per flow, if not given (text)."""
    ev: Literal["hashed", "indexed"]
    """Meaning of entropy values: "hashed" with the flow, so that several may lead to the same path,
    or "indexed": the value modulo the number of paths ("hashed", "indexed"; default "hashed")."""
    ack_path: Literal["symmetric", "own"]
    """Path of acknowledgements: "symmetric", the reverse of the data packet's, or "own", by a hash
    of their number ("symmetric", "own"; default "symmetric")."""
    loss: Literal["time", "count", "ev-order", "timeout", "sleek"]
    """What declares a packet lost before its timeout: an acknowledged packet that was sent
    `loss_delay` later ("time"), `transport.reorder_threshold` packets later ("count"), or later
    with the same entropy value ("ev-order"); or nothing ("timeout"); or many packets out of order,
    and the answer to a probe after a silence ("sleek"). With the last two each packet has a timeout
    of its own. If not given: "timeout" where switches trim; otherwise "sleek" for `nscc` and "time"
    for other algorithms ("time", "count", "ev-order", "timeout", "sleek")."""
    loss_delay: Time
    """With `loss = "time"`: that time; the unloaded RTT of the longest path if not given (time,
    above 0 and at most 1s)."""
    range: int
    """Packet numbers from the oldest packet in flight to the newest, a power of two; the sender
    stops at the edge (whole number, from 128 to 16384; default "1024")."""
    reroute_local: Time
    """Time after which the switches at both ends of a link that is down stop using it, and after
    which they use it again; never if not given (time)."""
    reroute_global: Time
    """Time after which all switches avoid paths through a link that is down, and after which they
    use these again; never if not given (time)."""
    rehash: Literal["resilient", "modulo"]
    """Flows of a group of ports that has lost a member: "resilient", only those of that member
    move; "modulo", the hash modulo the number of members moves most ("resilient", "modulo"; default
    "resilient")."""
    ack_bytes: Size
    """Payload bytes after which the receiver acknowledges; it acknowledges at once the first
    packet, a marked one, one after which the sender waits for an acknowledgement, and a repeated
    one. 0: each packet (size, at most 16MiB; default "0B")."""


class Fault(TypedDict, total=False):
    """A table of a scenario."""

    link: str
    """The link, like "leaf 0 -> spine 1", or with `<->` both directions. `*` stands for any text in
    a name, so that "agg * <-> core *" is a tier, and the fault is one of every link that matches;
    without it, of the first of parallel links (text)."""
    switch: str
    """In place of `link`: a switch, like "spine 1", with all its links in both directions; `*`
    stands for any text (text)."""
    at: Time
    """When the fault begins (time; default "0s")."""
    until: Time
    """When the fault ends, which may be in the drain; never if not given. With `every`, when the
    last of the faults ends at the latest (time)."""
    kind: Literal["down", "slow", "loss", "corrupt", "reorder"]
    """"down": queued, flying and arriving packets are lost; paths change as `routing.reroute_local`
    and `routing.reroute_global` say. "slow": the link has `fraction` of its rate. "reorder":
    packets are held back by `delay`, so that others overtake them ("down", "slow", "loss",
    "corrupt", "reorder")."""
    fraction: float
    """Of a slow link: its rate, rate limits, the memory of its port and the thresholds of marking,
    over their own. Memory that the ports of a switch share stays (number, above 0 and at most
    1)."""
    probability: float
    """Probability per packet (number, above 0 and at most 1)."""
    delay: Time
    """Time by which packets are held back (time, above 0 and at most 1s)."""
    lasts: Time
    """With `every`: length of each fault (time, above 0)."""
    every: Time
    """The fault comes again, after this time from its beginning (time, above 0)."""
    spacing: Literal["fixed", "random"]
    """With `every`: "random" draws the time between two faults from an exponential distribution
    with the same mean, for each link or switch; the first one is drawn too ("fixed", "random";
    default "fixed")."""
    share: float
    """Only this share of the links or switches that match, rounded, at least one, chosen by the
    seed (number, above 0 and at most 1)."""
    count: int
    """Only this number of the links or switches that match, chosen by the seed (whole number, at
    least 1)."""
    keep_paths: bool
    """With `share` or `count`: no pair of hosts loses its last shortest path; fewer fail if there
    are not enough (true or false; default "false")."""


class Measure(TypedDict, total=False):
    """A table of a scenario."""

    interval: Time
    """Compare the rate of each connection over intervals of this length with its max-min share
    (time, above 0)."""
    fair_share_after: Time
    """Time after each start or stop of a connection from which on rates are compared (time)."""
    sizes: Sequence[str]
    """Ranges of op sizes, like ["0B..10kB", "10kB.."] (ends excluded, without overlap), whose
    latency and slowdown each named workload reports (list of texts)."""
    ports: Mapping[str, Sequence[str]]
    """Groups of switch ports by name, like `edge = ["leaf * -> host *"]`; `*` stands for any text.
    Throughput, utilisation, loss and queues of a group are measured, and the loss of its classes in
    windows sorted by utilisation (table)."""
    window: Time
    """Length of the windows in which classes of ports are measured (time, above 0; default
    "1ms")."""
    queue_interval: Time
    """Time between two samples of the queues of ports (time, above 0; default "10us")."""
    compare: Sequence[Compare]
    """The loss of a class divided by that of another: the largest ratio over the buckets of
    utilisation (list of tables)."""
    settle: Sequence[Settle]
    """When a quantity stays above or below a threshold. The whole run counts (list of tables)."""
    span: Sequence[Span]
    """The value of a quantity between two times (list of tables)."""


class Record(TypedDict, total=False):
    """A table of a scenario."""

    interval: Time
    """Time between two samples; a 200th of the run if not given (time, above 0)."""
    flows: int
    """Flows whose samples are kept (whole number; default "64")."""
    ports: int
    """Ports whose samples are kept (whole number; default "32")."""
    ops: int
    """Most ops that are kept (whole number, at most 10000000; default "1000000")."""
    nics: bool
    """Sample the ports of the NICs of hosts too (true or false; default "false")."""
    packets: Sequence[str]
    """Ports whose packets are written to packets.pcapng, like "leaf 0 -> host 1"; `*` stands for
    any text (list of texts)."""
    most_packets: int
    """Most packets that are kept (whole number, from 1 to 1000000; default "100000")."""
    events: int
    """Flows whose packets and states are written as qlog, spread evenly (whole number, at most
    1000; default "0")."""
    most_events: int
    """Most packets and states of these flows that are kept (whole number, from 1 to 1000000;
    default "100000")."""


class Override(TypedDict, total=False):
    """A table of a scenario."""

    set: Mapping[str, Value]
    """Settings by dotted key, like { "algorithm.base_target" = "50us" }; in lists by number,
    `workload.0.size`, which a list of one does not need (table of settings by dotted key)."""
    reason: str
    """Why the settings differ from those that all scenarios of the testbed share (text)."""


class Variant(TypedDict, total=False):
    """A table of a scenario."""

    name: str
    """Name of the variant (text)."""
    value: str | float | bool
    """A number or quantity that checks can compare with (value)."""
    set: Mapping[str, Value]
    """Settings by dotted key, like { "algorithm.base_target" = "50us" }; in lists by number,
    `workload.0.size`, which a list of one does not need (table of settings by dotted key)."""
    reason: str
    """Why the settings differ from those that all scenarios of the testbed share (text)."""
    quick: bool
    """`false`: quick runs leave out the variant (true or false)."""


class Sweep(TypedDict, total=False):
    """A table of a scenario."""

    key: str
    """The dotted key (text)."""
    values: Sequence[str | float | bool]
    """Its values (list of values)."""
    quick: Sequence[str | float | bool]
    """The values of quick runs; all if not given (list of values)."""
    reason: str
    """Why the settings differ from those that all scenarios of the testbed share (text)."""


class Quick(TypedDict, total=False):
    """A table of a scenario."""

    set: Mapping[str, Value]
    """Settings by dotted key, like { "algorithm.base_target" = "50us" }; in lists by number,
    `workload.0.size`, which a list of one does not need (table of settings by dotted key)."""


class Check(TypedDict, total=False):
    """A table of a scenario."""

    name: str
    """Name of the check (text)."""
    kind: Literal["reproduction", "shape", "invariant", "formula"]
    """What the check shows: a number of a publication (`reproduction`), an order, limit or exponent
    that a publication states (`shape`), a property of every correct run (`invariant`), or the value
    of a formula of a specification (`formula`) ("reproduction", "shape", "invariant",
    "formula")."""
    metric: str
    """The metric, see below (text)."""
    variant: str | Sequence[str]
    """A variant, a list of them, or "all" (text or list of texts; default "all")."""
    increasing: Sequence[str]
    """In place of `variant` and `reduce`: variants in whose order the metric must grow. The value
    is the smallest ratio of a variant to the one before, and `low` is 1 if not given (list of
    texts)."""
    reduce: Literal["min", "max", "mean", "median", "exponent"]
    """One value of several variants; "exponent" is that of the power law through their values.
    Without it each variant is checked ("min", "max", "mean", "median", "exponent")."""
    rank_of: float
    """In place of `reduce`: one value of several variants, the share of them whose metric is less
    than this number. A publication's number that is one draw of their distribution has a share that
    is neither near 0 nor near 1 (number)."""
    relative_to: str | Divisor
    """Divisor of the metric: "max" of the experiment, "value" of the variant, or a table (text or
    table)."""
    samples: int
    """Least number of values, in each run, that a percentile must be of: the check fails with fewer
    (whole number, at least 1)."""
    unit: str
    """"%" for a fraction that is given in percent (text)."""
    paper: float
    """The value of the publication. A reproduction needs it; a check of another kind that has it
    states in `why` why it is no reproduction (number)."""
    fitted: str
    """Which setting was fitted, and to what. The check then shows that the number is possible, and
    is not counted as a reproduction (text)."""
    reading_error: str
    """Why the publication's value is known less precisely than within 25 %, the widest band of a
    reproduction (text)."""
    low: float
    """Lower end of the band (number)."""
    high: float
    """Upper end of the band (number)."""
    source: str
    """Where the value is from; the `source` of the scenario if not given (text)."""
    why: str
    """Why the metric may differ from the publication (text)."""
    differs: str
    """The check cannot be met without bending the model: the measured value and the likely cause.
    It is printed as "differs" and fails only if all its medians are in the band (text)."""
    quick: bool
    """`false`: quick runs leave out the check (true or false)."""


class Reroute(TypedDict, total=False):
    """A table of a scenario."""

    at: Time
    """When the path changes (time)."""
    through: Sequence[str]
    """The switches of the new path, like ["leaf 0", "spine 1", "leaf 2"] (list of texts)."""


class Engine(TypedDict, total=False):
    """A table of a scenario."""

    scale: float
    """Factor on the costs of the model; stalls and costs that are given are not multiplied (number,
    from 0.1 to 10)."""
    round: Time
    """One turn of the loop (time, above 0 and at most 1s)."""
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
    """Beginning an op at the sender (time, at most 1s)."""
    copy_kib: Time
    """Copying 1 KiB of payload at the receiver (time, at most 1s)."""
    stall: Time
    """Mean length of a stall, in which the thread loses its core (exponential) (time, at most
    1s)."""
    stall_every: Time
    """Mean work between two stalls (exponential); 0s: no stalls (time)."""
    noise: float
    """Share of every cost that is random (number, from 0 to 1)."""
    batch: int
    """Most packets that one turn receives, and sends; one acknowledgement must be able to report
    them (whole number, from 1 to 128)."""
    shared: bool
    """One thread serves both directions (true or false)."""


Compare = TypedDict(
    "Compare",
    {
        # Name of the comparison (text).
        "name": "str",
        # Group of `[measure.ports]` (text).
        "ports": "str",
        # Class whose loss is divided (text).
        "class": "str",
        # Class whose loss is the divisor (text).
        "with": "str",
        # Only buckets in which `with` loses at least this share count (number, above 0 and at most
        # 1; default "1e-4").
        "floor": "float",
        # Utilisation by which windows are sorted: that of the port, or of the class; "nothing": one
        # bucket of all windows ("port", "class", "nothing"; default "port").
        "by": 'Literal["port", "class", "nothing"]',
    },
    total=False,
)


class Settle(TypedDict, total=False):
    """A table of a scenario."""

    name: str
    """Name of the question (text)."""
    of: Measured
    """The part of the run that has the quantity (table)."""
    quantity: Literal["throughput", "queue", "queue_bytes", "goodput", "share"]
    """Of ports, all ports of a group together: "throughput", "queue" (a time), "queue_bytes" (of
    the port with the longest queue); of workloads and flows: "goodput", "share" of all goodput
    ("throughput", "queue", "queue_bytes", "goodput", "share")."""
    interval: Time
    """Time over which the quantity is averaged (time, above 0)."""
    after: str
    """Start of the search (time, "first end of NAME" or "last end of NAME" (of a workload's ops);
    default "0s")."""
    above: str | float
    """The quantity must be above this (time, rate, size or number)."""
    below: str | float
    """The quantity must be below this (time, rate, size or number)."""
    hold: Time
    """Time for which the quantity must stay so (time)."""
    lead: Time
    """Time by which the end of an op is moved forward; whole intervals from there on count (time;
    default "0s")."""


Span = TypedDict(
    "Span",
    {
        # Name of the question (text).
        "name": "str",
        # The part of the run that has the quantity (table).
        "of": "Measured",
        # Of ports, all ports of a group together: "throughput", "queue" (a time), "queue_bytes" (of
        # the port with the longest queue); of workloads and flows: "goodput", "share" of all
        # goodput ("throughput", "queue", "queue_bytes", "goodput", "share").
        "quantity": 'Literal["throughput", "queue", "queue_bytes", "goodput", "share"]',
        # Time over which the quantity is averaged (time, above 0).
        "interval": "Time",
        # Start (time, "first end of NAME" or "last end of NAME" (of a workload's ops); default
        # "0s").
        "from": "str",
        # End; that of the run if not given (time, "first end of NAME" or "last end of NAME" (of a
        # workload's ops)).
        "to": "str",
        # Time by which the end of an op is moved forward; whole intervals from there on count
        # (time; default "0s").
        "lead": "Time",
    },
    total=False,
)


class Divisor(TypedDict, total=False):
    """A table of a scenario."""

    variant: str | Sequence[str]
    """The variant whose metric is the divisor, or a list with one per variant of the check (text or
    list of texts)."""
    metric: str
    """The metric that it is divided by: of that variant, or of the same run; the same metric if not
    given (text)."""
    gain: bool
    """`true`: the gain over the divisor, which is the ratio minus 1. A small gain is then not
    hidden by a ratio near 1 (true or false)."""


class Measured(TypedDict, total=False):
    """A table of a scenario."""

    ports: str
    """A group of `[measure.ports]` (text)."""
    workload: str
    """A workload with a `name` (text)."""
    flow: int
    """A flow by its number (whole number)."""
