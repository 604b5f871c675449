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
            name: Name of the scenario; that of the file if not given (text).
            title: What the scenario shows (text).
            source: The publication, with the section or figure (text).
            duration: End of the measured phase, from the start of the run (time, above 0).
            warmup: Start of the measured phase. Without it, a run of traces alone is measured from
                its first message (time; default "0s").
            drain: Longest time after `duration` in which ops of the measured phase can end, under
                the same load; `duration` minus `warmup` if not given (time).
            ends_with_ops: For traces and jobs alone: the measured phase ends with the last op, if
                all ops and jobs end before `duration`. Without it, `true` for jobs alone, otherwise
                `false` (true or false).
            seed: Fixes everything random (whole number, at most 9007199254740992; default "1").
            topology: The fabric: a table, or one line like "fat-tree k=8 100Gbps 1us": the kind, or
                the name of a cluster (`apus list topologies`), then rate, delay, buffer (4MB if not
                given) and `key=value` in any order (text or table).
            packets: Sizes of packets on the wire, preamble and gap included (table).
            host: Costs of hosts: a model and the settings that differ from it (table).
            transport: Settings of every transport endpoint (table).
            routing: Choice of a path per packet, and what the transport does about packets that
                overtake each other (table).
            algorithm: The algorithm with its parameters; several are `[algorithm.LABEL]`, and
                workloads name the label (table).
            workloads: Which hosts send how much to which, and when (list of tables).
            faults: Links that fail, lose, corrupt or reorder packets on a schedule (list of
                tables).
            measure: Measurements of parts of the run (table).
            record: Samples and ops that a run keeps if its results are written to a directory
                (table).
            testbed: A file with settings that several scenarios share. Settings that differ from
                it, from the defaults of the algorithm or of the host are set by `[[override]]`, or
                by a variant or sweep with a `reason` (text).
            runs_of: For a scenario that only has checks: the scenario whose runs are checked. `apus
                reproduce` runs equal runs once (text).
            overrides: Settings that differ from the testbed (list of tables).
            variants: The runs of an experiment (list of tables).
            sweep: A variant for each value of a key (table).
            quick: Settings of `apus reproduce --quick` and `apus run --quick` (table).
            checks: A metric with the band in which it must be (list of tables).
            shows: A metric without a band (list of tables).
            format_version: Version of the format of the file. A program refuses a file of a newer
                format than its own (whole number, at least 1; default "1").
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
