"""Many runs in one process; `APUS_RUNS=1000` is the longer check of CONTRIBUTING.md."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

import apus
from apus.summary import Summary

RUNS = int(os.environ.get("APUS_RUNS", "64"))
THREADS = 8
GROWTH_KB = 16 * 1024
"""Rationale: a run whose results were kept would add 100 kB, and allocators keep some megabytes."""


def memory_kb() -> int:
    """Return the memory that the process takes, in KiB."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1])


def test_threads_give_the_results_of_one_thread(incast: Path) -> None:
    def one(seed: int) -> Summary:
        return apus.run(incast, seed=seed % 16, record=False, progress=False).summary

    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(one, range(RUNS)))
    expected = [one(seed) for seed in range(16)]
    assert found == [expected[seed % 16] for seed in range(RUNS)]


def test_memory_does_not_grow_with_the_number_of_runs(incast: Path) -> None:
    def some() -> None:
        for seed in range(RUNS // 2):
            pa.table(apus.run(incast, seed=seed, progress=False).ops)

    some()
    before = memory_kb()
    some()
    assert memory_kb() - before < GROWTH_KB
