"""Numbers of a run, each with its definition, unit and aggregation.

Made from the declarations of scenario files (`python/tools/generate.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from apus._numbers import (
    Convert,
    Distribution,
    Each,
    Every,
    Numbers,
    OpDistribution,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


__all__ = [
    "BusiestPort",
    "Compare",
    "Credits",
    "Distribution",
    "Drain",
    "Jobs",
    "Losses",
    "Measured",
    "Offered",
    "OfferedWorkload",
    "OpDistribution",
    "Packets",
    "Ports",
    "PortsClass",
    "PortsClassByClass",
    "PortsClassByPort",
    "Settle",
    "Span",
    "Stalled",
    "Startup",
    "Summary",
    "Work",
    "Workload",
    "WorkloadSize",
]


class Startup(Numbers):
    """Part `startup` of the summary."""

    seconds: float
    """Warm-up: simulated length of the phase; unit: s."""
    data_packets_sent: int
    """Warm-up: data packets that hosts sent, retransmissions included; sum over hosts."""
    acks_sent: int
    """Warm-up: acknowledgements that hosts sent; sum over hosts."""
    data_packets_delivered: int
    """Warm-up: data packets that reached a stack; sum over hosts."""
    duplicates_delivered: int
    """Warm-up: delivered data packets that held nothing new: needless retransmissions; sum over
    hosts."""
    drops: int
    """Warm-up: packets dropped at switch ports; sum over switch ports."""
    loss_rate: float
    """Warm-up: packets dropped / packets sent into switch ports' queues; all switch ports
    together."""
    ops: int
    """Warm-up: ops that completed; sum over flows."""
    unfinished_ops: int
    """Warm-up: ops submitted in the phase that had not ended after the drain; distributions contain
    those of the measured phase only; sum over flows."""
    oldest_unfinished_us: float
    """Warm-up: age of the oldest of them; 0 if there are none; unit: us; maximum over flows."""


class Measured(Numbers):
    """Part `measured` of the summary."""

    seconds: float
    """Measured phase: simulated length of the phase; unit: s."""
    data_packets_sent: int
    """Measured phase: data packets that hosts sent, retransmissions included; sum over hosts."""
    acks_sent: int
    """Measured phase: acknowledgements that hosts sent; sum over hosts."""
    data_packets_delivered: int
    """Measured phase: data packets that reached a stack; sum over hosts."""
    duplicates_delivered: int
    """Measured phase: delivered data packets that held nothing new: needless retransmissions; sum
    over hosts."""
    drops: int
    """Measured phase: packets dropped at switch ports; sum over switch ports."""
    loss_rate: float
    """Measured phase: packets dropped / packets sent into switch ports' queues; all switch ports
    together."""
    ops: int
    """Measured phase: ops that completed; sum over flows."""
    unfinished_ops: int
    """Measured phase: ops submitted in the phase that had not ended after the drain; distributions
    contain those of the measured phase only; sum over flows."""
    oldest_unfinished_us: float
    """Measured phase: age of the oldest of them; 0 if there are none; unit: us; maximum over
    flows."""


class Credits(Numbers):
    """Part `credits` of the summary."""

    sent: int
    """Credits that receivers sent; sum over the measured phase."""
    received: int
    """Credits that reached a sender; sum over the measured phase."""
    wasted: int
    """Credits that reached a sender and found nothing to send; sum over the measured phase."""
    waste_rate: float
    """Wasted / received credits; over the measured phase."""
    data_drops: int
    """Packets dropped in the class of data, in a run with credits; sum over the whole run, all
    ports."""
    max_data_queue_bytes: int
    """Wire bytes of data at a switch port that credits called for, requests and ACKs not counted;
    unit: B; maximum over the whole run and all switch ports."""
    bound_bytes: int | None
    """The bound on it by network calculus, at that port, if nothing unscheduled comes; null if
    there is none; unit: B."""
    unscheduled_bytes: int
    """Wire bytes of requests, stops and ACKs that came to that port while it never was empty; unit:
    B; maximum over the whole run."""
    bound_used: float | None
    """The data queue over its bound by network calculus plus unscheduled bytes; above 1 the run
    fails; maximum over the whole run and all ports."""


class BusiestPort(Numbers):
    """Part `busiest_port` of the summary."""

    name: str
    """Busiest switch port: name of the port, which sent most wire bytes in the measured phase."""
    throughput_gbps: float
    """Busiest switch port: wire bytes sent * 8 / length of the measured phase; unit: Gb/s; mean
    over the measured phase."""
    utilisation: float
    """Busiest switch port: throughput over the link's rate without faults; mean over the measured
    phase."""
    loss_rate: float
    """Busiest switch port: packets dropped / packets sent into the port's queue; over the measured
    phase."""
    drops: int
    """Busiest switch port: packets dropped at the port; sum over the measured phase."""
    mean_queue_bytes: float
    """Busiest switch port: wire bytes in the port: (integral of occupancy over time) / time; unit:
    B; time average over the measured phase."""
    max_queue_bytes: int
    """Busiest switch port: wire bytes in the port, the arriving packet included; unit: B; maximum
    over the measured phase."""
    startup_max_queue_bytes: int
    """Busiest switch port: wire bytes in the port, the arriving packet included; unit: B; maximum
    over the warm-up."""


class Packets(Numbers):
    """Part `packets` of the summary."""

    sent: int
    """Packets that hosts handed to the fabric, and signals that switches made; sum over the whole
    run."""
    signals: int
    """Signals that switches made for sources (Bolt's SRC); sum over the whole run."""
    delivered: int
    """Packets that reached their host's NIC; sum over the whole run."""
    dropped: int
    """Packets that the fabric dropped; sum over the whole run."""
    trimmed: int
    """Packets whose payload a port removed for lack of room; sum over the whole run."""
    headers_lost: int
    """Headers of these that found no room in that port: included in `packets.dropped`; sum over the
    whole run."""
    in_flight: int
    """Packets still on their way at the end: sent - delivered - dropped; sum over the whole run."""
    dropped_at_nic: int
    """Delivered packets that a NIC's full receive queue dropped; sum over the whole run."""


class OfferedWorkload(Numbers):
    """Numbers of one entry of `workload`."""

    open_loop: bool
    """Whether ops arrive independently of the ends of other ops; a closed loop submits an op when
    another ends."""
    ops: int | None
    """Ops that arrive; null for a closed loop; sum over the measured phase."""
    offered_gbps: float | None
    """Payload of `ops` * 8 / the time in which they arrive; null for a closed loop, or if all
    arrive at once; unit: Gb/s; sum over its flows."""
    max_link_load: float | None
    """Largest offered load of a link by this workload alone; null where `offered_gbps` is; the time
    in which its ops arrive, within the measured phase."""


class Offered(Numbers):
    """Part `offered` of the summary."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {
        "workload": Each(OfferedWorkload),
    }

    max_link: str | None
    """Name of the egress port of the link with the largest offered load; null without open
    loops."""
    max_link_load: float | None
    """Largest offered load of a link; the time in which ops of open loops arrive, within the
    measured phase."""
    host_link_load: float | None
    """Largest offered load of a link between a host and a switch; the time in which ops of open
    loops arrive, within the measured phase."""
    switch_link_load: float | None
    """Largest offered load of a link between switches; the time in which ops of open loops arrive,
    within the measured phase."""
    mean_switch_link_load: float | None
    """Mean offered load of the links between switches: the demand on the bisection; the time in
    which ops of open loops arrive, within the measured phase."""
    workload: Mapping[str, OfferedWorkload]
    """Part `workload`."""


class Losses(Numbers):
    """Part `losses` of the summary."""

    packets: int
    """Packets lost for any cause; sum over the whole run, warm-up included."""
    loss_rate: float
    """`losses.packets` / `packets.sent`; sum over the whole run, warm-up included."""
    buffer: int
    """Packets for which a port or switch had no memory; sum over the whole run, warm-up
    included."""
    link_down: int
    """Packets lost as a link was down; sum over the whole run, warm-up included."""
    link_loss: int
    """Packets that links lost at random; sum over the whole run, warm-up included."""
    corruption: int
    """Packets that links corrupted; sum over the whole run, warm-up included."""
    ttl: int
    """Packets whose TTL reached 0; sum over the whole run, warm-up included."""
    switch_half: int
    """Packets that the switch half of the algorithm refused; sum over the whole run, warm-up
    included."""
    credit_limit: int
    """Credits beyond their share of a link, which is how credits share it; sum over the whole run,
    warm-up included."""
    nic_queue: int
    """Packets that a NIC's full receive queue dropped; sum over the whole run, warm-up included."""
    lossy_ports: int
    """Ports at which packets were dropped; sum over the whole run, warm-up included."""
    ports: Sequence[Mapping[str, Any]]
    """The ports that lost most packets, each with `port`, `packets` and the packets by cause; at
    most 8, all are in ports.csv; sum over the whole run, warm-up included."""


class Drain(Numbers):
    """Part `drain` of the summary."""

    seconds: float
    """Simulated time after the measured phase, until its ops had ended; unit: s."""
    limit_s: float
    """Limit of `drain.seconds`: `drain` in the scenario; unit: s."""
    ended_by: str
    """Complete: every op that is waited for had ended; limit: `drain` was over; stuck: no packet
    was delivered any more; interrupted."""


class Stalled(Numbers):
    """Part `stalled` of the summary."""

    noticed: int
    """Flows of which the peer acknowledged nothing for longer than 4 retransmission timeouts with
    their pace's gaps, or over 4 timeouts in a row; one timeout is enough if a link on their path is
    down. Looked for about 30 times a run; over the whole run and its drain."""
    at_end: int
    """Stalled flows that made no further progress; at the end of the drain."""
    flows: Sequence[Mapping[str, Any]]
    """The first 64 of them: `flow`, `host` and `peer`, from `since_us` to `until_us` (null: to the
    end), the number of outstanding `ops`, and the `reason` if known."""


class Work(Numbers):
    """Part `work` of the summary."""

    events: int
    """Events of the simulator; sum over the run."""
    packet_hops: int
    """Packets times links that they crossed; sum over the run."""
    event_hash: str
    """Hash of when each entity had an event: equal for any number of threads."""


class WorkloadSize(Numbers):
    """Numbers of one entry of `size`."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {
        "op_latency_us": OpDistribution,
        "slowdown": OpDistribution,
    }

    op_latency_us: OpDistribution
    """As `op_latency_us`, of ops in the range `n` (from 0) of `sizes` in `[measure]`; unit: us;
    over its ops submitted in the measured phase."""
    slowdown: OpDistribution
    """As `slowdown`, of ops in the range `n` (from 0) of `sizes` in `[measure]`; over its ops
    submitted in the measured phase."""


class Workload(Numbers):
    """Numbers of one entry of `workload`."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {
        "flow_share": Distribution,
        "op_latency_us": OpDistribution,
        "slowdown": OpDistribution,
        "fabric_rtt_us": Distribution,
        "end_to_end_rtt_us": Distribution,
        "endpoint_delay_us": Distribution,
        "target_delay_us": Distribution,
        "cwnd_packets": Distribution,
        "fabric_cwnd_packets": Distribution,
        "endpoint_cwnd_packets": Distribution,
        "size": Each(WorkloadSize),
    }

    throughput_gbps: float
    """Wire bytes of the workload's data packets that reached a stack, resent ones included, * 8 /
    length of the measured phase; unit: Gb/s; sum over its flows."""
    goodput_gbps: float
    """Payload bytes of the workload delivered once * 8 / length of the measured phase; unit: Gb/s;
    sum over its flows."""
    ops: int
    """Ops of the workload that completed; sum over its flows."""
    ops_per_s: float
    """`ops` / length of the measured phase; unit: 1/s."""
    ops_failed: int
    """`ops` that did not succeed; sum over its flows."""
    late: float | None
    """Ops that failed or took longer than the workload's `deadline` / all; null without a deadline,
    or if `late_lower` and `late_upper` differ by over 1 %; over its ops submitted in the measured
    phase."""
    late_lower: float | None
    """Lower bound of `late`: unfinished ops that are not late yet count as in time; over its ops
    submitted in the measured phase."""
    late_upper: float | None
    """Upper bound of `late`: every unfinished op counts as late; over its ops submitted in the
    measured phase."""
    data_packets_sent: int
    """Data packets that hosts sent, retransmissions included; sum over its flows."""
    acks_sent: int
    """Acknowledgements that hosts sent; sum over its flows."""
    jain: float
    """Jain's index of goodput, as `jain`; over its flows, measured phase."""
    flow_share: Distribution
    """A flow's goodput / the mean over the workload's flows; over its flows, measured phase."""
    op_latency_us: OpDistribution
    """As `op_latency_us`; unit: us; over its ops submitted in the measured phase."""
    slowdown: OpDistribution
    """Latency / ideal completion time; null if it is censored, as `op_latency_us`; over its ops
    submitted in the measured phase."""
    fabric_rtt_us: Distribution
    """As `fabric_rtt_us`; unit: us; over its acknowledgements of the measured phase."""
    end_to_end_rtt_us: Distribution
    """As `end_to_end_rtt_us`; unit: us; over its acknowledgements of the measured phase."""
    endpoint_delay_us: Distribution
    """As `endpoint_delay_us`; unit: us; over its acknowledgements of the measured phase."""
    target_delay_us: Distribution
    """Fabric target (Swift §3.5), as the algorithm shows it; unit: us; over its acknowledgements of
    the measured phase."""
    cwnd_packets: Distribution
    """Window in force, as the algorithm shows it; a flow without a limit has none; unit: packets;
    over its acknowledgements of the measured phase."""
    fabric_cwnd_packets: Distribution
    """Window that follows the fabric delay, as the algorithm shows it; unit: packets; over its
    acknowledgements of the measured phase."""
    endpoint_cwnd_packets: Distribution
    """Window that follows the endpoint delay, as the algorithm shows it; unit: packets; over its
    acknowledgements of the measured phase."""
    endpoint_limited: float | None
    """Share of acknowledgements after which the endpoint's window was the smaller of both; null for
    algorithms without both; over its acknowledgements of the measured phase."""
    size: Mapping[str, WorkloadSize]
    """Part `size`."""


