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
    """Warm-up: acknowledgements and NACKs that hosts sent; sum over hosts."""
    data_packets_delivered: int
    """Warm-up: data packets that reached a stack; sum over hosts."""
    duplicates_delivered: int
    """Warm-up: data packets that reached a stack and held nothing new: unnecessary retransmissions;
    sum over hosts."""
    drops: int
    """Warm-up: packets dropped at switch ports; sum over switch ports."""
    loss_rate: float
    """Warm-up: packets dropped / packets sent into switch ports' queues; all switch ports
    together."""
    ops: int
    """Warm-up: ops that completed, with any outcome; sum over flows."""
    unfinished_ops: int
    """Warm-up: ops submitted in the phase that had not ended after the drain; distributions include
    only those of the measured phase; sum over flows."""
    oldest_unfinished_us: float
    """Warm-up: age of the oldest unfinished op of the phase; 0 if there are none; unit: us; maximum
    over flows."""


class Measured(Numbers):
    """Part `measured` of the summary."""

    seconds: float
    """Measured phase: simulated length of the phase; unit: s."""
    data_packets_sent: int
    """Measured phase: data packets that hosts sent, retransmissions included; sum over hosts."""
    acks_sent: int
    """Measured phase: acknowledgements and NACKs that hosts sent; sum over hosts."""
    data_packets_delivered: int
    """Measured phase: data packets that reached a stack; sum over hosts."""
    duplicates_delivered: int
    """Measured phase: data packets that reached a stack and held nothing new: unnecessary
    retransmissions; sum over hosts."""
    drops: int
    """Measured phase: packets dropped at switch ports; sum over switch ports."""
    loss_rate: float
    """Measured phase: packets dropped / packets sent into switch ports' queues; all switch ports
    together."""
    ops: int
    """Measured phase: ops that completed, with any outcome; sum over flows."""
    unfinished_ops: int
    """Measured phase: ops submitted in the phase that had not ended after the drain; distributions
    include only those of the measured phase; sum over flows."""
    oldest_unfinished_us: float
    """Measured phase: age of the oldest unfinished op of the phase; 0 if there are none; unit: us;
    maximum over flows."""


class Credits(Numbers):
    """Part `credits` of the summary."""

    sent: int
    """Credits that receivers sent; sum over the measured phase."""
    received: int
    """Credits that reached a sender; sum over the measured phase."""
    wasted: int
    """Credits that reached a sender without data to send; sum over the measured phase."""
    waste_rate: float
    """`credits.wasted` / `credits.received`; over the measured phase."""
    data_drops: int
    """Packets dropped in the traffic class of data; 0 in a run without credits; sum over the
    warm-up and the measured phase, all ports."""
    max_data_queue_bytes: int
    """Wire bytes of credit-scheduled data in a switch port; requests and ACKs do not count; unit:
    B; maximum over the warm-up, the measured phase and all switch ports."""
    bound_bytes: int | None
    """Network-calculus bound of `credits.max_data_queue_bytes` at the same port, if no unscheduled
    packet arrives; null if there is no bound; unit: B."""
    unscheduled_bytes: int
    """Wire bytes of requests, stops and ACKs that arrived at the same port while its data queue was
    never empty; unit: B; maximum over the warm-up and the measured phase."""
    bound_used: float | None
    """Credit-scheduled data in a port / its bound by network calculus, which includes the
    unscheduled bytes. The run fails above 1; null if there is no bound; maximum over the warm-up,
    the measured phase and all ports."""


