"""Scenarios as objects.

Made from the declarations of scenario files (`python/tools/generate.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apus._scenario import Written

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from apus._types import Time
    from apus.algorithms import Algorithm
    from apus.settings import (
        Check,
        Fault,
        Host,
        Measure,
        Override,
        Packets,
        Quick,
        Record,
        Routing,
        Sweep,
        Transport,
        Variant,
    )
    from apus.topologies import Topology
    from apus.workloads import Workload

__all__ = [
    "Scenario",
]


class Scenario(Written):
    """A scenario, with the keys of a scenario file."""

    def __init__(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        source: str | None = None,
        duration: Time | None = None,
        warmup: Time | None = None,
        drain: Time | None = None,
        ends_with_ops: bool | None = None,
        seed: int | None = None,
        topology: str | Topology | None = None,
        packets: Packets | None = None,
        host: Host | None = None,
        transport: Transport | None = None,
        routing: Routing | None = None,
        algorithm: Algorithm | Mapping[str, Algorithm] | None = None,
        workloads: Sequence[Workload] | None = None,
        faults: Sequence[Fault] | None = None,
        measure: Measure | None = None,
        record: Record | None = None,
        testbed: str | None = None,
        runs_of: str | None = None,
        overrides: Sequence[Override] | None = None,
        variants: Sequence[Variant] | None = None,
        sweep: Sweep | None = None,
        quick: Quick | None = None,
        checks: Sequence[Check] | None = None,
        shows: Sequence[Check] | None = None,
        format_version: int | None = None,
    ) -> None:
        """Set the parameters that are given.

        Args:
            name: Name of the scenario. Default: the name of the file (text).
            title: What the scenario shows (text).
            source: The publication, with its section or figure (text).
            duration: End of the measured phase, counted from the start of the run (time, above 0).
            warmup: Start of the measured phase. If not given, a run that has only traces and jobs
                is measured from its first message or job (time; default "0s").
            drain: Maximum time after `duration` in which ops of the measured phase can still end,
                under the same load. Default: `duration` minus `warmup` (time).
            ends_with_ops: For runs that have only traces and jobs: if all of them end before
                `duration`, the measured phase ends with the last op or operation. Default: `true`
                if all workloads are jobs, otherwise `false` (true or false).
            seed: Seed of all random numbers (whole number, at most 9007199254740992; default "1").
            topology: The fabric: a table, or one line such as "fat-tree k=8 100Gbps 1us". The line
                starts with the kind, or with the name of a cluster (`apus list topologies`). Rate,
                delay, buffer (default: 4MB) and `key=value` follow in any order (text or table).
            packets: Sizes of packets on the wire, including preamble and gap (table).
            host: Costs of hosts: a model, and settings that differ from the model (table).
            transport: Settings of every transport endpoint (table).
            routing: Choice of a path for each packet, and treatment of packets that overtake each
                other (table).
            algorithm: The algorithm with its parameters. For several algorithms, use tables
                `[algorithm.LABEL]`; each workload names a label (table).
            workloads: Traffic: which hosts send to which hosts, how much and when (list of tables).
            faults: Links and switches that fail, slow down, lose, corrupt or reorder packets, on a
                schedule or at random (list of tables).
            measure: Measurements of parts of the run, in addition to those of the whole run
                (table).
            record: Samples and ops that a run records if its results are written to a directory
                (table).
            testbed: A file with settings that several scenarios share. Settings that differ from
                the testbed, or from the defaults of the algorithm or of the host, need a reason:
                set them in `[[override]]`, or in a variant or sweep with a `reason` (text).
            runs_of: For a scenario that has only checks: the scenario whose runs are checked. `apus
                reproduce` executes identical runs only once (text).
            overrides: Settings that differ from the testbed (list of tables).
            variants: The runs of an experiment, each with its own settings (list of tables).
            sweep: One variant for each value of a key (table).
            quick: Settings of quick runs (`apus reproduce --quick`, `apus run --quick`) (table).
            checks: A metric, and the band in which its value must be (list of tables).
            shows: A metric that is shown without a band (list of tables).
            format_version: Version of the file format. A program rejects files whose format is
                newer than its own (whole number, at least 1; default "1").
        """
        super().__init__(
            "Scenario",
            {},
            {
                "workloads": "workload",
                "faults": "fault",
                "overrides": "override",
                "variants": "variant",
                "checks": "check",
                "shows": "show",
            },
            {
                "name": name,
                "title": title,
                "source": source,
                "duration": duration,
                "warmup": warmup,
                "drain": drain,
                "ends_with_ops": ends_with_ops,
                "seed": seed,
                "topology": topology,
                "packets": packets,
                "host": host,
                "transport": transport,
                "routing": routing,
                "algorithm": algorithm,
                "workloads": workloads,
                "faults": faults,
                "measure": measure,
                "record": record,
                "testbed": testbed,
                "runs_of": runs_of,
                "overrides": overrides,
                "variants": variants,
                "sweep": sweep,
                "quick": quick,
                "checks": checks,
                "shows": shows,
                "format_version": format_version,
            },
        )