class PortsClassByPort(Numbers):
    """Numbers of one entry of `by_port`."""

    windows: int
    """Windows of time, per port, in which the class was offered a packet; windows in which the
    utilisation by the port, or by the class alone, was in this 10 %."""
    loss_rate: float | None
    """Packets of the class dropped / packets sent into the ports' queues; windows in which the
    utilisation by the port, or by the class alone, was in this 10 %."""
    loss_rate_p99_9: float | None
    """99.9th percentile (nearest rank) of the `loss_rate` of each window of each port, so the
    largest of up to 1000; windows in which the utilisation by the port, or by the class alone, was
    in this 10 %."""


class PortsClassByClass(Numbers):
    """Numbers of one entry of `by_class`."""

    windows: int
    """Windows of time, per port, in which the class was offered a packet; windows in which the
    utilisation by the port, or by the class alone, was in this 10 %."""
    loss_rate: float | None
    """Packets of the class dropped / packets sent into the ports' queues; windows in which the
    utilisation by the port, or by the class alone, was in this 10 %."""
    loss_rate_p99_9: float | None
    """99.9th percentile (nearest rank) of the `loss_rate` of each window of each port, so the
    largest of up to 1000; windows in which the utilisation by the port, or by the class alone, was
    in this 10 %."""


class PortsClass(Numbers):
    """Numbers of one entry of `class`."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {
        "by_port": Each(PortsClassByPort),
        "by_class": Each(PortsClassByClass),
    }

    throughput_gbps: float
    """Wire bytes of the class that ports of the group sent * 8 / length of the measured phase in
    whole windows; unit: Gb/s; sum over ports."""
    windows: int
    """Windows of time, per port, in which the class was offered a packet; all ports, measured
    phase."""
    loss_rate: float | None
    """Packets of the class dropped / packets sent into the ports' queues; all ports and windows."""
    loss_rate_p99_9: float | None
    """99.9th percentile (nearest rank) of the `loss_rate` of each window of each port, so the
    largest of up to 1000; over windows."""
    by_port: Mapping[str, PortsClassByPort]
    """Part `by_port`."""
    by_class: Mapping[str, PortsClassByClass]
    """Part `by_class`."""