class BusiestPort(Numbers):
    """Part `busiest_port` of the summary."""

    name: str
    """Busiest switch port: name of the port; it is the switch port that sent the most wire bytes in
    the measured phase."""
    throughput_gbps: float
    """Busiest switch port: wire bytes sent * 8 / length of the measured phase; unit: Gb/s; mean
    over the measured phase."""
    utilisation: float
    """Busiest switch port: throughput / rate of the link without faults; mean over the measured
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
    """Packets that hosts handed to the fabric, and signals that switches generated; sum over the
    warm-up and the measured phase."""
    signals: int
    """Signals that switches sent to sources (Bolt's SRC); sum over the warm-up and the measured
    phase."""
    delivered: int
    """Packets that reached the NIC of their host; sum over the warm-up and the measured phase."""
    dropped: int
    """Packets that the fabric dropped; sum over the warm-up and the measured phase."""
    trimmed: int
    """Packets whose payload a port removed for lack of room; sum over the warm-up and the measured
    phase."""
    headers_lost: int
    """Headers of trimmed packets that the trimming port dropped for lack of room; `packets.dropped`
    includes them; sum over the warm-up and the measured phase."""
    in_flight: int
    """Packets in ports and on links at the end of the measured phase: sent - delivered - dropped;
    sum over the warm-up and the measured phase."""
    dropped_at_nic: int
    """Delivered packets that were dropped because the receive queue of the NIC was full; sum over
    the warm-up and the measured phase."""


class OfferedWorkload(Numbers):
    """Numbers of one entry of `workload`."""

    open_loop: bool
    """Whether ops arrive independently of the completion of other ops; a closed loop submits an op
    when another op ends."""
    ops: int | None
    """Number of ops that arrive; null for a closed loop; sum over the measured phase."""
    offered_gbps: float | None
    """Payload bytes of `ops` * 8 / the time in which they arrive; null for a closed loop, or if all
    ops arrive at the same time; unit: Gb/s; sum over its flows."""
    max_link_load: float | None
    """Largest offered load of a link by this workload alone; null if `offered_gbps` is null; over
    the time in which its ops arrive, within the measured phase."""


class Offered(Numbers):
    """Part `offered` of the summary."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {
        "workload": Each(OfferedWorkload),
    }

    max_link: str | None
    """Name of the egress port of the link with the largest offered load; null without open
    loops."""
    max_link_load: float | None
    """Largest offered load of a link; over the time in which ops of open loops arrive, within the
    measured phase."""
    host_link_load: float | None
    """Largest offered load of a link between a host and a switch; over the time in which ops of
    open loops arrive, within the measured phase."""
    switch_link_load: float | None
    """Largest offered load of a link between switches; over the time in which ops of open loops
    arrive, within the measured phase."""
    mean_switch_link_load: float | None
    """Mean offered load of the links between switches: the load of the bisection; over the time in
    which ops of open loops arrive, within the measured phase."""
    workload: Mapping[str, OfferedWorkload]
    """Part `workload`."""


class Losses(Numbers):
    """Part `losses` of the summary."""

    packets: int
    """Packets lost, all causes together; sum over the warm-up and the measured phase."""
    loss_rate: float
    """`losses.packets` / `packets.sent`; sum over the warm-up and the measured phase."""
    buffer: int
    """Packets for which a port or switch had no buffer memory; sum over the warm-up and the
    measured phase."""
    link_down: int
    """Packets lost because a link was down; sum over the warm-up and the measured phase."""
    link_loss: int
    """Packets that links lost at random; sum over the warm-up and the measured phase."""
    corruption: int
    """Packets that links corrupted; sum over the warm-up and the measured phase."""
    ttl: int
    """Packets whose TTL reached 0; sum over the warm-up and the measured phase."""
    switch_half: int
    """Packets that the switch half of the algorithm dropped; sum over the warm-up and the measured
    phase."""
    credit_limit: int
    """Credits dropped because they exceeded their share of a link; dropping them divides the link
    among flows; sum over the warm-up and the measured phase."""
    nic_queue: int
    """Packets dropped because the receive queue of a NIC was full; sum over the warm-up and the
    measured phase."""
    lossy_ports: int
    """Number of ports at which packets were dropped; sum over the warm-up and the measured
    phase."""
    ports: Sequence[Mapping[str, Any]]
    """The ports that lost the most packets, each with `port`, `packets` and the packets by cause;
    at most 8; ports.csv has all ports; sum over the warm-up and the measured phase."""


