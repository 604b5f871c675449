"""Workloads of scenarios.

Made from the declarations of scenario files (`python/tools/generate.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apus._settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apus._types import Rate, Size, Time
    from apus.settings import Flow, Service, Sizes

__all__ = [
    "Workload",
    "all_to_all",
    "collective",
    "flows",
    "incast",
    "job",
    "partition_aggregate",
    "permutation",
    "poisson",
    "trace",
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

    Every host to every other.

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
        "all_to_all",
        {"kind": "all-to-all"},
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
    hosts: int | Sequence[int] | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
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

    Ranks that send, receive and compute in the order of the schedule in a `file`; the first result
    is the completion time.

    Args:
        file: A schedule in the text form of GOAL; `apus convert` makes it of the binary form
            (text).
        operations: The text of such a file (text).
        hosts: The hosts that ranks are placed on; all if not given (number or list of hosts).
        ranks_per_host: Ranks of a host, which share its NIC (whole number, at least 1; default
            "1").
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink (rate, at least 1bps).
        local_delay: With several ranks per host: delay of that network (time; default "0s").
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
            "hosts": hosts,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
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


def collective(
    *,
    pattern: Literal[
        "ring-all-reduce",
        "ring-reduce-scatter",
        "ring-all-gather",
        "halving-doubling",
        "double-binary-tree",
        "hierarchical-all-reduce",
        "binomial-broadcast",
        "chain-broadcast",
        "direct-all-to-all",
        "pairwise-all-to-all",
        "window-all-to-all",
        "bruck-all-to-all",
        "pipeline",
    ]
    | None = None,
    size: Size | None = None,
    ranks: int | None = None,
    chunks: int | None = None,
    window: int | None = None,
    group: int | None = None,
    micro_batches: int | None = None,
    forward: Time | None = None,
    backward: Time | None = None,
    compute: Time | None = None,
    iterations: int | None = None,
    hosts: int | Sequence[int] | None = None,
    ranks_per_host: int | None = None,
    placement: Literal["block", "round-robin", "random"] | None = None,
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
    """Workload `collective`.

    A job that is generated: a collective of all ranks by a `pattern`, with dependencies between its
    messages, repeated with computations between. The kind `all-to-all` is other traffic: closed
    loops of independent ops.

    Args:
        pattern: The collective and its algorithm; rank r is the r-th in the ring or tree, and
            broadcasts are from rank 0 ("ring-all-reduce", "ring-reduce-scatter", "ring-all-gather",
            "halving-doubling", "double-binary-tree", "hierarchical-all-reduce",
            "binomial-broadcast", "chain-broadcast", "direct-all-to-all", "pairwise-all-to-all",
            "window-all-to-all", "bruck-all-to-all", "pipeline"; default "ring-all-reduce").
        size: The whole array of a rank; of an all-gather the whole result, of a pipeline what a
            micro-batch sends to the next stage (size, at least 1B).
        ranks: Number of ranks; `ranks_per_host` on each of the `hosts` if not given (whole number,
            at least 2).
        chunks: For `double-binary-tree` and `chain-broadcast`: pieces of the data, of each tree or
            of the chain (whole number, at least 1; default "8").
        window: For `window-all-to-all`: blocks that a rank sends at a time (whole number, at least
            1; default "4").
        group: For `hierarchical-all-reduce`: consecutive ranks that reduce among themselves first;
            `ranks_per_host` if not given (whole number, at least 2).
        micro_batches: For `pipeline`: micro-batches, all forward and then all backward (whole
            number, at least 1; default "8").
        forward: For `pipeline`: time of a stage for a micro-batch, forward (time).
        backward: For `pipeline`: time of a stage for a micro-batch, backward (time).
        compute: Time that every rank computes before each iteration (time; default "0s").
        iterations: How often the collective takes place (whole number, at least 1; default "1").
        hosts: The hosts that ranks are placed on; all if not given (number or list of hosts).
        ranks_per_host: Ranks of a host, which share its NIC (whole number, at least 1; default
            "1").
        placement: Hosts of the ranks: each host takes `ranks_per_host` ranks in order (`block`),
            the hosts take ranks in turn (`round-robin`), or the ranks of `block` in an order drawn
            from the seed (`random`) ("block", "round-robin", "random"; default "block").
        local_rate: With several ranks per host: rate of a rank in each direction in the network
            within its host, such as NVLink (rate, at least 1bps).
        local_delay: With several ranks per host: delay of that network (time; default "0s").
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
        "collective",
        {"kind": "collective"},
        {"class_": "class"},
        {
            "pattern": pattern,
            "size": size,
            "ranks": ranks,
            "chunks": chunks,
            "window": window,
            "group": group,
            "micro_batches": micro_batches,
            "forward": forward,
            "backward": backward,
            "compute": compute,
            "iterations": iterations,
            "hosts": hosts,
            "ranks_per_host": ranks_per_host,
            "placement": placement,
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