class Ports(Numbers):
    """Numbers of one entry of `ports`."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {
        "queue_us": Distribution,
        "queue_bytes": Distribution,
        "class": Each(PortsClass),
    }

    throughput_gbps: float
    """Wire bytes that the group's ports sent * 8 / length of the measured phase; unit: Gb/s; sum
    over ports."""
    utilisation: float
    """`throughput_gbps` over the rates of the ports' links together, without faults; mean over the
    measured phase."""
    loss_rate: float
    """Packets dropped / packets sent into the ports' queues; all ports together."""
    drops: int
    """Packets dropped at the ports; sum over ports."""
    queue_us: Distribution
    """Wire bytes in a port, the packet in service included, as the time that its link takes for
    them without faults; unit: us; over samples of each port, every `queue_interval`; mean (over
    time and ports) and maximum exact."""
    queue_bytes: Distribution
    """Wire bytes in a port, the packet in service included; unit: B; over samples of each port,
    every `queue_interval`; mean (over time and ports) and maximum exact."""
    class_: Mapping[str, PortsClass]
    """Part `class`."""


class Settle(Numbers):
    """Numbers of one entry of `settle`."""

    time_us: float | None
    """Time from `after` to the first interval from which on the quantity stays beyond its threshold
    for `hold`; null if it never does; unit: us; the whole run."""


