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

    `senders` hosts send to one `receiver`, or to each of several receivers.

    Args:
        senders: The hosts that send. Default: all other hosts (number or list of hosts).
        receiver: The host that receives. With `kind = "incast"`, a list of hosts makes an incast to
            each of them (host or list of hosts).
        size: Payload of an op (size, at least 1B).
        outstanding: Number of outstanding ops of each flow (whole number, at least 1; default "1").
        flows_per_pair: Number of flows of each pair of hosts (whole number, at least 1; default
            "1").
        start_spread: Maximum of the random time by which the start of each flow is delayed (time;
            default "0s").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    Each host sends to one other host and receives from one other host; the pairs are drawn from the
    seed.

    Args:
        hosts: The hosts that send and receive. Default: all hosts (number or list of hosts).
        size: Payload of an op (size, at least 1B).
        outstanding: Number of outstanding ops of each flow (whole number, at least 1; default "1").
        flows_per_pair: Number of flows of each pair of hosts (whole number, at least 1; default
            "1").
        start_spread: Maximum of the random time by which the start of each flow is delayed (time;
            default "0s").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    Each host sends to every other host, in closed loops. With a `pattern`, the workload is a job,
    and `size` is the whole array of a rank.

    Args:
        hosts: The hosts that send and receive. Default: all hosts (number or list of hosts).
        size: Payload of an op (size, at least 1B).
        outstanding: Number of outstanding ops of each flow (whole number, at least 1; default "1").
        flows_per_pair: Number of flows of each pair of hosts (whole number, at least 1; default
            "1").
        start_spread: Maximum of the random time by which the start of each flow is delayed (time;
            default "0s").
        pattern: If given, the workload is a job: one collective by this algorithm, with
            dependencies between its messages. `rail`: by node and rail, like PXN of NCCL ("direct",
            "pairwise", "window", "bruck", "rail").
        window: With the pattern `window`: number of blocks that a rank sends at the same time
            (whole number, at least 1; default "4").
        group: With the pattern `hierarchical` or `rail`: number of consecutive ranks that form a
            node. Default: the number of ranks of a host, if these are consecutive and all hosts
            have the same number (whole number, at least 2).
        ranks: Number of ranks. Default: as many as the hosts have room for (whole number, at least
            2).
        channels: Number of equal parts of the data. Each part has its own collective, and these run
            in parallel (whole number, from 1 to 256; default "1").
        compute: Time for which every rank computes before each iteration (time; default "0s").
        iterations: Number of iterations: how often the collective, the pipeline or the training
            step is executed (whole number, at least 1; default "1").
        ranks_per_host: Number of ranks of each host; they share its NIC. If the topology has NICs
            (`rails`, and `links` with `nics` or `servers`), each rank uses one of them, and the
            default is the number of NICs of a host. Otherwise the default is 1 (whole number, at
            least 1).
        placement: Assignment of ranks to hosts. `block`: each host takes `ranks_per_host` ranks, in
            order. `round-robin`: the hosts take ranks in turn. `random`: as `block`, but with the
            ranks in an order drawn from the seed ("block", "round-robin", "random"; default
            "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of each rank, in each direction, in the
            network within its host, such as NVLink. Default: `scale_up_rate` of the topology (rate,
            at least 1bps).
        local_delay: With several ranks per host: delay of the network within the host. Default:
            `scale_up_delay` of the topology, or 0s (time).
        done: When a send is done. `delivered`: its message has arrived; the sender learns this
            after the propagation delay of the path. `local`: the last byte of its message has left
            the sender. `acknowledged`: the sender has the acknowledgement ("delivered", "local",
            "acknowledged"; default "delivered").
        send_order: Order of messages. `interleaved`: a host sends packets of all its messages in
            turn. `sequential`: a rank sends one message after the other, as the closed forms of
            trees assume ("interleaved", "sequential"; default "interleaved").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    Pairs of hosts, each in a table `[[workload.flow]]` with `from` and `to`.

    Args:
        flows: A flow from one host to another (list of tables).
        size: Payload of an op (size, at least 1B).
        outstanding: Number of outstanding ops of each flow (whole number, at least 1; default "1").
        flows_per_pair: Number of flows of each pair of hosts (whole number, at least 1; default
            "1").
        start_spread: Maximum of the random time by which the start of each flow is delayed (time;
            default "0s").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    An open loop: ops of random `sizes` at random times, with a given `load` of the links.

    Args:
        load: Offered payload bytes per time, divided by the rate of a link. Without a `receiver`,
            it is the load of each sender on its own link; with a `receiver`, the load of all
            senders together on the link of the receiver (number, above 0 and at most 10).
        size: Payload of an op (size, at least 1B).
        sizes: Distribution of op sizes, in place of `size`: a name (see below) or a table (text or
            table).
        hosts: The hosts that send and receive. Default: all hosts (number or list of hosts).
        to: "other-racks": hosts send only to hosts of other racks ("other-hosts", "other-racks";
            default "other-hosts").
        senders: The hosts that send. Default: all other hosts (number or list of hosts).
        receiver: The host that receives. With `kind = "incast"`, a list of hosts makes an incast to
            each of them (host or list of hosts).
        flows: "per-pair": the ops of a pair of hosts use its `flows_per_pair` flows in turn. If a
            flow cannot accept an op yet, the op is queued, and its latency counts from its arrival.
            "per-op": each op has its own flow ("per-pair", "per-op"; default "per-pair").
        flows_per_pair: Number of flows of each pair of hosts (whole number, at least 1; default
            "1").
        handshake: Each flow sets up its connection before its first op: it sends an empty packet
            and waits for the acknowledgement, like SYN and SYN-ACK of TCP. The latency of the op
            includes this time; the ideal time of the slowdown does not (true or false; default
            "false").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    A `master` sends a `request` to all `workers`, and each worker sends an `answer`. The next round
    begins when all workers have answered. An op is an answer; it lasts from the submission of the
    request to the arrival of the last byte.

    Args:
        master: The host that sends requests. Default: the last host (whole number).
        workers: The hosts that answer. Default: all other hosts (number or list of hosts).
        request: Size of the request to each worker (size, at least 1B).
        answer: Size of the answer of each worker (size, at least 1B).
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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
        flows: Content of such a file, in place of `file` (text).
        flows_per_pair: Maximum number of flows from one host to another. The ops use these flows in
            turn, in the order of their start times. If a flow cannot accept an op yet, the op is
            queued, and its latency counts from its arrival. Default: one flow per op (whole number,
            at least 1).
        stream: The file is read during the run, so that the memory does not grow with the number of
            messages. The results are the same. Requires CSV in the order of start times, and
            `flows_per_pair` (true or false; default "false").
        digest: With `stream`: SHA-256 of the file in hexadecimal digits. A file with a different
            content is an error (text).
        handshake: Each flow sets up its connection before its first op: it sends an empty packet
            and waits for the acknowledgement, like SYN and SYN-ACK of TCP. The latency of the op
            includes this time; the ideal time of the slowdown does not (true or false; default
            "false").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    Ranks that send, receive and compute in the order that a `file` defines; the main result is the
    completion time.

    Args:
        file: A job: GOAL (text or binary), .cm of htsim with triggers, workload.txt of SimAI, or
            Chakra traces (their folder, or the common beginning of their names). The content
            determines the format (text).
        operations: Content of such a file, in place of `file` (text).
        groups: With Chakra traces: the ranks of the groups that the traces name by `pg_name`,
            unless the traces define these groups themselves (table).
        lenient: With Chakra traces. `true`: dependencies on absent nodes, collectives of unknown
            groups and other items without meaning for the simulation are left out, and the notes of
            the results list them. `false`: they are errors (true or false; default "false").
        hosts: The hosts on which ranks are placed. Default: all hosts (number or list of hosts).
        ranks_per_host: Number of ranks of each host; they share its NIC. If the topology has NICs
            (`rails`, and `links` with `nics` or `servers`), each rank uses one of them, and the
            default is the number of NICs of a host. Otherwise the default is 1 (whole number, at
            least 1).
        placement: Assignment of ranks to hosts. `block`: each host takes `ranks_per_host` ranks, in
            order. `round-robin`: the hosts take ranks in turn. `random`: as `block`, but with the
            ranks in an order drawn from the seed ("block", "round-robin", "random"; default
            "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of each rank, in each direction, in the
            network within its host, such as NVLink. Default: `scale_up_rate` of the topology (rate,
            at least 1bps).
        local_delay: With several ranks per host: delay of the network within the host. Default:
            `scale_up_delay` of the topology, or 0s (time).
        done: When a send is done. `delivered`: its message has arrived; the sender learns this
            after the propagation delay of the path. `local`: the last byte of its message has left
            the sender. `acknowledged`: the sender has the acknowledgement ("delivered", "local",
            "acknowledged"; default "delivered").
        send_order: Order of messages. `interleaved`: a host sends packets of all its messages in
            turn. `sequential`: a rank sends one message after the other, as the closed forms of
            trees assume ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Number of flows from one rank to another. Messages use these flows in turn
            (whole number, at least 1; default "1").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    A generated job: every rank gets the sum of all arrays.

    Args:
        pattern: The algorithm. Rank r has position r in the ring and in the trees. `hierarchical`:
            first within the nodes, then along the rails ("ring", "halving-doubling",
            "double-binary-tree", "hierarchical"; default "ring").
        size: Size of the whole array of a rank. For an all-gather, it is the size of the whole
            result; for a pipeline, the size of the data that a micro-batch sends to the next stage
            (size, at least 1B).
        ranks: Number of ranks. Default: as many as the hosts have room for (whole number, at least
            2).
        chunks: With the pattern `double-binary-tree` or `chain`: number of pieces into which the
            data of each tree, or of the chain, is divided (whole number, at least 1; default "8").
        group: With the pattern `hierarchical` or `rail`: number of consecutive ranks that form a
            node. Default: the number of ranks of a host, if these are consecutive and all hosts
            have the same number (whole number, at least 2).
        channels: Number of equal parts of the data. Each part has its own collective, and these run
            in parallel (whole number, from 1 to 256; default "1").
        compute: Time for which every rank computes before each iteration (time; default "0s").
        iterations: Number of iterations: how often the collective, the pipeline or the training
            step is executed (whole number, at least 1; default "1").
        hosts: The hosts on which ranks are placed. Default: all hosts (number or list of hosts).
        ranks_per_host: Number of ranks of each host; they share its NIC. If the topology has NICs
            (`rails`, and `links` with `nics` or `servers`), each rank uses one of them, and the
            default is the number of NICs of a host. Otherwise the default is 1 (whole number, at
            least 1).
        placement: Assignment of ranks to hosts. `block`: each host takes `ranks_per_host` ranks, in
            order. `round-robin`: the hosts take ranks in turn. `random`: as `block`, but with the
            ranks in an order drawn from the seed ("block", "round-robin", "random"; default
            "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of each rank, in each direction, in the
            network within its host, such as NVLink. Default: `scale_up_rate` of the topology (rate,
            at least 1bps).
        local_delay: With several ranks per host: delay of the network within the host. Default:
            `scale_up_delay` of the topology, or 0s (time).
        done: When a send is done. `delivered`: its message has arrived; the sender learns this
            after the propagation delay of the path. `local`: the last byte of its message has left
            the sender. `acknowledged`: the sender has the acknowledgement ("delivered", "local",
            "acknowledged"; default "delivered").
        send_order: Order of messages. `interleaved`: a host sends packets of all its messages in
            turn. `sequential`: a rank sends one message after the other, as the closed forms of
            trees assume ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Number of flows from one rank to another. Messages use these flows in turn
            (whole number, at least 1; default "1").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    A generated job: every rank gets one block of the sum of all arrays, in a ring.

    Args:
        size: Size of the whole array of a rank. For an all-gather, it is the size of the whole
            result; for a pipeline, the size of the data that a micro-batch sends to the next stage
            (size, at least 1B).
        ranks: Number of ranks. Default: as many as the hosts have room for (whole number, at least
            2).
        channels: Number of equal parts of the data. Each part has its own collective, and these run
            in parallel (whole number, from 1 to 256; default "1").
        compute: Time for which every rank computes before each iteration (time; default "0s").
        iterations: Number of iterations: how often the collective, the pipeline or the training
            step is executed (whole number, at least 1; default "1").
        hosts: The hosts on which ranks are placed. Default: all hosts (number or list of hosts).
        ranks_per_host: Number of ranks of each host; they share its NIC. If the topology has NICs
            (`rails`, and `links` with `nics` or `servers`), each rank uses one of them, and the
            default is the number of NICs of a host. Otherwise the default is 1 (whole number, at
            least 1).
        placement: Assignment of ranks to hosts. `block`: each host takes `ranks_per_host` ranks, in
            order. `round-robin`: the hosts take ranks in turn. `random`: as `block`, but with the
            ranks in an order drawn from the seed ("block", "round-robin", "random"; default
            "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of each rank, in each direction, in the
            network within its host, such as NVLink. Default: `scale_up_rate` of the topology (rate,
            at least 1bps).
        local_delay: With several ranks per host: delay of the network within the host. Default:
            `scale_up_delay` of the topology, or 0s (time).
        done: When a send is done. `delivered`: its message has arrived; the sender learns this
            after the propagation delay of the path. `local`: the last byte of its message has left
            the sender. `acknowledged`: the sender has the acknowledgement ("delivered", "local",
            "acknowledged"; default "delivered").
        send_order: Order of messages. `interleaved`: a host sends packets of all its messages in
            turn. `sequential`: a rank sends one message after the other, as the closed forms of
            trees assume ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Number of flows from one rank to another. Messages use these flows in turn
            (whole number, at least 1; default "1").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    A generated job: every rank gets the blocks of all ranks, in a ring.

    Args:
        size: Size of the whole array of a rank. For an all-gather, it is the size of the whole
            result; for a pipeline, the size of the data that a micro-batch sends to the next stage
            (size, at least 1B).
        ranks: Number of ranks. Default: as many as the hosts have room for (whole number, at least
            2).
        channels: Number of equal parts of the data. Each part has its own collective, and these run
            in parallel (whole number, from 1 to 256; default "1").
        compute: Time for which every rank computes before each iteration (time; default "0s").
        iterations: Number of iterations: how often the collective, the pipeline or the training
            step is executed (whole number, at least 1; default "1").
        hosts: The hosts on which ranks are placed. Default: all hosts (number or list of hosts).
        ranks_per_host: Number of ranks of each host; they share its NIC. If the topology has NICs
            (`rails`, and `links` with `nics` or `servers`), each rank uses one of them, and the
            default is the number of NICs of a host. Otherwise the default is 1 (whole number, at
            least 1).
        placement: Assignment of ranks to hosts. `block`: each host takes `ranks_per_host` ranks, in
            order. `round-robin`: the hosts take ranks in turn. `random`: as `block`, but with the
            ranks in an order drawn from the seed ("block", "round-robin", "random"; default
            "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of each rank, in each direction, in the
            network within its host, such as NVLink. Default: `scale_up_rate` of the topology (rate,
            at least 1bps).
        local_delay: With several ranks per host: delay of the network within the host. Default:
            `scale_up_delay` of the topology, or 0s (time).
        done: When a send is done. `delivered`: its message has arrived; the sender learns this
            after the propagation delay of the path. `local`: the last byte of its message has left
            the sender. `acknowledged`: the sender has the acknowledgement ("delivered", "local",
            "acknowledged"; default "delivered").
        send_order: Order of messages. `interleaved`: a host sends packets of all its messages in
            turn. `sequential`: a rank sends one message after the other, as the closed forms of
            trees assume ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Number of flows from one rank to another. Messages use these flows in turn
            (whole number, at least 1; default "1").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    A generated job: every rank gets the array of rank 0.

    Args:
        pattern: The algorithm; rank 0 is the root ("binomial", "chain"; default "binomial").
        size: Size of the whole array of a rank. For an all-gather, it is the size of the whole
            result; for a pipeline, the size of the data that a micro-batch sends to the next stage
            (size, at least 1B).
        ranks: Number of ranks. Default: as many as the hosts have room for (whole number, at least
            2).
        chunks: With the pattern `double-binary-tree` or `chain`: number of pieces into which the
            data of each tree, or of the chain, is divided (whole number, at least 1; default "8").
        channels: Number of equal parts of the data. Each part has its own collective, and these run
            in parallel (whole number, from 1 to 256; default "1").
        compute: Time for which every rank computes before each iteration (time; default "0s").
        iterations: Number of iterations: how often the collective, the pipeline or the training
            step is executed (whole number, at least 1; default "1").
        hosts: The hosts on which ranks are placed. Default: all hosts (number or list of hosts).
        ranks_per_host: Number of ranks of each host; they share its NIC. If the topology has NICs
            (`rails`, and `links` with `nics` or `servers`), each rank uses one of them, and the
            default is the number of NICs of a host. Otherwise the default is 1 (whole number, at
            least 1).
        placement: Assignment of ranks to hosts. `block`: each host takes `ranks_per_host` ranks, in
            order. `round-robin`: the hosts take ranks in turn. `random`: as `block`, but with the
            ranks in an order drawn from the seed ("block", "round-robin", "random"; default
            "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of each rank, in each direction, in the
            network within its host, such as NVLink. Default: `scale_up_rate` of the topology (rate,
            at least 1bps).
        local_delay: With several ranks per host: delay of the network within the host. Default:
            `scale_up_delay` of the topology, or 0s (time).
        done: When a send is done. `delivered`: its message has arrived; the sender learns this
            after the propagation delay of the path. `local`: the last byte of its message has left
            the sender. `acknowledged`: the sender has the acknowledgement ("delivered", "local",
            "acknowledged"; default "delivered").
        send_order: Order of messages. `interleaved`: a host sends packets of all its messages in
            turn. `sequential`: a rank sends one message after the other, as the closed forms of
            trees assume ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Number of flows from one rank to another. Messages use these flows in turn
            (whole number, at least 1; default "1").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    A generated job: stages pass all micro-batches forward, then all of them backward.

    Args:
        size: Size of the whole array of a rank. For an all-gather, it is the size of the whole
            result; for a pipeline, the size of the data that a micro-batch sends to the next stage
            (size, at least 1B).
        ranks: Number of ranks. Default: as many as the hosts have room for (whole number, at least
            2).
        micro_batches: Number of micro-batches. All of them pass forward, then all of them backward
            (whole number, at least 1; default "8").
        forward: Time that a stage needs for a micro-batch in the forward direction (time).
        backward: Time that a stage needs for a micro-batch in the backward direction (time).
        iterations: Number of iterations: how often the collective, the pipeline or the training
            step is executed (whole number, at least 1; default "1").
        hosts: The hosts on which ranks are placed. Default: all hosts (number or list of hosts).
        ranks_per_host: Number of ranks of each host; they share its NIC. If the topology has NICs
            (`rails`, and `links` with `nics` or `servers`), each rank uses one of them, and the
            default is the number of NICs of a host. Otherwise the default is 1 (whole number, at
            least 1).
        placement: Assignment of ranks to hosts. `block`: each host takes `ranks_per_host` ranks, in
            order. `round-robin`: the hosts take ranks in turn. `random`: as `block`, but with the
            ranks in an order drawn from the seed ("block", "round-robin", "random"; default
            "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of each rank, in each direction, in the
            network within its host, such as NVLink. Default: `scale_up_rate` of the topology (rate,
            at least 1bps).
        local_delay: With several ranks per host: delay of the network within the host. Default:
            `scale_up_delay` of the topology, or 0s (time).
        done: When a send is done. `delivered`: its message has arrived; the sender learns this
            after the propagation delay of the path. `local`: the last byte of its message has left
            the sender. `acknowledged`: the sender has the acknowledgement ("delivered", "local",
            "acknowledged"; default "delivered").
        send_order: Order of messages. `interleaved`: a host sends packets of all its messages in
            turn. `sequential`: a rank sends one message after the other, as the closed forms of
            trees assume ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Number of flows from one rank to another. Messages use these flows in turn
            (whole number, at least 1; default "1").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    A generated job: training steps of a transformer with tensor, pipeline, data and expert
    parallelism; docs/jobs.md describes the model of its computations and messages.

    Args:
        model: The transformer. The sizes below replace those of the model ("llama-7b", "llama-13b",
            "llama-65b", "gpt3-175b", "mixtral-8x7b"; default "llama-7b").
        layers: Number of layers. Default for this size, and for all sizes down to
            `experts_per_token`: that of the model (whole number, at least 1).
        hidden: Hidden size: number of elements of an activation per token (whole number, at least
            1).
        feed_forward: Inner size of a feed-forward network (whole number, at least 1).
        vocabulary: Number of tokens in the vocabulary (whole number).
        sequence: Number of tokens of a sequence (whole number, at least 1).
        experts: Number of experts: feed-forward networks of a layer, of which a token passes some
            (whole number, at least 1).
        experts_per_token: Number of experts that a token passes (whole number, at least 1).
        tp: Tensor parallelism: number of consecutive ranks that divide each layer (whole number, at
            least 1; default "1").
        pp: Pipeline parallelism: number of stages of layers (whole number, at least 1; default
            "1").
        dp: Data parallelism: number of copies of the model. Default: as many as the hosts have room
            for (whole number, at least 1).
        ep: Expert parallelism: number of copies of the model that divide the experts (whole number,
            at least 1; default "1").
        micro_batch: Number of sequences of a micro-batch (whole number, at least 1; default "1").
        micro_batches: Number of micro-batches of each copy of the model per step (whole number, at
            least 1; default "8").
        element: Size of one element of an activation or a gradient. The default is that of bfloat16
            (size, at least 1B; default "2B").
        tflops: Floating-point operations of a rank, in units of 10^12 per second. deviation: the
            default is about 40 % of the 989 of an H100 in bfloat16; this is the utilisation in the
            training of Llama 3 (Dubey et al., arXiv 2407.21783, Table 4) (number, above 0 and at
            most 100000; default "400").
        overlap: `true`: the gradients of a layer are reduced in parallel with the computations of
            earlier layers. `false`: all gradients are reduced after the computations (true or
            false; default "true").
        pattern: Algorithm of the all-reduces of gradients ("ring", "halving-doubling",
            "double-binary-tree"; default "ring").
        chunks: With the pattern `double-binary-tree` or `chain`: number of pieces into which the
            data of each tree, or of the chain, is divided (whole number, at least 1; default "8").
        iterations: Number of iterations: how often the collective, the pipeline or the training
            step is executed (whole number, at least 1; default "1").
        hosts: The hosts on which ranks are placed. Default: all hosts (number or list of hosts).
        ranks_per_host: Number of ranks of each host; they share its NIC. If the topology has NICs
            (`rails`, and `links` with `nics` or `servers`), each rank uses one of them, and the
            default is the number of NICs of a host. Otherwise the default is 1 (whole number, at
            least 1).
        placement: Assignment of ranks to hosts. `block`: each host takes `ranks_per_host` ranks, in
            order. `round-robin`: the hosts take ranks in turn. `random`: as `block`, but with the
            ranks in an order drawn from the seed ("block", "round-robin", "random"; default
            "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of each rank, in each direction, in the
            network within its host, such as NVLink. Default: `scale_up_rate` of the topology (rate,
            at least 1bps).
        local_delay: With several ranks per host: delay of the network within the host. Default:
            `scale_up_delay` of the topology, or 0s (time).
        done: When a send is done. `delivered`: its message has arrived; the sender learns this
            after the propagation delay of the path. `local`: the last byte of its message has left
            the sender. `acknowledged`: the sender has the acknowledgement ("delivered", "local",
            "acknowledged"; default "delivered").
        send_order: Order of messages. `interleaved`: a host sends packets of all its messages in
            turn. `sequential`: a rank sends one message after the other, as the closed forms of
            trees assume ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Number of flows from one rank to another. Messages use these flows in turn
            (whole number, at least 1; default "1").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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

    Messages between ranks, which a program sends while it drives the simulation
    (docs/embedding.md).

    Args:
        ranks: Number of ranks. Default: as many as the hosts have room for (whole number, at least
            2).
        hosts: The hosts on which ranks are placed. Default: all hosts (number or list of hosts).
        ranks_per_host: Number of ranks of each host; they share its NIC. If the topology has NICs
            (`rails`, and `links` with `nics` or `servers`), each rank uses one of them, and the
            default is the number of NICs of a host. Otherwise the default is 1 (whole number, at
            least 1).
        placement: Assignment of ranks to hosts. `block`: each host takes `ranks_per_host` ranks, in
            order. `round-robin`: the hosts take ranks in turn. `random`: as `block`, but with the
            ranks in an order drawn from the seed ("block", "round-robin", "random"; default
            "block").
        places: The host of each rank, in place of `placement`, `hosts` and `ranks_per_host`
            (table).
        local_rate: With several ranks per host: rate of each rank, in each direction, in the
            network within its host, such as NVLink. Default: `scale_up_rate` of the topology (rate,
            at least 1bps).
        local_delay: With several ranks per host: delay of the network within the host. Default:
            `scale_up_delay` of the topology, or 0s (time).
        done: When a send is done. `delivered`: its message has arrived; the sender learns this
            after the propagation delay of the path. `local`: the last byte of its message has left
            the sender. `acknowledged`: the sender has the acknowledgement ("delivered", "local",
            "acknowledged"; default "delivered").
        send_order: Order of messages. `interleaved`: a host sends packets of all its messages in
            turn. `sequential`: a rank sends one message after the other, as the closed forms of
            trees assume ("interleaved", "sequential"; default "interleaved").
        flows_per_pair: Number of flows from one rank to another. Messages use these flows in turn
            (whole number, at least 1; default "1").
        name: Name under which the workload is measured separately. Workloads with the same name are
            measured together (text).
        deadline: For a workload with a `name`: the share of ops that take longer than this is
            measured (time, above 0).
        op: Type of op ("write", "read", "message"; default "write").
        service: With `op = "read"`: a device at each host, separate for each workload, at which
            reads wait. The latency includes this time; the ideal time of the slowdown does not
            (table).
        start: Time at which the first ops are submitted (time; default "0s").
        stop: Time from which no more ops are submitted (time).
        every: Repeats the workload until the end of the run: time from the start of one burst to
            the start of the next. Each burst lasts from `start` to `stop`, which is then required
            (time, above 0).
        algorithm: Label of the algorithm; required if there are several algorithms (text).
        class_: Traffic class. Default: the first class (text).
        balancer: Path policy: a name, optionally followed by parameters as `key=value`, such as
            "reps" or "reps profile=uet freeze=200us". A workload uses its own policy, else that of
            its class, else that of `routing`, else "ecmp" (one path per flow) (text).
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
