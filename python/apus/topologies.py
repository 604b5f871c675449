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
        hosts: Hosts (whole number, from 1 to 65536).
        planes: Equal networks that share nothing but the hosts: a host, or each of its NICs, has a
            port of `rate` on each. A policy that spreads packets uses all, a flow with one path one
            of them (whole number, from 1 to 64; default "1").
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way delay of the links (time, at most 1s).
        buffer: Memory of a switch port (size or "unlimited").
        shared: Memory that the ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it is queued (time, at most
            1s; default "0s").
        ecn: Marks packets by the queue of their port (table).
        classes: Traffic classes of every switch port, two or more. The ports of a class take part
            in the algorithm of the workloads in it, if that has a switch half (list of tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Class of acknowledgements and read requests; that of their flow if not given
            (text).
        plain: Names of switches without switch halves of algorithms (list of texts).
        signals: Signals of switches travel as acknowledgements do, or reach their source at once
            and take no bandwidth ("packets", "instant"; default "packets").
        pfc: Switches pause the links that fill their memory (table).
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

    `left` and `right` hosts on two switches, joined by the link `middle`.

    Args:
        left: Hosts on the left switch (whole number, from 1 to 65536).
        right: Hosts on the right switch (whole number, from 1 to 65536).
        middle: Differences of the link between the switches from those of hosts (table).
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way delay of the links (time, at most 1s).
        buffer: Memory of a switch port (size or "unlimited").
        shared: Memory that the ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it is queued (time, at most
            1s; default "0s").
        ecn: Marks packets by the queue of their port (table).
        classes: Traffic classes of every switch port, two or more. The ports of a class take part
            in the algorithm of the workloads in it, if that has a switch half (list of tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Class of acknowledgements and read requests; that of their flow if not given
            (text).
        plain: Names of switches without switch halves of algorithms (list of texts).
        signals: Signals of switches travel as acknowledgements do, or reach their source at once
            and take no bandwidth ("packets", "instant"; default "packets").
        pfc: Switches pause the links that fill their memory (table).
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

    `leaves` switches of `hosts_per_leaf` hosts, each with an `uplink` to all `spines`.

    Args:
        leaves: Leaf switches (whole number, from 1 to 65536).
        hosts_per_leaf: Hosts of each leaf switch (whole number, from 1 to 65536).
        spines: Spine switches; not needed with `oversubscription` (whole number, from 1 to 65536).
        oversubscription: Rate of the hosts of a leaf over the rate of its uplinks, which gives
            `spines`; if both are given they must agree (number, above 0 and at most 1024).
        uplink: Differences of links between leaf and spine from those of hosts (table).
        planes: Equal networks that share nothing but the hosts: a host, or each of its NICs, has a
            port of `rate` on each. A policy that spreads packets uses all, a flow with one path one
            of them (whole number, from 1 to 64; default "1").
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way delay of the links (time, at most 1s).
        buffer: Memory of a switch port (size or "unlimited").
        shared: Memory that the ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it is queued (time, at most
            1s; default "0s").
        ecn: Marks packets by the queue of their port (table).
        classes: Traffic classes of every switch port, two or more. The ports of a class take part
            in the algorithm of the workloads in it, if that has a switch half (list of tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Class of acknowledgements and read requests; that of their flow if not given
            (text).
        plain: Names of switches without switch halves of algorithms (list of texts).
        signals: Signals of switches travel as acknowledgements do, or reach their source at once
            and take no bandwidth ("packets", "instant"; default "packets").
        pfc: Switches pause the links that fill their memory (table).
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

    Of `k`-port switches in three tiers: links, `aggregation`, `core`.

    Args:
        k: Ports of a switch, an even number (whole number, from 2 to 128).
        hosts_per_edge: Hosts of each edge switch; `k` / 2 if not given (whole number, from 1 to
            65536).
        aggregation: Differences of links between edge and aggregation from those of hosts (table).
        core: Differences of links between aggregation and core from those of hosts (table).
        planes: Equal networks that share nothing but the hosts: a host, or each of its NICs, has a
            port of `rate` on each. A policy that spreads packets uses all, a flow with one path one
            of them (whole number, from 1 to 64; default "1").
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way delay of the links (time, at most 1s).
        buffer: Memory of a switch port (size or "unlimited").
        shared: Memory that the ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it is queued (time, at most
            1s; default "0s").
        ecn: Marks packets by the queue of their port (table).
        classes: Traffic classes of every switch port, two or more. The ports of a class take part
            in the algorithm of the workloads in it, if that has a switch half (list of tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Class of acknowledgements and read requests; that of their flow if not given
            (text).
        plain: Names of switches without switch halves of algorithms (list of texts).
        signals: Signals of switches travel as acknowledgements do, or reach their source at once
            and take no bandwidth ("packets", "instant"; default "packets").
        pfc: Switches pause the links that fill their memory (table).
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

    `nodes` with one NIC per rail: NIC i is on a leaf of rail i, which `spines` join with the
    others.

    Args:
        nodes: Hosts, each a node with `nics` NICs; a rank of a job has one of them (whole number,
            from 1 to 65536).
        nics: NICs of a node, and thus rails (whole number, from 1 to 64; default "8").
        planes: Equal networks that share nothing but the hosts: a host, or each of its NICs, has a
            port of `rate` on each. A policy that spreads packets uses all, a flow with one path one
            of them (whole number, from 1 to 64; default "1").
        nodes_per_leaf: Nodes whose NICs share leaf switches; all nodes if not given (whole number,
            from 1 to 65536).
        spines: Spine switches, of each plane. Without any a message to another rail first crosses
            the network within its node (whole number, at most 65536; default "0").
        uplink: Differences of links between leaf and spine from those of hosts (table).
        scale_up_rate: Rate of a rank in each direction in the network within its node: default of
            `local_rate` of jobs (rate, at least 1bps).
        scale_up_delay: Delay of that network: default of `local_delay` of jobs (time, at most 1s;
            default "0s").
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way delay of the links (time, at most 1s).
        buffer: Memory of a switch port (size or "unlimited").
        shared: Memory that the ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it is queued (time, at most
            1s; default "0s").
        ecn: Marks packets by the queue of their port (table).
        classes: Traffic classes of every switch port, two or more. The ports of a class take part
            in the algorithm of the workloads in it, if that has a switch half (list of tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Class of acknowledgements and read requests; that of their flow if not given
            (text).
        plain: Names of switches without switch halves of algorithms (list of texts).
        signals: Signals of switches travel as acknowledgements do, or reach their source at once
            and take no bandwidth ("packets", "instant"; default "packets").
        pfc: Switches pause the links that fill their memory (table).
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

    A chain of `switches` with `hosts_per_switch` hosts each, joined by links `chain`.

    Args:
        switches: Switches (whole number, from 1 to 65536).
        hosts_per_switch: Hosts of each switch (whole number, from 1 to 65536).
        chain: Differences of links between switches from those of hosts (table).
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way delay of the links (time, at most 1s).
        buffer: Memory of a switch port (size or "unlimited").
        shared: Memory that the ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it is queued (time, at most
            1s; default "0s").
        ecn: Marks packets by the queue of their port (table).
        classes: Traffic classes of every switch port, two or more. The ports of a class take part
            in the algorithm of the workloads in it, if that has a switch half (list of tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Class of acknowledgements and read requests; that of their flow if not given
            (text).
        plain: Names of switches without switch halves of algorithms (list of texts).
        signals: Signals of switches travel as acknowledgements do, or reach their source at once
            and take no bandwidth ("packets", "instant"; default "packets").
        pfc: Switches pause the links that fill their memory (table).
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

    Each link in a table `[[topology.link]]`, or in a `file`: .topo of htsim, topology.txt of the
    HPCC simulator or of SimAI, or InfraGraph.

    Args:
        links: A link, with the settings that differ from the topology's (list of tables).
        file: A .topo of htsim, a topology.txt of the HPCC simulator or of SimAI, or a file of
            InfraGraph (text).
        text: The text of such a file (text).
        servers: For SimAI's topologies: a host is a server, whose NICs are those of its GPUs and
            whose network within is that of its NVSwitches. Otherwise each GPU is a host, without
            NVSwitches (true or false).
        nics: NICs of a host, which its links in their order are divided among; a rank of a job has
            one of them. If not given, messages use all links of a host (whole number, from 1 to
            64).
        scale_up_rate: Rate of a rank in each direction in the network within its node: default of
            `local_rate` of jobs (rate, at least 1bps).
        scale_up_delay: Delay of that network: default of `local_delay` of jobs (time, at most 1s;
            default "0s").
        rate: Rate of the links (rate, at least 1kbps).
        delay: One-way delay of the links (time, at most 1s).
        buffer: Memory of a switch port (size or "unlimited").
        shared: Memory that the ports of a switch share, in place of `buffer` (table).
        pipeline_latency: Time that a packet spends in a switch before it is queued (time, at most
            1s; default "0s").
        ecn: Marks packets by the queue of their port (table).
        classes: Traffic classes of every switch port, two or more. The ports of a class take part
            in the algorithm of the workloads in it, if that has a switch half (list of tables).
        scheduler: Order in which a port serves classes of the same priority; "stfq": start-time
            fair queueing; "drr": deficit round robin ("stfq", "drr"; default "stfq").
        ack_class: Class of acknowledgements and read requests; that of their flow if not given
            (text).
        plain: Names of switches without switch halves of algorithms (list of texts).
        signals: Signals of switches travel as acknowledgements do, or reach their source at once
            and take no bandwidth ("packets", "instant"; default "packets").
        pfc: Switches pause the links that fill their memory (table).
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