class Span(Numbers):
    """Numbers of one entry of `span`."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {
        "throughput_gbps": Distribution,
        "queue_us": Distribution,
        "queue_bytes": Distribution,
        "goodput_gbps": Distribution,
        "share": Distribution,
    }

    throughput_gbps: Distribution | None
    """Wire bytes sent per time by a group of ports; unit: Gb/s; over the intervals between `from`
    and `to`; exact."""
    queue_us: Distribution | None
    """Mean `queue_us` over an interval, of the group's port that has most; unit: us; over the
    intervals between `from` and `to`; exact."""
    queue_bytes: Distribution | None
    """Mean `queue_bytes` over an interval, of the group's port that has most; unit: B; over the
    intervals between `from` and `to`; exact."""
    goodput_gbps: Distribution | None
    """Payload bytes delivered once per time, of a workload or a flow; unit: Gb/s; over the
    intervals between `from` and `to`; exact."""
    share: Distribution | None
    """Goodput of a workload or a flow over that of all flows; over the intervals between `from` and
    `to`; exact."""


class Compare(Numbers):
    """Numbers of one entry of `compare`."""

    buckets: int
    """Buckets of utilisation in which the other class loses at least the floor, and both have
    packets."""
    buckets_p99_9: int
    """Buckets of `buckets` in which `loss_rate_p99_9` of either class is above 0."""
    windows: int
    """Windows of ports in which the other class was offered a packet; up to 1000, the 99.9th
    percentile is the largest; largest of those buckets."""
    loss_ratio: float | None
    """`loss_rate` of the class / that of the other one; largest of those buckets."""
    loss_ratio_p99_9: float | None
    """`loss_rate_p99_9` of the class / that of the other one; 10^6 where only that is 0; largest of
    those buckets."""


class Jobs(Numbers):
    """Numbers of one entry of `jobs`."""

    name: str
    """Name of the job."""
    completion_us: float | None
    """Start of the job to the end of its last operation; a send ends a job only if `done` is
    acknowledged or loggops, as its receive ends later otherwise; null if operations have not ended;
    unit: us; from the start of the job to its end."""
    ideal_us: float | None
    """The least time on the fabric without other traffic and queues, on paths that do not change:
    the closed form of the collective if all its messages have equal paths, otherwise the longest of
    the critical path, the time that the busiest NIC, or rank within its host, needs for its bytes,
    and the computations of the busiest stream; the longest of all of these where the closed form is
    a lower bound only (docs/jobs.md); null if the job has more than 8 million operations or cannot
    end; unit: us; from the start of the job to its end."""
    ideal_source: str | None
    """Closed form, critical path, bytes of the busiest NIC, bytes of the busiest rank within its
    host, or computations of the busiest stream; null without `ideal_us`."""
    slowdown: float | None
    """Completion_us / ideal_us; from the start of the job to its end."""
    done: str
    """When a send is done: local (its last byte has left), delivered (its message has arrived; the
    sender hears of it after the propagation delay of the path), acknowledged (the sender has the
    acknowledgement), or loggops (by the rules of the host model)."""
    ranks: int
    """Ranks."""
    ops: int
    """Operations; sum over ranks."""
    bytes: int
    """Bytes of all messages; sum over ranks."""
    unfinished: int
    """Operations that have not ended; sum over ranks."""
    unexpected: int
    """Messages that no receive has taken; sum over ranks."""
    algorithm_bandwidth_gbps: float | None
    """Size of the collective * iterations * 8 / completion_us; null if the job is not a collective;
    unit: Gb/s; from the start of the job to its end."""
    bus_bandwidth_gbps: float | None
    """Algorithm bandwidth times the factor of nccl-tests: 2(N-1)/N for an all-reduce, (N-1)/N for
    an all-gather, a reduce-scatter and an all-to-all, 1 for a broadcast; null for other jobs; unit:
    Gb/s; from the start of the job to its end."""
    compute_us: float
    """Time in which a computation ran; unit: us; mean over the ranks."""
    send_us: float
    """Time in which no computation ran and a message of the rank was outstanding; unit: us; mean
    over the ranks."""
    wait_us: float
    """Rest of the time until the job ended: the rank waited for others; unit: us; mean over the
    ranks."""
    iterations_us: Sequence[float]
    """Time of each iteration, until the end of its last operation; of a file, one for the whole
    job; unit: us."""
    parts: Sequence[Mapping[str, Any]]
    """The parts of a generated job by name, such as the collectives of a training step: name,
    count, unfinished, bytes (sum of S or of messages), mean_us and max_us (first send to last
    receive of a part, on any rank), first_us and last_us (since the start of the job)."""
    critical_steps: int | None
    """Operations and messages on the critical path: the chain without a gap that ended the job;
    null if operations have not ended, or if the job has more than 8 million; from the start of the
    job to its end."""
    critical_compute_us: float | None
    """Time of computations on the critical path; unit: us; from the start of the job to its end."""
    critical_wire_us: float | None
    """Time that the messages of the critical path take on the fabric without other traffic, with
    the times of hosts of the LogGOPS model; unit: us; from the start of the job to its end."""
    critical_delay_us: float | None
    """Time of these messages beyond that: other messages of the rank, windows of flows, queues;
    unit: us; from the start of the job to its end."""
    critical_messages: Sequence[Mapping[str, Any]]
    """Messages of the critical path, those with most delay first, at most 16: from, to, op (of the
    sender), bytes, start_us, end_us, ideal_us, delay_us, link (the port of its path in which bytes
    spent most time on average; null within a host and for several paths)."""
    stragglers: Sequence[Mapping[str, Any]]
    """The ranks that waited least, for which the others waited: rank, host, end_us, compute_us,
    send_us, wait_us; at most 16."""
    stuck: Sequence[str]
    """Operations that have not ended, in words, at most 16."""
    leftover: Sequence[str]
    """Messages that no receive has taken, in words, at most 16."""


class Summary(Numbers):
    """The numbers of a run."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {
        "fabric_rtt_us": Distribution,
        "end_to_end_rtt_us": Distribution,
        "endpoint_delay_us": Distribution,
        "nic_rx_delay_us": Distribution,
        "op_latency_us": OpDistribution,
        "startup": Startup,
        "measured": Measured,
        "credits": Credits,
        "busiest_port": BusiestPort,
        "packets": Packets,
        "offered": Offered,
        "losses": Losses,
        "drain": Drain,
        "stalled": Stalled,
        "work": Work,
        "workload": Each(Workload),
        "ports": Each(Ports),
        "settle": Each(Settle),
        "span": Each(Span),
        "compare": Each(Compare),
        "jobs": Every(Jobs),
    }

    name: str
    """The scenario, and its variant."""
    seed: int
    """Seed of all random number streams."""
    simulated_s: float
    """Simulated time, warm-up included; less than `duration` if the run was interrupted; unit:
    s."""
    makespan_us: float | None
    """Start of the first message to the end of the last op; null if an op has not ended, and if not
    all workloads are traces; unit: us; over the whole run and its drain."""
    makespan_lower_us: float | None
    """Lower bound of `makespan_us`: the unfinished ops had ended with the run; unit: us; over the
    whole run and its drain."""
    interrupted: bool
    """Whether the run ended early."""
    stop_reason: str | None
    """Reason of the early end; null without one."""
    throughput_gbps: float
    """Wire bytes sent * 8 / length of the measured phase, at the busiest switch port; unit: Gb/s;
    mean over the measured phase."""
    goodput_gbps: float
    """Payload bytes delivered once * 8 / length of the measured phase; unit: Gb/s; sum over all
    flows."""
    duplicate_gbps: float
    """Payload bytes delivered again * 8 / length of the measured phase; unit: Gb/s; sum over all
    flows."""
    engine_ns_per_kb: float | None
    """Work of the hosts' engines, stalls apart / payload bytes delivered once, times 1000; null if
    engines cost nothing; unit: ns/kB; all hosts, over the measured phase."""
    acks_per_packet: float | None
    """Acknowledgements sent / data packets that reached a stack; all hosts, over the measured
    phase."""
    signals_gbps: float
    """Wire bytes of signals that switches sent to sources (Bolt's SRC) * 8 / length of the run;
    unit: Gb/s; sum over the whole run and all switches; each counts once, however many links it
    takes."""
    loss_rate: float
    """Packets dropped / packets sent into the queue of the busiest switch port; over the measured
    phase."""
    startup_loss_rate: float
    """Packets dropped / packets sent into switch ports' queues, all ports together; over the
    warm-up."""
    jain: float
    """Jain's index of goodput x: (sum x)^2 / (n * sum x^2); 1 for equal flows, 1/n if one flow has
    all goodput; over all flows, measured phase."""
    fair_share_deviation: float | None
    """|rate / max-min fair share - 1|; only if the scenario has `[measure]`; maximum over flows and
    intervals that no start or stop disturbs."""
    fair_share_jain: float | None
    """Jain's index of rate / max-min fair share; only if the scenario has `[measure]`; minimum over
    intervals that no start or stop disturbs."""
    groups: Sequence[Mapping[str, Any]]
    """The workloads, each with `workload` (its name, or one derived from its kind) and the columns
    of workloads.csv up to `goodput_share` (`oldest_unfinished_us` is 0 if all ops ended); their
    latencies are in `workload`; over the measured phase."""
    totals: Sequence[Mapping[str, Any]]
    """Sums over `groups` with a common property: `by` is the property (workload, algorithm or
    class), `name` which one, `groups` is their number; `oldest_unfinished_us` is the maximum; over
    the measured phase."""
    faults: Sequence[Mapping[str, Any]]
    """Faults and reroutes, each with the columns of faults.csv."""
    notes: Sequence[str]
    """Warnings, and data that the tables omit, in sentences."""
    fabric_rtt_us: Distribution
    """T6 - t1 - endpoint delay: NIC to NIC as Swift computes it (§3.3); unit: us; over
    acknowledgements of the measured phase."""
    end_to_end_rtt_us: Distribution
    """T6 - t1: from the stack that sends to the same stack (Swift Fig. 2); unit: us; over
    acknowledgements of the measured phase."""
    endpoint_delay_us: Distribution
    """Remote_queuing + (t6 - t5) (Swift §3.3); unit: us; over acknowledgements of the measured
    phase."""
    nic_rx_delay_us: Distribution
    """T3 - t2 of data, t6 - t5 of acknowledgements (Swift Fig. 2): from the NIC's receipt to the
    stack; no values with hosts whose engine costs nothing; unit: us; over packets received in the
    measured phase."""
    op_latency_us: OpDistribution
    """Submission to completion, of ops submitted in the measured phase; null if it is censored: if
    the bounds that unfinished ops set differ by more than 1 %; unit: us; over ops of the measured
    phase."""
    startup: Startup
    """Part `startup`."""
    measured: Measured
    """Part `measured`."""
    credits: Credits
    """Part `credits`."""
    busiest_port: BusiestPort
    """Part `busiest_port`."""
    packets: Packets
    """Part `packets`."""
    offered: Offered
    """Part `offered`."""
    losses: Losses
    """Part `losses`."""
    drain: Drain
    """Part `drain`."""
    stalled: Stalled
    """Part `stalled`."""
    work: Work
    """Part `work`."""
    workload: Mapping[str, Workload]
    """Part `workload`."""
    ports: Mapping[str, Ports]
    """Part `ports`."""
    settle: Mapping[str, Settle]
    """Part `settle`."""
    span: Mapping[str, Span]
    """Part `span`."""
    compare: Mapping[str, Compare]
    """Part `compare`."""
    jobs: Sequence[Jobs]
    """Part `jobs`."""
