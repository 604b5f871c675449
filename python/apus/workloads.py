"""Workloads of scenarios.

Made from the declarations of scenario files (`python/tools/generate.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apus._settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apus._types import Rate, Size, Time
    from apus.settings import Flow, Groups, Places, Service, Sizes

__all__ = [
    "Workload",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "external",
    "flows",
    "incast",
    "job",
    "partition_aggregate",
    "permutation",
    "pipeline",
    "poisson",
    "reduce_scatter",
    "trace",
    "training",
]


class Workload(Settings):
    """A workload of a scenario."""


def incast(
    *,
    senders: int | Sequence[int] | None = None,
    receiver: int | Sequence[int] | None = None,
    size: Size | None = None,
    outstanding: int | None = None,
    flows_per_pair: int | None = None,
    start_spread: Time | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `incast`.

    `senders` hosts to one `receiver`, or to each of a list of them.

    Args:
        senders: The hosts that send; all other hosts if not given (number or list of hosts).
        receiver: The host that receives, or several with an incast each (host or list of hosts).
        size: Payload of an op (size, at least 1B).
        outstanding: Ops of a flow in progress at a time (whole number, at least 1; default "1").
        flows_per_pair: Flows of a pair of hosts (whole number, at least 1; default "1").
        start_spread: Each flow starts later by a random time up to this (time; default "0s").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "incast",
        {"kind": "incast"},
        {"class_": "class"},
        {
            "senders": senders,
            "receiver": receiver,
            "size": size,
            "outstanding": outstanding,
            "flows_per_pair": flows_per_pair,
            "start_spread": start_spread,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def permutation(
    *,
    hosts: int | Sequence[int] | None = None,
    size: Size | None = None,
    outstanding: int | None = None,
    flows_per_pair: int | None = None,
    start_spread: Time | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `permutation`.

    Every host to one other, every host from one other; drawn from the seed.

    Args:
        hosts: The hosts that send and receive; all if not given (number or list of hosts).
        size: Payload of an op (size, at least 1B).
        outstanding: Ops of a flow in progress at a time (whole number, at least 1; default "1").
        flows_per_pair: Flows of a pair of hosts (whole number, at least 1; default "1").
        start_spread: Each flow starts later by a random time up to this (time; default "0s").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "permutation",
        {"kind": "permutation"},
        {"class_": "class"},
        {
            "hosts": hosts,
            "size": size,
            "outstanding": outstanding,
            "flows_per_pair": flows_per_pair,
            "start_spread": start_spread,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def all_to_all(
    *,
    hosts: int | Sequence[int] | None = None,
    size: Size | None = None,
    outstanding: int | None = None,
    flows_per_pair: int | None = None,
    start_spread: Time | None = None,
    pattern: Literal["direct", "pairwise", "window", "bruck", "rail"] | None = None,
    window: int | None = None,
    group: int | None = None,
    ranks: int | None = None,
    channels: int | None = None,
    compute: Time | None = None,
    iterations: int | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
    places: Places | None = None,
    local_rate: Rate | None = None,
    local_delay: Time | None = None,
    done: Literal["delivered", "local", "acknowledged"] | None = None,
    send_order: Literal["interleaved", "sequential"] | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `all-to-all`.

    Every host to every other, in closed loops; with a `pattern` a job, in which `size` is the whole
    array of a rank.

    Args:
        hosts: The hosts that send and receive; all if not given (number or list of hosts).
        size: Payload of an op (size, at least 1B).
        outstanding: Ops of a flow in progress at a time (whole number, at least 1; default "1").
        flows_per_pair: Flows of a pair of hosts (whole number, at least 1; default "1").
        start_spread: Each flow starts later by a random time up to this (time; default "0s").
        pattern: With it, it is a job: one collective with dependencies between its messages, by
            this algorithm. `rail`: by node and rail, as NCCL's PXN ("direct", "pairwise", "window",
            "bruck", "rail").
        window: With the pattern `window`: blocks that a rank sends at a time (whole number, at
            least 1; default "4").
        group: With the pattern `hierarchical` or `rail`: consecutive ranks of a node; if not given,
            the ranks of a host, if these are consecutive and all hosts have as many (whole number,
            at least 2).
        ranks: Number of ranks; as many as there are places for if not given (whole number, at least
            2).
        channels: Equal parts of the data, each a collective of its own beside the others (whole
            number, from 1 to 256; default "1").
        compute: Time that every rank computes before each iteration (time; default "0s").
        iterations: How often the collective takes place (whole number, at least 1; default "1").
        ranks_per_host: Ranks of a host, which share its NIC. If the topology has NICs (`rails`, and
            `links` with `nics` or `servers`), a rank has one of them, and there are as many ranks
            as NICs if not given; otherwise 1 (whole number, at least 1).
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink; `scale_up_rate` of the topology if not given (rate, at
            least 1bps).
        local_delay: With several ranks per host: delay of that network; `scale_up_delay` of the
            topology, or 0s, if not given (time).
        done: When a send is done: its message has arrived (`delivered`; the sender hears of it
            after the propagation delay of the path), its last byte has left (`local`), or the
            sender has the acknowledgement (`acknowledged`) ("delivered", "local", "acknowledged";
            default "delivered").
        send_order: Whether a host sends packets of all messages in turn (`interleaved`), or a rank
            sends one message after the other (`sequential`), as closed forms of trees assume
            ("interleaved", "sequential"; default "interleaved").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "all_to_all",
        {"kind": "all-to-all"},
        {"class_": "class"},
        {
            "hosts": hosts,
            "size": size,
            "outstanding": outstanding,
            "flows_per_pair": flows_per_pair,
            "start_spread": start_spread,
            "pattern": pattern,
            "window": window,
            "group": group,
            "ranks": ranks,
            "channels": channels,
            "compute": compute,
            "iterations": iterations,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
            "places": places,
            "local_rate": local_rate,
            "local_delay": local_delay,
            "done": done,
            "send_order": send_order,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def flows(
    *,
    flows: Sequence[Flow] | None = None,
    size: Size | None = None,
    outstanding: int | None = None,
    flows_per_pair: int | None = None,
    start_spread: Time | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `flows`.

    The pairs listed as `[[workload.flow]]` with `from` and `to`.

    Args:
        flows: A flow (list of tables).
        size: Payload of an op (size, at least 1B).
        outstanding: Ops of a flow in progress at a time (whole number, at least 1; default "1").
        flows_per_pair: Flows of a pair of hosts (whole number, at least 1; default "1").
        start_spread: Each flow starts later by a random time up to this (time; default "0s").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "flows",
        {"kind": "flows"},
        {"flows": "flow", "class_": "class"},
        {
            "flows": flows,
            "size": size,
            "outstanding": outstanding,
            "flows_per_pair": flows_per_pair,
            "start_spread": start_spread,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def poisson(
    *,
    load: float | None = None,
    size: Size | None = None,
    sizes: str | Sizes | None = None,
    hosts: int | Sequence[int] | None = None,
    to: Literal["other-hosts", "other-racks"] | None = None,
    senders: int | Sequence[int] | None = None,
    receiver: int | Sequence[int] | None = None,
    flows: Literal["per-pair", "per-op"] | None = None,
    flows_per_pair: int | None = None,
    handshake: bool | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `poisson`.

    An open loop: ops of random `sizes` at random times, at a `load` of the links.

    Args:
        load: Payload bytes offered per time over the rate of a link: of the link of each sender, or
            with a `receiver` of its link, by all senders together (number, above 0 and at most 10).
        size: Payload of an op (size, at least 1B).
        sizes: Distribution of sizes: a name, see below, or a table, in place of `size` (text or
            table).
        hosts: The hosts that send and receive; all if not given (number or list of hosts).
        to: "other-racks": hosts send to hosts of other racks alone ("other-hosts", "other-racks";
            default "other-hosts").
        senders: The hosts that send; all other hosts if not given (number or list of hosts).
        receiver: The host that receives, or several with an incast each (host or list of hosts).
        flows: "per-pair": ops take the `flows_per_pair` flows of their pair in turn; an op that its
            flow cannot accept yet is queued, and its latency counts from its arrival. "per-op": a
            flow for each op ("per-pair", "per-op"; default "per-pair").
        flows_per_pair: Flows of a pair of hosts (whole number, at least 1; default "1").
        handshake: Each flow sets up its connection before its first op: an empty packet and its
            acknowledgement, as TCP's SYN and SYN-ACK. The latency of the op includes it, the ideal
            of slowdown does not (true or false; default "false").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "poisson",
        {"kind": "poisson"},
        {"class_": "class"},
        {
            "load": load,
            "size": size,
            "sizes": sizes,
            "hosts": hosts,
            "to": to,
            "senders": senders,
            "receiver": receiver,
            "flows": flows,
            "flows_per_pair": flows_per_pair,
            "handshake": handshake,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def partition_aggregate(
    *,
    master: int | None = None,
    workers: int | Sequence[int] | None = None,
    request: Size | None = None,
    answer: Size | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `partition-aggregate`.

    A `master` sends a `request` to all `workers`, each sends an `answer`; the next round begins
    when all have answered. An op is an answer, from the submission of its request to its last byte.

    Args:
        master: The host that asks; the last if not given (whole number).
        workers: The hosts that answer; all others if not given (number or list of hosts).
        request: Size of the message to each worker (size, at least 1B).
        answer: Size of the message that it sends back (size, at least 1B).
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "partition_aggregate",
        {"kind": "partition-aggregate"},
        {"class_": "class"},
        {
            "master": master,
            "workers": workers,
            "request": request,
            "answer": answer,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def trace(
    *,
    file: str | None = None,
    flows: str | None = None,
    flows_per_pair: int | None = None,
    stream: bool | None = None,
    digest: str | None = None,
    handshake: bool | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `trace`.

    The messages of a `file`: CSV, flow.txt of the HPCC simulator, or .cm of htsim.

    Args:
        file: CSV with the header `start_us,from,to,bytes`, .cm of htsim, or flow.txt of the HPCC
            simulator. Messages that start after the end of the run are left out (text).
        flows: The text of such a file (text).
        flows_per_pair: Most flows from one host to another, which its ops take in turn, in the
            order of their times; a flow per op if not given. An op that its flow cannot accept yet
            is queued, and its latency counts from its arrival (whole number, at least 1).
        stream: The file is read while the run goes, so that memory does not grow with its messages.
            It needs CSV in the order of start times, and `flows_per_pair`. The results are the same
            (true or false; default "false").
        digest: With `stream`: SHA-256 of the file in hexadecimal digits; another content is an
            error (text).
        handshake: Each flow sets up its connection before its first op: an empty packet and its
            acknowledgement, as TCP's SYN and SYN-ACK. The latency of the op includes it, the ideal
            of slowdown does not (true or false; default "false").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "trace",
        {"kind": "trace"},
        {"class_": "class"},
        {
            "file": file,
            "flows": flows,
            "flows_per_pair": flows_per_pair,
            "stream": stream,
            "digest": digest,
            "handshake": handshake,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def job(
    *,
    file: str | None = None,
    operations: str | None = None,
    groups: Groups | None = None,
    lenient: bool | None = None,
    hosts: int | Sequence[int] | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
    places: Places | None = None,
    local_rate: Rate | None = None,
    local_delay: Time | None = None,
    done: Literal["delivered", "local", "acknowledged"] | None = None,
    send_order: Literal["interleaved", "sequential"] | None = None,
    flows_per_pair: int | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `job`.

    Ranks that send, receive and compute in the order of a `file`; the first result is the
    completion time.

    Args:
        file: A job: GOAL (text or binary), .cm of htsim with triggers, workload.txt of SimAI, or
            the beginning of the names of Chakra traces; told by its content (text).
        operations: The text of such a file (text).
        groups: With Chakra traces: the ranks of the groups that their `pg_name` names, unless the
            traces define them (table).
        lenient: With Chakra traces: leaves out dependencies on absent nodes, collectives of unknown
            groups and other things without meaning here, and the notes of the results list them.
            Without it they are errors (true or false; default "false").
        hosts: The hosts that ranks are placed on; all if not given (number or list of hosts).
        ranks_per_host: Ranks of a host, which share its NIC. If the topology has NICs (`rails`, and
            `links` with `nics` or `servers`), a rank has one of them, and there are as many ranks
            as NICs if not given; otherwise 1 (whole number, at least 1).
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink; `scale_up_rate` of the topology if not given (rate, at
            least 1bps).
        local_delay: With several ranks per host: delay of that network; `scale_up_delay` of the
            topology, or 0s, if not given (time).
        done: When a send is done: its message has arrived (`delivered`; the sender hears of it
            after the propagation delay of the path), its last byte has left (`local`), or the
            sender has the acknowledgement (`acknowledged`) ("delivered", "local", "acknowledged";
            default "delivered").
        send_order: Whether a host sends packets of all messages in turn (`interleaved`), or a rank
            sends one message after the other (`sequential`), as closed forms of trees assume
            ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Flows from one rank to another, which its messages take in turn (whole
            number, at least 1; default "1").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "job",
        {"kind": "job"},
        {"class_": "class"},
        {
            "file": file,
            "operations": operations,
            "groups": groups,
            "lenient": lenient,
            "hosts": hosts,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
            "places": places,
            "local_rate": local_rate,
            "local_delay": local_delay,
            "done": done,
            "send_order": send_order,
            "flows_per_pair": flows_per_pair,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def all_reduce(
    *,
    pattern: Literal["ring", "halving-doubling", "double-binary-tree", "hierarchical"]
    | None = None,
    size: Size | None = None,
    ranks: int | None = None,
    chunks: int | None = None,
    group: int | None = None,
    channels: int | None = None,
    compute: Time | None = None,
    iterations: int | None = None,
    hosts: int | Sequence[int] | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
    places: Places | None = None,
    local_rate: Rate | None = None,
    local_delay: Time | None = None,
    done: Literal["delivered", "local", "acknowledged"] | None = None,
    send_order: Literal["interleaved", "sequential"] | None = None,
    flows_per_pair: int | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `all-reduce`.

    A job that is generated: every rank gets the sum of all arrays.

    Args:
        pattern: The algorithm. Rank r is the r-th in the ring and the trees; `hierarchical`: by
            node and rail ("ring", "halving-doubling", "double-binary-tree", "hierarchical"; default
            "ring").
        size: The whole array of a rank; of an all-gather the whole result, of a pipeline what a
            micro-batch sends to the next stage (size, at least 1B).
        ranks: Number of ranks; as many as there are places for if not given (whole number, at least
            2).
        chunks: With the pattern `double-binary-tree` or `chain`: pieces of the data, of each tree
            or of the chain (whole number, at least 1; default "8").
        group: With the pattern `hierarchical` or `rail`: consecutive ranks of a node; if not given,
            the ranks of a host, if these are consecutive and all hosts have as many (whole number,
            at least 2).
        channels: Equal parts of the data, each a collective of its own beside the others (whole
            number, from 1 to 256; default "1").
        compute: Time that every rank computes before each iteration (time; default "0s").
        iterations: How often the collective takes place (whole number, at least 1; default "1").
        hosts: The hosts that ranks are placed on; all if not given (number or list of hosts).
        ranks_per_host: Ranks of a host, which share its NIC. If the topology has NICs (`rails`, and
            `links` with `nics` or `servers`), a rank has one of them, and there are as many ranks
            as NICs if not given; otherwise 1 (whole number, at least 1).
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink; `scale_up_rate` of the topology if not given (rate, at
            least 1bps).
        local_delay: With several ranks per host: delay of that network; `scale_up_delay` of the
            topology, or 0s, if not given (time).
        done: When a send is done: its message has arrived (`delivered`; the sender hears of it
            after the propagation delay of the path), its last byte has left (`local`), or the
            sender has the acknowledgement (`acknowledged`) ("delivered", "local", "acknowledged";
            default "delivered").
        send_order: Whether a host sends packets of all messages in turn (`interleaved`), or a rank
            sends one message after the other (`sequential`), as closed forms of trees assume
            ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Flows from one rank to another, which its messages take in turn (whole
            number, at least 1; default "1").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "all_reduce",
        {"kind": "all-reduce"},
        {"class_": "class"},
        {
            "pattern": pattern,
            "size": size,
            "ranks": ranks,
            "chunks": chunks,
            "group": group,
            "channels": channels,
            "compute": compute,
            "iterations": iterations,
            "hosts": hosts,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
            "places": places,
            "local_rate": local_rate,
            "local_delay": local_delay,
            "done": done,
            "send_order": send_order,
            "flows_per_pair": flows_per_pair,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def reduce_scatter(
    *,
    size: Size | None = None,
    ranks: int | None = None,
    channels: int | None = None,
    compute: Time | None = None,
    iterations: int | None = None,
    hosts: int | Sequence[int] | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
    places: Places | None = None,
    local_rate: Rate | None = None,
    local_delay: Time | None = None,
    done: Literal["delivered", "local", "acknowledged"] | None = None,
    send_order: Literal["interleaved", "sequential"] | None = None,
    flows_per_pair: int | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `reduce-scatter`.

    A job that is generated: every rank gets a block of the sum of all arrays, in a ring.

    Args:
        size: The whole array of a rank; of an all-gather the whole result, of a pipeline what a
            micro-batch sends to the next stage (size, at least 1B).
        ranks: Number of ranks; as many as there are places for if not given (whole number, at least
            2).
        channels: Equal parts of the data, each a collective of its own beside the others (whole
            number, from 1 to 256; default "1").
        compute: Time that every rank computes before each iteration (time; default "0s").
        iterations: How often the collective takes place (whole number, at least 1; default "1").
        hosts: The hosts that ranks are placed on; all if not given (number or list of hosts).
        ranks_per_host: Ranks of a host, which share its NIC. If the topology has NICs (`rails`, and
            `links` with `nics` or `servers`), a rank has one of them, and there are as many ranks
            as NICs if not given; otherwise 1 (whole number, at least 1).
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink; `scale_up_rate` of the topology if not given (rate, at
            least 1bps).
        local_delay: With several ranks per host: delay of that network; `scale_up_delay` of the
            topology, or 0s, if not given (time).
        done: When a send is done: its message has arrived (`delivered`; the sender hears of it
            after the propagation delay of the path), its last byte has left (`local`), or the
            sender has the acknowledgement (`acknowledged`) ("delivered", "local", "acknowledged";
            default "delivered").
        send_order: Whether a host sends packets of all messages in turn (`interleaved`), or a rank
            sends one message after the other (`sequential`), as closed forms of trees assume
            ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Flows from one rank to another, which its messages take in turn (whole
            number, at least 1; default "1").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "reduce_scatter",
        {"kind": "reduce-scatter"},
        {"class_": "class"},
        {
            "size": size,
            "ranks": ranks,
            "channels": channels,
            "compute": compute,
            "iterations": iterations,
            "hosts": hosts,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
            "places": places,
            "local_rate": local_rate,
            "local_delay": local_delay,
            "done": done,
            "send_order": send_order,
            "flows_per_pair": flows_per_pair,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def all_gather(
    *,
    size: Size | None = None,
    ranks: int | None = None,
    channels: int | None = None,
    compute: Time | None = None,
    iterations: int | None = None,
    hosts: int | Sequence[int] | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
    places: Places | None = None,
    local_rate: Rate | None = None,
    local_delay: Time | None = None,
    done: Literal["delivered", "local", "acknowledged"] | None = None,
    send_order: Literal["interleaved", "sequential"] | None = None,
    flows_per_pair: int | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `all-gather`.

    A job that is generated: every rank gets the blocks of all, in a ring.

    Args:
        size: The whole array of a rank; of an all-gather the whole result, of a pipeline what a
            micro-batch sends to the next stage (size, at least 1B).
        ranks: Number of ranks; as many as there are places for if not given (whole number, at least
            2).
        channels: Equal parts of the data, each a collective of its own beside the others (whole
            number, from 1 to 256; default "1").
        compute: Time that every rank computes before each iteration (time; default "0s").
        iterations: How often the collective takes place (whole number, at least 1; default "1").
        hosts: The hosts that ranks are placed on; all if not given (number or list of hosts).
        ranks_per_host: Ranks of a host, which share its NIC. If the topology has NICs (`rails`, and
            `links` with `nics` or `servers`), a rank has one of them, and there are as many ranks
            as NICs if not given; otherwise 1 (whole number, at least 1).
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink; `scale_up_rate` of the topology if not given (rate, at
            least 1bps).
        local_delay: With several ranks per host: delay of that network; `scale_up_delay` of the
            topology, or 0s, if not given (time).
        done: When a send is done: its message has arrived (`delivered`; the sender hears of it
            after the propagation delay of the path), its last byte has left (`local`), or the
            sender has the acknowledgement (`acknowledged`) ("delivered", "local", "acknowledged";
            default "delivered").
        send_order: Whether a host sends packets of all messages in turn (`interleaved`), or a rank
            sends one message after the other (`sequential`), as closed forms of trees assume
            ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Flows from one rank to another, which its messages take in turn (whole
            number, at least 1; default "1").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "all_gather",
        {"kind": "all-gather"},
        {"class_": "class"},
        {
            "size": size,
            "ranks": ranks,
            "channels": channels,
            "compute": compute,
            "iterations": iterations,
            "hosts": hosts,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
            "places": places,
            "local_rate": local_rate,
            "local_delay": local_delay,
            "done": done,
            "send_order": send_order,
            "flows_per_pair": flows_per_pair,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def broadcast(
    *,
    pattern: Literal["binomial", "chain"] | None = None,
    size: Size | None = None,
    ranks: int | None = None,
    chunks: int | None = None,
    channels: int | None = None,
    compute: Time | None = None,
    iterations: int | None = None,
    hosts: int | Sequence[int] | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
    places: Places | None = None,
    local_rate: Rate | None = None,
    local_delay: Time | None = None,
    done: Literal["delivered", "local", "acknowledged"] | None = None,
    send_order: Literal["interleaved", "sequential"] | None = None,
    flows_per_pair: int | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `broadcast`.

    A job that is generated: every rank gets the array of rank 0.

    Args:
        pattern: The algorithm, from rank 0 ("binomial", "chain"; default "binomial").
        size: The whole array of a rank; of an all-gather the whole result, of a pipeline what a
            micro-batch sends to the next stage (size, at least 1B).
        ranks: Number of ranks; as many as there are places for if not given (whole number, at least
            2).
        chunks: With the pattern `double-binary-tree` or `chain`: pieces of the data, of each tree
            or of the chain (whole number, at least 1; default "8").
        channels: Equal parts of the data, each a collective of its own beside the others (whole
            number, from 1 to 256; default "1").
        compute: Time that every rank computes before each iteration (time; default "0s").
        iterations: How often the collective takes place (whole number, at least 1; default "1").
        hosts: The hosts that ranks are placed on; all if not given (number or list of hosts).
        ranks_per_host: Ranks of a host, which share its NIC. If the topology has NICs (`rails`, and
            `links` with `nics` or `servers`), a rank has one of them, and there are as many ranks
            as NICs if not given; otherwise 1 (whole number, at least 1).
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink; `scale_up_rate` of the topology if not given (rate, at
            least 1bps).
        local_delay: With several ranks per host: delay of that network; `scale_up_delay` of the
            topology, or 0s, if not given (time).
        done: When a send is done: its message has arrived (`delivered`; the sender hears of it
            after the propagation delay of the path), its last byte has left (`local`), or the
            sender has the acknowledgement (`acknowledged`) ("delivered", "local", "acknowledged";
            default "delivered").
        send_order: Whether a host sends packets of all messages in turn (`interleaved`), or a rank
            sends one message after the other (`sequential`), as closed forms of trees assume
            ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Flows from one rank to another, which its messages take in turn (whole
            number, at least 1; default "1").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "broadcast",
        {"kind": "broadcast"},
        {"class_": "class"},
        {
            "pattern": pattern,
            "size": size,
            "ranks": ranks,
            "chunks": chunks,
            "channels": channels,
            "compute": compute,
            "iterations": iterations,
            "hosts": hosts,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
            "places": places,
            "local_rate": local_rate,
            "local_delay": local_delay,
            "done": done,
            "send_order": send_order,
            "flows_per_pair": flows_per_pair,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def pipeline(
    *,
    size: Size | None = None,
    ranks: int | None = None,
    micro_batches: int | None = None,
    forward: Time | None = None,
    backward: Time | None = None,
    iterations: int | None = None,
    hosts: int | Sequence[int] | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
    places: Places | None = None,
    local_rate: Rate | None = None,
    local_delay: Time | None = None,
    done: Literal["delivered", "local", "acknowledged"] | None = None,
    send_order: Literal["interleaved", "sequential"] | None = None,
    flows_per_pair: int | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `pipeline`.

    A job that is generated: stages that pass micro-batches forward, then all of them backward.

    Args:
        size: The whole array of a rank; of an all-gather the whole result, of a pipeline what a
            micro-batch sends to the next stage (size, at least 1B).
        ranks: Number of ranks; as many as there are places for if not given (whole number, at least
            2).
        micro_batches: Micro-batches, all forward and then all backward (whole number, at least 1;
            default "8").
        forward: Time of a stage for a micro-batch, forward (time).
        backward: Time of a stage for a micro-batch, backward (time).
        iterations: How often the collective takes place (whole number, at least 1; default "1").
        hosts: The hosts that ranks are placed on; all if not given (number or list of hosts).
        ranks_per_host: Ranks of a host, which share its NIC. If the topology has NICs (`rails`, and
            `links` with `nics` or `servers`), a rank has one of them, and there are as many ranks
            as NICs if not given; otherwise 1 (whole number, at least 1).
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink; `scale_up_rate` of the topology if not given (rate, at
            least 1bps).
        local_delay: With several ranks per host: delay of that network; `scale_up_delay` of the
            topology, or 0s, if not given (time).
        done: When a send is done: its message has arrived (`delivered`; the sender hears of it
            after the propagation delay of the path), its last byte has left (`local`), or the
            sender has the acknowledgement (`acknowledged`) ("delivered", "local", "acknowledged";
            default "delivered").
        send_order: Whether a host sends packets of all messages in turn (`interleaved`), or a rank
            sends one message after the other (`sequential`), as closed forms of trees assume
            ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Flows from one rank to another, which its messages take in turn (whole
            number, at least 1; default "1").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "pipeline",
        {"kind": "pipeline"},
        {"class_": "class"},
        {
            "size": size,
            "ranks": ranks,
            "micro_batches": micro_batches,
            "forward": forward,
            "backward": backward,
            "iterations": iterations,
            "hosts": hosts,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
            "places": places,
            "local_rate": local_rate,
            "local_delay": local_delay,
            "done": done,
            "send_order": send_order,
            "flows_per_pair": flows_per_pair,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def training(
    *,
    model: Literal["llama-7b", "llama-13b", "llama-65b", "gpt3-175b", "mixtral-8x7b"] | None = None,
    layers: int | None = None,
    hidden: int | None = None,
    feed_forward: int | None = None,
    vocabulary: int | None = None,
    sequence: int | None = None,
    experts: int | None = None,
    experts_per_token: int | None = None,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    ep: int | None = None,
    micro_batch: int | None = None,
    micro_batches: int | None = None,
    element: Size | None = None,
    tflops: float | None = None,
    overlap: bool | None = None,
    pattern: Literal["ring", "halving-doubling", "double-binary-tree"] | None = None,
    chunks: int | None = None,
    iterations: int | None = None,
    hosts: int | Sequence[int] | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
    places: Places | None = None,
    local_rate: Rate | None = None,
    local_delay: Time | None = None,
    done: Literal["delivered", "local", "acknowledged"] | None = None,
    send_order: Literal["interleaved", "sequential"] | None = None,
    flows_per_pair: int | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `training`.

    A job that is generated: steps of a transformer by tensor, pipeline, data and expert
    parallelism; the model of its computations and messages is in docs/jobs.md.

    Args:
        model: The transformer; the sizes below replace those of the model ("llama-7b", "llama-13b",
            "llama-65b", "gpt3-175b", "mixtral-8x7b"; default "llama-7b").
        layers: Layers; of the model if not given, as all sizes down to `experts_per_token` (whole
            number, at least 1).
        hidden: Size of an activation (whole number, at least 1).
        feed_forward: Size within a feed-forward network (whole number, at least 1).
        vocabulary: Words of the vocabulary (whole number).
        sequence: Tokens of a sequence (whole number, at least 1).
        experts: Feed-forward networks of a layer, of which a token passes some (whole number, at
            least 1).
        experts_per_token: How many of these a token passes, at most all (whole number, at least 1).
        tp: Tensor parallelism: ranks that divide each layer, consecutive ones (whole number, at
            least 1; default "1").
        pp: Pipeline parallelism: stages of layers (whole number, at least 1; default "1").
        dp: Data parallelism: copies of the model; as many as there is room for if not given (whole
            number, at least 1).
        ep: Expert parallelism: copies of the model that divide the experts (whole number, at least
            1; default "1").
        micro_batch: Sequences of a micro-batch (whole number, at least 1; default "1").
        micro_batches: Micro-batches of a copy of the model per step (whole number, at least 1;
            default "8").
        element: Size of an activation and of a gradient; bfloat16 by default (size, at least 1B;
            default "2B").
        tflops: Floating point operations of a rank, 10^12 per second. deviation: the default is
            about 40 % of an H100's 989 in bfloat16, the utilisation of Llama 3's training (Dubey et
            al., arXiv 2407.21783, Table 4) (number, above 0 and at most 100000; default "400").
        overlap: The gradients of a layer are reduced beside the computations of earlier layers
            (true or false; default "true").
        pattern: The algorithm of the all-reduces of gradients ("ring", "halving-doubling",
            "double-binary-tree"; default "ring").
        chunks: With the pattern `double-binary-tree` or `chain`: pieces of the data, of each tree
            or of the chain (whole number, at least 1; default "8").
        iterations: How often the collective takes place (whole number, at least 1; default "1").
        hosts: The hosts that ranks are placed on; all if not given (number or list of hosts).
        ranks_per_host: Ranks of a host, which share its NIC. If the topology has NICs (`rails`, and
            `links` with `nics` or `servers`), a rank has one of them, and there are as many ranks
            as NICs if not given; otherwise 1 (whole number, at least 1).
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink; `scale_up_rate` of the topology if not given (rate, at
            least 1bps).
        local_delay: With several ranks per host: delay of that network; `scale_up_delay` of the
            topology, or 0s, if not given (time).
        done: When a send is done: its message has arrived (`delivered`; the sender hears of it
            after the propagation delay of the path), its last byte has left (`local`), or the
            sender has the acknowledgement (`acknowledged`) ("delivered", "local", "acknowledged";
            default "delivered").
        send_order: Whether a host sends packets of all messages in turn (`interleaved`), or a rank
            sends one message after the other (`sequential`), as closed forms of trees assume
            ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Flows from one rank to another, which its messages take in turn (whole
            number, at least 1; default "1").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "training",
        {"kind": "training"},
        {"class_": "class"},
        {
            "model": model,
            "layers": layers,
            "hidden": hidden,
            "feed_forward": feed_forward,
            "vocabulary": vocabulary,
            "sequence": sequence,
            "experts": experts,
            "experts_per_token": experts_per_token,
            "tp": tp,
            "pp": pp,
            "dp": dp,
            "ep": ep,
            "micro_batch": micro_batch,
            "micro_batches": micro_batches,
            "element": element,
            "tflops": tflops,
            "overlap": overlap,
            "pattern": pattern,
            "chunks": chunks,
            "iterations": iterations,
            "hosts": hosts,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
            "places": places,
            "local_rate": local_rate,
            "local_delay": local_delay,
            "done": done,
            "send_order": send_order,
            "flows_per_pair": flows_per_pair,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )


def external(
    *,
    ranks: int | None = None,
    hosts: int | Sequence[int] | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
    places: Places | None = None,
    local_rate: Rate | None = None,
    local_delay: Time | None = None,
    done: Literal["delivered", "local", "acknowledged"] | None = None,
    send_order: Literal["interleaved", "sequential"] | None = None,
    flows_per_pair: int | None = None,
    name: str | None = None,
    deadline: Time | None = None,
    op: Literal["write", "read", "message"] | None = None,
    service: Service | None = None,
    start: Time | None = None,
    stop: Time | None = None,
    every: Time | None = None,
    algorithm: str | None = None,
    class_: str | None = None,
    balancer: str | None = None,
) -> Workload:
    """Workload `external`.

    The messages between ranks that a program sends while it drives the simulation
    (docs/embedding.md).

    Args:
        ranks: Number of ranks; as many as there are places for if not given (whole number, at least
            2).
        hosts: The hosts that ranks are placed on; all if not given (number or list of hosts).
        ranks_per_host: Ranks of a host, which share its NIC. If the topology has NICs (`rails`, and
            `links` with `nics` or `servers`), a rank has one of them, and there are as many ranks
            as NICs if not given; otherwise 1 (whole number, at least 1).
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink; `scale_up_rate` of the topology if not given (rate, at
            least 1bps).
        local_delay: With several ranks per host: delay of that network; `scale_up_delay` of the
            topology, or 0s, if not given (time).
        done: When a send is done: its message has arrived (`delivered`; the sender hears of it
            after the propagation delay of the path), its last byte has left (`local`), or the
            sender has the acknowledgement (`acknowledged`) ("delivered", "local", "acknowledged";
            default "delivered").
        send_order: Whether a host sends packets of all messages in turn (`interleaved`), or a rank
            sends one message after the other (`sequential`), as closed forms of trees assume
            ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Flows from one rank to another, which its messages take in turn (whole
            number, at least 1; default "1").
        name: The workload is measured by itself under this name; several of one name are measured
            together (text).
        deadline: For a workload with a `name`: the share of ops that take longer is measured (time,
            above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device per host and workload that reads wait for. Latency
            includes it, the ideal of slowdown does not (table).
        start: When the first ops are submitted (time; default "0s").
        stop: No op is submitted from this time on (time).
        every: The workload is repeated after this time, and again, each time until its `stop`
            (time, above 0).
        algorithm: Label of the algorithm, if there are several (text).
        class_: Traffic class; the first if not given (text).
        balancer: Path policy: a name, and parameters as `key=value` after it, like "reps" or "reps
            profile=uet freeze=200us"; "ecmp", one path per flow, if not given (text).
    """
    return Workload(
        "external",
        {"kind": "external"},
        {"class_": "class"},
        {
            "ranks": ranks,
            "hosts": hosts,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
            "places": places,
            "local_rate": local_rate,
            "local_delay": local_delay,
            "done": done,
            "send_order": send_order,
            "flows_per_pair": flows_per_pair,
            "name": name,
            "deadline": deadline,
            "op": op,
            "service": service,
            "start": start,
            "stop": stop,
            "every": every,
            "algorithm": algorithm,
            "class_": class_,
            "balancer": balancer,
        },
    )