class Drain(Numbers):
    """Part `drain` of the summary."""

    seconds: float
    """Length of the drain: simulated time after the measured phase, until its ops had ended; unit:
    s."""
    limit_s: float
    """Limit of `drain.seconds`: `drain` in the scenario; unit: s."""
    ended_by: str
    """`complete`: every op and job that the drain waits for had ended; `limit`: `drain` was over;
    `stuck`: no packet was delivered any more; `interrupted`: the run ended early."""


class Stalled(Numbers):
    """Part `stalled` of the summary."""

    noticed: int
    """Flows that were stalled at a check. A flow is stalled if its peer has acknowledged nothing
    for longer than 4 retransmission timeouts with a pacing gap each, or if 4 timeouts in a row have
    expired. If a link on its path is down, one timeout without an acknowledgement is enough. The
    simulator checks 4 to 32 times in `duration`, less often with many flows, and at the end of the
    drain; over the whole run, drain included."""
    at_end: int
    """Flows that were still stalled; at the end of the drain."""
    flows: Sequence[Mapping[str, Any]]
    """The first 64 stalled flows: `flow`, `host` and `peer`, `since_us` (last acknowledgement),
    `until_us` (check that found progress; null if none did), the number of outstanding `ops`, and
    the `reason` if it is known."""


class Work(Numbers):
    """Part `work` of the summary."""

    events: int
    """Events that the simulator processed; sum over the whole run, drain included."""
    packet_hops: int
    """Number of packet-hops: one per packet and link that it crossed; sum over the whole run, drain
    included."""
    event_hash: str
    """Hash of the times at which each entity had an event; equal for any number of threads."""


class WorkloadSize(Numbers):
    """Numbers of one entry of `size`."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {
        "op_latency_us": OpDistribution,
        "slowdown": OpDistribution,
    }

    op_latency_us: OpDistribution
    """As `op_latency_us` of the run, for ops in the range `n` (from 0) of `sizes` in `[measure]`;
    unit: us; over its ops submitted in the measured phase."""
    slowdown: OpDistribution
    """As `slowdown` of the workload, for ops in the range `n` (from 0) of `sizes` in `[measure]`;
    over its ops submitted in the measured phase."""


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
    """Wire bytes of the workload's data packets that reached a stack, retransmissions included, * 8
    / length of the measured phase; unit: Gb/s; sum over its flows."""
    goodput_gbps: float
    """Payload bytes of the workload delivered once * 8 / length of the measured phase; unit: Gb/s;
    sum over its flows."""
    ops: int
    """Ops of the workload that completed, with any outcome; sum over its flows."""
    ops_per_s: float
    """`ops` / length of the measured phase; unit: 1/s."""
    ops_failed: int
    """Ops that `ops` counts and that did not succeed; sum over its flows."""
    late: float | None
    """Ops that failed or took longer than the workload's `deadline` / all ops; null without a
    deadline, or if `late_lower` and `late_upper` differ by more than 1 %; over its ops submitted in
    the measured phase."""
    late_lower: float | None
    """Lower bound of `late`: an unfinished op that has not exceeded the deadline counts as in time;
    over its ops submitted in the measured phase."""
    late_upper: float | None
    """Upper bound of `late`: every unfinished op counts as late; over its ops submitted in the
    measured phase."""
    data_packets_sent: int
    """Data packets that hosts sent, retransmissions included; sum over its flows."""
    acks_sent: int
    """Acknowledgements that hosts sent, NACKs not included; sum over its flows."""
    jain: float
    """Jain's index of goodput, as `jain` of the run; over its flows, measured phase."""
    flow_share: Distribution
    """Goodput of a flow / mean goodput of the workload's flows; over its flows, measured phase."""
    op_latency_us: OpDistribution
    """As `op_latency_us` of the run; unit: us; over its ops submitted in the measured phase."""
    slowdown: OpDistribution
    """Latency / ideal completion time, at least 1; null if it is censored, as `op_latency_us`; over
    its ops submitted in the measured phase."""
    fabric_rtt_us: Distribution
    """As `fabric_rtt_us` of the run; unit: us; over its acknowledgements of the measured phase."""
    end_to_end_rtt_us: Distribution
    """As `end_to_end_rtt_us` of the run; unit: us; over its acknowledgements of the measured
    phase."""
    endpoint_delay_us: Distribution
    """As `endpoint_delay_us` of the run; unit: us; over its acknowledgements of the measured
    phase."""
    target_delay_us: Distribution
    """Fabric target delay (Swift §3.5), as the algorithm reports it; unit: us; over its
    acknowledgements of the measured phase."""
    cwnd_packets: Distribution
    """Congestion window in force, as the algorithm reports it; no values for a flow without a
    window limit; unit: packets; over its acknowledgements of the measured phase."""
    fabric_cwnd_packets: Distribution
    """Congestion window that follows the fabric delay, as the algorithm reports it; unit: packets;
    over its acknowledgements of the measured phase."""
    endpoint_cwnd_packets: Distribution
    """Congestion window that follows the endpoint delay, as the algorithm reports it; unit:
    packets; over its acknowledgements of the measured phase."""
    endpoint_limited: float | None
    """Share of acknowledgements after which the endpoint window was smaller than the fabric window;
    null for algorithms without these two windows; over its acknowledgements of the measured
    phase."""
    size: Mapping[str, WorkloadSize]
    """Part `size`."""


