"""Topologies of scenarios.

Made from the declarations of scenario files (`python/tools/generate.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apus._settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apus._types import Rate, Size, Time
    from apus.settings import Class, Ecn, Link, Pfc, Shared, SwitchLink

__all__ = [
    "Topology",
    "dumbbell",
    "fat_tree",
    "leaf_spine",
    "links",
    "parking_lot",
    "rails",
    "star",
]


class Topology(Settings):
    """A topology of a scenario."""


def star(
    *,
    hosts: int | None = None,
    planes: int | None = None,
    rate: Rate | None = None,
    delay: Time | None = None,
    buffer: Size | None = None,
    shared: Shared | None = None,
    pipeline_latency: Time | None = None,
    ecn: Ecn | None = None,
    classes: Sequence[Class] | None = None,
    scheduler: Literal["stfq", "drr"] | None = None,
    ack_class: str | None = None,
    plain: Sequence[str] | None = None,
    signals: Literal["packets", "instant"] | None = None,
    pfc: Pfc | None = None,
) -> Topology:
    """Topology `star`.

    `hosts` hosts on one switch.

    Args:
        hosts: Number of hosts (whole number, from 1 to 65536).
        planes: Number of equal networks that share nothing except the hosts. Each host (with
            `rails`, each NIC) has a port of `rate` on each plane. A path policy that spreads
            packets uses all planes; a flow with one path uses one plane (whole number, from 1 to
            64; default "1").
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way propagation delay of the links (time, at most 1s).
        buffer: Memory of each switch port (size or "unlimited").
        shared: Memory that all ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it joins a queue (time, at
            most 1s; default "0s").
        ecn: ECN: switches mark packets, depending on the queue of the port (table).
        classes: Traffic classes of every switch port, at least two. If the algorithm of the
            workloads in a class has a switch half, the switch ports run it for this class (list of
            tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Traffic class of acknowledgements and read requests. Default: the class of their
            flow (text).
        plain: Names of switches that do not run the switch halves of algorithms (list of texts).
        signals: "packets": signals of switches travel as packets, like acknowledgements. "instant":
            signals reach their source at once and use no bandwidth ("packets", "instant"; default
            "packets").
        pfc: Priority flow control: switches pause the links that fill their memory (table).
    """
    return Topology(
        "star",
        {"kind": "star"},
        {"classes": "class"},
        {
            "hosts": hosts,
            "planes": planes,
            "rate": rate,
            "delay": delay,
            "buffer": buffer,
            "shared": shared,
            "pipeline_latency": pipeline_latency,
            "ecn": ecn,
            "classes": classes,
            "scheduler": scheduler,
            "ack_class": ack_class,
            "plain": plain,
            "signals": signals,
            "pfc": pfc,
        },
    )


def dumbbell(
    *,
    left: int | None = None,
    right: int | None = None,
    middle: SwitchLink | None = None,
    rate: Rate | None = None,
    delay: Time | None = None,
    buffer: Size | None = None,
    shared: Shared | None = None,
    pipeline_latency: Time | None = None,
    ecn: Ecn | None = None,
    classes: Sequence[Class] | None = None,
    scheduler: Literal["stfq", "drr"] | None = None,
    ack_class: str | None = None,
    plain: Sequence[str] | None = None,
    signals: Literal["packets", "instant"] | None = None,
    pfc: Pfc | None = None,
) -> Topology:
    """Topology `dumbbell`.

    `left` and `right` hosts on two switches, which the link `middle` connects.

    Args:
        left: Number of hosts on the left switch (whole number, from 1 to 65536).
        right: Number of hosts on the right switch (whole number, from 1 to 65536).
        middle: Settings in which the link between the switches differs from the links of hosts
            (table).
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way propagation delay of the links (time, at most 1s).
        buffer: Memory of each switch port (size or "unlimited").
        shared: Memory that all ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it joins a queue (time, at
            most 1s; default "0s").
        ecn: ECN: switches mark packets, depending on the queue of the port (table).
        classes: Traffic classes of every switch port, at least two. If the algorithm of the
            workloads in a class has a switch half, the switch ports run it for this class (list of
            tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Traffic class of acknowledgements and read requests. Default: the class of their
            flow (text).
        plain: Names of switches that do not run the switch halves of algorithms (list of texts).
        signals: "packets": signals of switches travel as packets, like acknowledgements. "instant":
            signals reach their source at once and use no bandwidth ("packets", "instant"; default
            "packets").
        pfc: Priority flow control: switches pause the links that fill their memory (table).
    """
    return Topology(
        "dumbbell",
        {"kind": "dumbbell"},
        {"classes": "class"},
        {
            "left": left,
            "right": right,
            "middle": middle,
            "rate": rate,
            "delay": delay,
            "buffer": buffer,
            "shared": shared,
            "pipeline_latency": pipeline_latency,
            "ecn": ecn,
            "classes": classes,
            "scheduler": scheduler,
            "ack_class": ack_class,
            "plain": plain,
            "signals": signals,
            "pfc": pfc,
        },
    )


def leaf_spine(
    *,
    leaves: int | None = None,
    hosts_per_leaf: int | None = None,
    spines: int | None = None,
    oversubscription: float | None = None,
    uplink: SwitchLink | None = None,
    planes: int | None = None,
    rate: Rate | None = None,
    delay: Time | None = None,
    buffer: Size | None = None,
    shared: Shared | None = None,
    pipeline_latency: Time | None = None,
    ecn: Ecn | None = None,
    classes: Sequence[Class] | None = None,
    scheduler: Literal["stfq", "drr"] | None = None,
    ack_class: str | None = None,
    plain: Sequence[str] | None = None,
    signals: Literal["packets", "instant"] | None = None,
    pfc: Pfc | None = None,
) -> Topology:
    """Topology `leaf-spine`.

    `leaves` switches with `hosts_per_leaf` hosts each; every leaf has an `uplink` to each of the
    `spines`.

    Args:
        leaves: Number of leaf switches (whole number, from 1 to 65536).
        hosts_per_leaf: Number of hosts of each leaf switch (whole number, from 1 to 65536).
        spines: Number of spine switches; not needed with `oversubscription` (whole number, from 1
            to 65536).
        oversubscription: Total rate of the hosts of a leaf, divided by the total rate of its
            uplinks. It determines `spines`; if both are given, they must agree (number, above 0 and
            at most 1024).
        uplink: Settings in which the links between leaf and spine switches differ from the links of
            hosts (table).
        planes: Number of equal networks that share nothing except the hosts. Each host (with
            `rails`, each NIC) has a port of `rate` on each plane. A path policy that spreads
            packets uses all planes; a flow with one path uses one plane (whole number, from 1 to
            64; default "1").
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way propagation delay of the links (time, at most 1s).
        buffer: Memory of each switch port (size or "unlimited").
        shared: Memory that all ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it joins a queue (time, at
            most 1s; default "0s").
        ecn: ECN: switches mark packets, depending on the queue of the port (table).
        classes: Traffic classes of every switch port, at least two. If the algorithm of the
            workloads in a class has a switch half, the switch ports run it for this class (list of
            tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Traffic class of acknowledgements and read requests. Default: the class of their
            flow (text).
        plain: Names of switches that do not run the switch halves of algorithms (list of texts).
        signals: "packets": signals of switches travel as packets, like acknowledgements. "instant":
            signals reach their source at once and use no bandwidth ("packets", "instant"; default
            "packets").
        pfc: Priority flow control: switches pause the links that fill their memory (table).
    """
    return Topology(
        "leaf_spine",
        {"kind": "leaf-spine"},
        {"classes": "class"},
        {
            "leaves": leaves,
            "hosts_per_leaf": hosts_per_leaf,
            "spines": spines,
            "oversubscription": oversubscription,
            "uplink": uplink,
            "planes": planes,
            "rate": rate,
            "delay": delay,
            "buffer": buffer,
            "shared": shared,
            "pipeline_latency": pipeline_latency,
            "ecn": ecn,
            "classes": classes,
            "scheduler": scheduler,
            "ack_class": ack_class,
            "plain": plain,
            "signals": signals,
            "pfc": pfc,
        },
    )


def fat_tree(
    *,
    k: int | None = None,
    hosts_per_edge: int | None = None,
    aggregation: SwitchLink | None = None,
    core: SwitchLink | None = None,
    planes: int | None = None,
    rate: Rate | None = None,
    delay: Time | None = None,
    buffer: Size | None = None,
    shared: Shared | None = None,
    pipeline_latency: Time | None = None,
    ecn: Ecn | None = None,
    classes: Sequence[Class] | None = None,
    scheduler: Literal["stfq", "drr"] | None = None,
    ack_class: str | None = None,
    plain: Sequence[str] | None = None,
    signals: Literal["packets", "instant"] | None = None,
    pfc: Pfc | None = None,
) -> Topology:
    """Topology `fat-tree`.

    `k`-port switches in three tiers; `aggregation` and `core` set the links between the tiers.

    Args:
        k: Number of ports of each switch; must be even (whole number, from 2 to 128).
        hosts_per_edge: Number of hosts of each edge switch. Default: `k` / 2 (whole number, from 1
            to 65536).
        aggregation: Settings in which the links between edge and aggregation switches differ from
            the links of hosts (table).
        core: Settings in which the links between aggregation and core switches differ from the
            links of hosts (table).
        planes: Number of equal networks that share nothing except the hosts. Each host (with
            `rails`, each NIC) has a port of `rate` on each plane. A path policy that spreads
            packets uses all planes; a flow with one path uses one plane (whole number, from 1 to
            64; default "1").
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way propagation delay of the links (time, at most 1s).
        buffer: Memory of each switch port (size or "unlimited").
        shared: Memory that all ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it joins a queue (time, at
            most 1s; default "0s").
        ecn: ECN: switches mark packets, depending on the queue of the port (table).
        classes: Traffic classes of every switch port, at least two. If the algorithm of the
            workloads in a class has a switch half, the switch ports run it for this class (list of
            tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Traffic class of acknowledgements and read requests. Default: the class of their
            flow (text).
        plain: Names of switches that do not run the switch halves of algorithms (list of texts).
        signals: "packets": signals of switches travel as packets, like acknowledgements. "instant":
            signals reach their source at once and use no bandwidth ("packets", "instant"; default
            "packets").
        pfc: Priority flow control: switches pause the links that fill their memory (table).
    """
    return Topology(
        "fat_tree",
        {"kind": "fat-tree"},
        {"classes": "class"},
        {
            "k": k,
            "hosts_per_edge": hosts_per_edge,
            "aggregation": aggregation,
            "core": core,
            "planes": planes,
            "rate": rate,
            "delay": delay,
            "buffer": buffer,
            "shared": shared,
            "pipeline_latency": pipeline_latency,
            "ecn": ecn,
            "classes": classes,
            "scheduler": scheduler,
            "ack_class": ack_class,
            "plain": plain,
            "signals": signals,
            "pfc": pfc,
        },
    )


def rails(
    *,
    nodes: int | None = None,
    nics: int | None = None,
    planes: int | None = None,
    nodes_per_leaf: int | None = None,
    spines: int | None = None,
    uplink: SwitchLink | None = None,
    scale_up_rate: Rate | None = None,
    scale_up_delay: Time | None = None,
    rate: Rate | None = None,
    delay: Time | None = None,
    buffer: Size | None = None,
    shared: Shared | None = None,
    pipeline_latency: Time | None = None,
    ecn: Ecn | None = None,
    classes: Sequence[Class] | None = None,
    scheduler: Literal["stfq", "drr"] | None = None,
    ack_class: str | None = None,
    plain: Sequence[str] | None = None,
    signals: Literal["packets", "instant"] | None = None,
    pfc: Pfc | None = None,
) -> Topology:
    """Topology `rails`.

    `nodes` with one NIC per rail: NIC i of each node is on a leaf switch of rail i, and `spines`
    connect the rails.

    Args:
        nodes: Number of nodes. Each node is a host with `nics` NICs; each rank of a job uses one
            NIC (whole number, from 1 to 65536).
        nics: Number of NICs of each node, which is also the number of rails (whole number, from 1
            to 64; default "8").
        planes: Number of equal networks that share nothing except the hosts. Each host (with
            `rails`, each NIC) has a port of `rate` on each plane. A path policy that spreads
            packets uses all planes; a flow with one path uses one plane (whole number, from 1 to
            64; default "1").
        nodes_per_leaf: Number of nodes whose NICs share leaf switches. Default: all nodes (whole
            number, from 1 to 65536).
        spines: Number of spine switches of each plane. Without spines, a message to another rail
            first crosses the network within its node (whole number, at most 65536; default "0").
        uplink: Settings in which the links between leaf and spine switches differ from the links of
            hosts (table).
        scale_up_rate: Rate of each rank, in each direction, in the network within its node. It is
            the default of `local_rate` of jobs (rate, at least 1bps).
        scale_up_delay: Delay of the network within a node. It is the default of `local_delay` of
            jobs (time, at most 1s; default "0s").
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way propagation delay of the links (time, at most 1s).
        buffer: Memory of each switch port (size or "unlimited").
        shared: Memory that all ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it joins a queue (time, at
            most 1s; default "0s").
        ecn: ECN: switches mark packets, depending on the queue of the port (table).
        classes: Traffic classes of every switch port, at least two. If the algorithm of the
            workloads in a class has a switch half, the switch ports run it for this class (list of
            tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Traffic class of acknowledgements and read requests. Default: the class of their
            flow (text).
        plain: Names of switches that do not run the switch halves of algorithms (list of texts).
        signals: "packets": signals of switches travel as packets, like acknowledgements. "instant":
            signals reach their source at once and use no bandwidth ("packets", "instant"; default
            "packets").
        pfc: Priority flow control: switches pause the links that fill their memory (table).
    """
    return Topology(
        "rails",
        {"kind": "rails"},
        {"classes": "class"},
        {
            "nodes": nodes,
            "nics": nics,
            "planes": planes,
            "nodes_per_leaf": nodes_per_leaf,
            "spines": spines,
            "uplink": uplink,
            "scale_up_rate": scale_up_rate,
            "scale_up_delay": scale_up_delay,
            "rate": rate,
            "delay": delay,
            "buffer": buffer,
            "shared": shared,
            "pipeline_latency": pipeline_latency,
            "ecn": ecn,
            "classes": classes,
            "scheduler": scheduler,
            "ack_class": ack_class,
            "plain": plain,
            "signals": signals,
            "pfc": pfc,
        },
    )


def parking_lot(
    *,
    switches: int | None = None,
    hosts_per_switch: int | None = None,
    chain: SwitchLink | None = None,
    rate: Rate | None = None,
    delay: Time | None = None,
    buffer: Size | None = None,
    shared: Shared | None = None,
    pipeline_latency: Time | None = None,
    ecn: Ecn | None = None,
    classes: Sequence[Class] | None = None,
    scheduler: Literal["stfq", "drr"] | None = None,
    ack_class: str | None = None,
    plain: Sequence[str] | None = None,
    signals: Literal["packets", "instant"] | None = None,
    pfc: Pfc | None = None,
) -> Topology:
    """Topology `parking-lot`.

    A chain of `switches` with `hosts_per_switch` hosts each; `chain` sets the links between the
    switches.

    Args:
        switches: Number of switches (whole number, from 1 to 65536).
        hosts_per_switch: Number of hosts of each switch (whole number, from 1 to 65536).
        chain: Settings in which the links between switches differ from the links of hosts (table).
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way propagation delay of the links (time, at most 1s).
        buffer: Memory of each switch port (size or "unlimited").
        shared: Memory that all ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it joins a queue (time, at
            most 1s; default "0s").
        ecn: ECN: switches mark packets, depending on the queue of the port (table).
        classes: Traffic classes of every switch port, at least two. If the algorithm of the
            workloads in a class has a switch half, the switch ports run it for this class (list of
            tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Traffic class of acknowledgements and read requests. Default: the class of their
            flow (text).
        plain: Names of switches that do not run the switch halves of algorithms (list of texts).
        signals: "packets": signals of switches travel as packets, like acknowledgements. "instant":
            signals reach their source at once and use no bandwidth ("packets", "instant"; default
            "packets").
        pfc: Priority flow control: switches pause the links that fill their memory (table).
    """
    return Topology(
        "parking_lot",
        {"kind": "parking-lot"},
        {"classes": "class"},
        {
            "switches": switches,
            "hosts_per_switch": hosts_per_switch,
            "chain": chain,
            "rate": rate,
            "delay": delay,
            "buffer": buffer,
            "shared": shared,
            "pipeline_latency": pipeline_latency,
            "ecn": ecn,
            "classes": classes,
            "scheduler": scheduler,
            "ack_class": ack_class,
            "plain": plain,
            "signals": signals,
            "pfc": pfc,
        },
    )


def links(
    *,
    links: Sequence[Link] | None = None,
    file: str | None = None,
    text: str | None = None,
    servers: bool | None = None,
    nics: int | None = None,
    scale_up_rate: Rate | None = None,
    scale_up_delay: Time | None = None,
    rate: Rate | None = None,
    delay: Time | None = None,
    buffer: Size | None = None,
    shared: Shared | None = None,
    pipeline_latency: Time | None = None,
    ecn: Ecn | None = None,
    classes: Sequence[Class] | None = None,
    scheduler: Literal["stfq", "drr"] | None = None,
    ack_class: str | None = None,
    plain: Sequence[str] | None = None,
    signals: Literal["packets", "instant"] | None = None,
    pfc: Pfc | None = None,
) -> Topology:
    """Topology `links`.

    Links listed one by one, in tables `[[topology.link]]` or in a `file` (.topo of htsim,
    topology.txt of the HPCC simulator or of SimAI, or InfraGraph).

    Args:
        links: A link. Its settings replace those of `[topology]` (list of tables).
        file: File with the links: .topo of htsim, topology.txt of the HPCC simulator or of SimAI,
            or InfraGraph (text).
        text: Content of such a file, in place of `file` (text).
        servers: For topologies of SimAI. `true`: each server is a host; it has the NICs of its
            GPUs, and its NVSwitches are the network within the host. `false`: each GPU is a host,
            and NVSwitches are left out (true or false).
        nics: Number of NICs of each host. The links of a host are divided among its NICs, in their
            order; each rank of a job uses one NIC. If not given, messages use all links of a host
            (whole number, from 1 to 64).
        scale_up_rate: Rate of each rank, in each direction, in the network within its node. It is
            the default of `local_rate` of jobs (rate, at least 1bps).
        scale_up_delay: Delay of the network within a node. It is the default of `local_delay` of
            jobs (time, at most 1s; default "0s").
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way propagation delay of the links (time, at most 1s).
        buffer: Memory of each switch port (size or "unlimited").
        shared: Memory that all ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it joins a queue (time, at
            most 1s; default "0s").
        ecn: ECN: switches mark packets, depending on the queue of the port (table).
        classes: Traffic classes of every switch port, at least two. If the algorithm of the
            workloads in a class has a switch half, the switch ports run it for this class (list of
            tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Traffic class of acknowledgements and read requests. Default: the class of their
            flow (text).
        plain: Names of switches that do not run the switch halves of algorithms (list of texts).
        signals: "packets": signals of switches travel as packets, like acknowledgements. "instant":
            signals reach their source at once and use no bandwidth ("packets", "instant"; default
            "packets").
        pfc: Priority flow control: switches pause the links that fill their memory (table).
    """
    return Topology(
        "links",
        {"kind": "links"},
        {"links": "link", "classes": "class"},
        {
            "links": links,
            "file": file,
            "text": text,
            "servers": servers,
            "nics": nics,
            "scale_up_rate": scale_up_rate,
            "scale_up_delay": scale_up_delay,
            "rate": rate,
            "delay": delay,
            "buffer": buffer,
            "shared": shared,
            "pipeline_latency": pipeline_latency,
            "ecn": ecn,
            "classes": classes,
            "scheduler": scheduler,
            "ack_class": ack_class,
            "plain": plain,
            "signals": signals,
            "pfc": pfc,
        },
    )