class PortsClassByPort(Numbers):
    """Numbers of one entry of `by_port`."""

    windows: int
    """Time windows, counted per port, in which the class was offered a packet; over the time
    windows in which the utilisation by the port (`by_port`) or by the class alone (`by_class`) was
    in this bucket."""
    loss_rate: float | None
    """Packets of the class dropped / packets of the class sent into the ports' queues; over the
    time windows in which the utilisation by the port (`by_port`) or by the class alone (`by_class`)
    was in this bucket."""
    loss_rate_p99_9: float | None
    """99.9th percentile (nearest rank) of `loss_rate` over single time windows of single ports;
    with up to 1000 windows, the largest value; over the time windows in which the utilisation by
    the port (`by_port`) or by the class alone (`by_class`) was in this bucket."""


class PortsClassByClass(Numbers):
    """Numbers of one entry of `by_class`."""

    windows: int
    """Time windows, counted per port, in which the class was offered a packet; over the time
    windows in which the utilisation by the port (`by_port`) or by the class alone (`by_class`) was
    in this bucket."""
    loss_rate: float | None
    """Packets of the class dropped / packets of the class sent into the ports' queues; over the
    time windows in which the utilisation by the port (`by_port`) or by the class alone (`by_class`)
    was in this bucket."""
    loss_rate_p99_9: float | None
    """99.9th percentile (nearest rank) of `loss_rate` over single time windows of single ports;
    with up to 1000 windows, the largest value; over the time windows in which the utilisation by
    the port (`by_port`) or by the class alone (`by_class`) was in this bucket."""


class PortsClass(Numbers):
    """Numbers of one entry of `class`."""

    _PARTS: ClassVar[Mapping[str, Convert]] = {
        "by_port": Each(PortsClassByPort),
        "by_class": Each(PortsClassByClass),
    }

    throughput_gbps: float
    """Wire bytes of the class that the group's ports sent in the whole time windows of the measured
    phase * 8 / total length of these windows; unit: Gb/s; sum over ports."""
    windows: int
    """Time windows, counted per port, in which the class was offered a packet; all ports, measured
    phase."""
    loss_rate: float | None
    """Packets of the class dropped / packets of the class sent into the ports' queues; all ports
    and windows."""
    loss_rate_p99_9: float | None
    """99.9th percentile (nearest rank) of `loss_rate` over single time windows of single ports;
    with up to 1000 windows, the largest value; over windows."""
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
    """`throughput_gbps` / sum of the rates of the ports' links without faults; mean over the
    measured phase."""
    loss_rate: float
    """Packets dropped / packets sent into the ports' queues; all ports together."""
    drops: int
    """Packets dropped at the ports; sum over ports."""
    queue_us: Distribution
    """Wire bytes in a port, the packet in service included, as the time that its link needs to send
    them without faults; unit: us; over samples of each port, taken every `queue_interval`; mean
    (over time and ports) and maximum are exact."""
    queue_bytes: Distribution
    """Wire bytes in a port, the packet in service included; unit: B; over samples of each port,
    taken every `queue_interval`; mean (over time and ports) and maximum are exact."""
    class_: Mapping[str, PortsClass]
    """Part `class`."""


class Settle(Numbers):
    """Numbers of one entry of `settle`."""

    time_us: float | None
    """Time from `after` to the start of the first interval from which the quantity stays at or
    beyond its threshold (`above` or `below`) for `hold`; null if it never does; unit: us; over the
    warm-up and the measured phase."""


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
    """Wire bytes sent per time by a group of ports; unit: Gb/s; over the whole intervals between
    `from` and `to`; all numbers are exact."""
    queue_us: Distribution | None
    """Mean `queue_us` over an interval, at the group's port with the largest mean; unit: us; over
    the whole intervals between `from` and `to`; all numbers are exact."""
    queue_bytes: Distribution | None
    """Mean `queue_bytes` over an interval, at the group's port with the largest mean; unit: B; over
    the whole intervals between `from` and `to`; all numbers are exact."""
    goodput_gbps: Distribution | None
    """Payload bytes delivered once per time, of a workload or a flow; unit: Gb/s; over the whole
    intervals between `from` and `to`; all numbers are exact."""
    share: Distribution | None
    """Goodput of a workload or a flow / goodput of all flows; over the whole intervals between
    `from` and `to`; all numbers are exact."""


class Compare(Numbers):
    """Numbers of one entry of `compare`."""

    buckets: int
    """Utilisation buckets in which both classes have packets and the other class loses at least the
    share `floor`."""
    buckets_p99_9: int
    """Buckets that `buckets` counts and in which `loss_rate_p99_9` of either class is above 0."""
    windows: int
    """Time windows, counted per port, in which the other class was offered a packet; with up to
    1000 windows, the 99.9th percentile is the largest value; maximum over the buckets that
    `buckets` counts."""
    loss_ratio: float | None
    """`loss_rate` of the class / `loss_rate` of the other class; maximum over the buckets that
    `buckets` counts."""
    loss_ratio_p99_9: float | None
    """`loss_rate_p99_9` of the class / `loss_rate_p99_9` of the other class; 10^6 if only the
    divisor is 0; maximum over the buckets that `buckets` counts."""


class Jobs(Numbers):
    """Numbers of one entry of `jobs`."""

    name: str
    """Name of the job."""
    completion_us: float | None
    """Time from the start of the job to the end of its last operation; null if operations have not
    ended. The end of a send counts only if `done` is acknowledged or loggops; otherwise the receive
    of its message ends later; unit: us; from the start of the job to its end."""
    ideal_us: float | None
    """Least completion time on the fabric without other traffic and without queues, on paths that
    do not change. If all messages of a collective have equal paths, it is the closed form.
    Otherwise it is the longest of three times: the critical path; the time that the busiest NIC, or
    the busiest rank within its host, needs for its bytes; the computations of the busiest stream.
    If messages sent in turn, or shared NICs, make the closed form a lower bound (docs/jobs.md), it
    is the longest of all of these. null if the job has no closed form and more than 8 million
    operations, or if it cannot end; unit: us; from the start of the job to its end."""
    ideal_source: str | None
    """Time that sets `ideal_us`: closed form, critical path, bytes of the busiest NIC, bytes of the
    busiest rank within its host, or computations of the busiest stream; null without `ideal_us`."""
    slowdown: float | None
    """Completion_us / ideal_us; from the start of the job to its end."""
    done: str
    """When a send is done: local (its last byte has left), delivered (its message has arrived; the
    sender learns this after the propagation delay of the path), acknowledged (the sender has the
    acknowledgement), or loggops (as the host model defines)."""
    ranks: int
    """Number of ranks."""
    ops: int
    """Number of operations; sum over ranks."""
    bytes: int
    """Bytes of all messages; sum over ranks."""
    unfinished: int
    """Operations that have not ended; sum over ranks."""
    unexpected: int
    """Messages that no receive has taken; sum over ranks."""
    algorithm_bandwidth_gbps: float | None
    """Size of the collective * iterations * 8 / completion_us; null if the job is not a collective,
    or has not ended; unit: Gb/s; from the start of the job to its end."""
    bus_bandwidth_gbps: float | None
    """Algorithm bandwidth times the factor of nccl-tests: 2(N-1)/N for an all-reduce, (N-1)/N for
    an all-gather, a reduce-scatter and an all-to-all, 1 for a broadcast; null for other jobs; unit:
    Gb/s; from the start of the job to its end."""
    compute_us: float
    """Time in which a computation of the rank ran; unit: us; mean over the ranks."""
    send_us: float
    """Time in which a message of the rank was outstanding and no computation ran; unit: us; mean
    over the ranks."""
    wait_us: float
    """Remaining time until the job ended, in which the rank waited for other ranks; unit: us; mean
    over the ranks."""
    iterations_us: Sequence[float]
    """Time of each iteration, from the end of the previous iteration to the end of its last
    operation; one time for the whole job if the job is from a file; unit: us."""
    parts: Sequence[Mapping[str, Any]]
    """The parts of a generated job by name, such as the collectives of a training step: name,
    count, unfinished, bytes (sum of S of collectives or of message sizes), mean_us and max_us (from
    the first send to the last receive of a part, on any rank), first_us (start of the first part)
    and last_us (end of the last part), both since the start of the job."""
    critical_steps: int | None
    """Number of operations and messages on the critical path, the chain without a gap that ended
    the job; null if operations have not ended, or if the job has more than 8 million operations;
    from the start of the job to its end."""
    critical_compute_us: float | None
    """Time of the computations on the critical path; unit: us; from the start of the job to its
    end."""
    critical_wire_us: float | None
    """Time that the messages of the critical path need on the fabric without other traffic, host
    times of the LogGOPS model included; unit: us; from the start of the job to its end."""
    critical_delay_us: float | None
    """Further time of the messages of the critical path: waits for other messages of the rank,
    congestion windows and queues; unit: us; from the start of the job to its end."""
    critical_messages: Sequence[Mapping[str, Any]]
    """Messages of the critical path, those with the largest delay first, at most 16: from, to, op
    (of the sender), bytes, start_us, end_us, ideal_us, delay_us, link (port of the path in which
    bytes spent most time on average; null within a host, and if packets take several paths)."""
    stragglers: Sequence[Mapping[str, Any]]
    """The ranks that waited least, so that other ranks waited for them: rank, host, end_us,
    compute_us, send_us, wait_us; at most 16."""
    stuck: Sequence[str]
    """Operations that have not ended, as text; at most 16."""
    leftover: Sequence[str]
    """Messages that no receive has taken, as text; at most 16."""


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
    """Name of the scenario and its variant."""
    seed: int
    """Seed of all random number streams."""
    simulated_s: float
    """Simulated time up to the end of the measured phase, warm-up included; less than `duration` if
    the run was interrupted, or if the phase ended with the ops (`ends_with_ops`); unit: s."""
    makespan_us: float | None
    """Start of the first message to the end of the last op; null if an op has not ended, or if the
    run has other workloads than traces and jobs, or no trace; unit: us; over the whole run, drain
    included."""
    makespan_lower_us: float | None
    """Lower bound of `makespan_us`, if each unfinished op ended at the end of the run; unit: us;
    over the whole run, drain included."""
    interrupted: bool
    """Whether the run ended early."""
    stop_reason: str | None
    """Reason for the early end; null if the run did not end early."""
    throughput_gbps: float
    """At the busiest switch port: wire bytes sent * 8 / length of the measured phase; unit: Gb/s;
    mean over the measured phase."""
    goodput_gbps: float
    """Payload bytes delivered once * 8 / length of the measured phase; unit: Gb/s; sum over all
    flows."""
    duplicate_gbps: float
    """Payload bytes delivered again * 8 / length of the measured phase; unit: Gb/s; sum over all
    flows."""
    engine_ns_per_kb: float | None
    """Work of the hosts' engines, stalls not included / payload bytes delivered once, times 1000;
    null if the engines have no costs, or if no payload was delivered; unit: ns/kB; all hosts, over
    the measured phase."""
    acks_per_packet: float | None
    """Acknowledgements sent / data packets that reached a stack; all hosts, over the measured
    phase."""
    signals_gbps: float
    """Wire bytes of signals that switches sent to sources (Bolt's SRC) * 8 / length of the warm-up
    and the measured phase; unit: Gb/s; sum over the warm-up, the measured phase and all switches;
    each signal counts once, independent of its links."""
    loss_rate: float
    """At the busiest switch port: packets dropped / packets sent into its queue; over the measured
    phase."""
    startup_loss_rate: float
    """Packets dropped / packets sent into the ports' queues, all switch ports together; over the
    warm-up."""
    jain: float
    """Jain's index of the goodput x of flows: (sum x)^2 / (n * sum x^2); 1 if all flows are equal,
    1/n if one flow has all goodput; over all flows, measured phase."""
    fair_share_deviation: float | None
    """|rate / max-min fair share - 1|; the rate is the goodput plus the headers of full packets. An
    interval counts if no flow starts or stops in it or within `fair_share_after` before it; null
    without `interval` in `[measure]`; maximum over flows and intervals that count."""
    fair_share_jain: float | None
    """Jain's index of rate / max-min fair share, as `fair_share_deviation`; null without `interval`
    in `[measure]`; minimum over intervals that count."""
    groups: Sequence[Mapping[str, Any]]
    """The workloads, each with `workload` (its name, or a label derived from its kind) and the
    columns of workloads.csv up to `goodput_share`; `oldest_unfinished_us` is 0 if all ops ended;
    the latencies are in `workload`; over the measured phase."""
    totals: Sequence[Mapping[str, Any]]
    """Sums over two or more `groups` with a common property: `by` is the property (workload,
    algorithm or class), `name` is its value, `groups` is the number of groups;
    `oldest_unfinished_us` is the maximum; over the measured phase."""
    faults: Sequence[Mapping[str, Any]]
    """Faults, avoided links and reroutes, each with the columns of faults.csv."""
    notes: Sequence[str]
    """Sentences: warnings, and data that the tables omit."""
    fabric_rtt_us: Distribution
    """RTT between the NICs, as Swift computes it (§3.3): t6 - t1 - endpoint delay; unit: us; over
    acknowledgements of the measured phase."""
    end_to_end_rtt_us: Distribution
    """RTT from the sending stack back to the same stack: t6 - t1 (Swift Fig. 2); unit: us; over
    acknowledgements of the measured phase."""
    endpoint_delay_us: Distribution
    """Remote_queuing + (t6 - t5) (Swift §3.3); unit: us; over acknowledgements of the measured
    phase."""
    nic_rx_delay_us: Distribution
    """Time from reception by the NIC to processing by the stack: t3 - t2 of data, t6 - t5 of
    acknowledgements (Swift Fig. 2); no values if the engines of hosts have no costs; unit: us; over
    packets received in the measured phase."""
    op_latency_us: OpDistribution
    """Time from submission to completion; null if it is censored: if the bounds that unfinished ops
    set differ by more than 1 %; unit: us; over ops of the measured phase."""
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
