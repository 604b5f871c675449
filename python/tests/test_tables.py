"""Tables of results in data libraries."""

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import apus

TABLES = [
    "faults",
    "flows",
    "ops",
    "port_samples",
    "ports",
    "sample_percentiles",
    "samples",
    "workloads",
]


@pytest.fixture
def result(incast: Path) -> apus.Result:
    return apus.run(incast, seeds=2)


@pytest.mark.parametrize("name", TABLES)
def test_every_library_reads_every_table_alike(result: apus.Result, name: str) -> None:
    rows = getattr(result, name)
    arrow = pa.table(rows)
    assert len(rows) == len(arrow)
    assert rows.columns == arrow.column_names
    assert pl.DataFrame(rows).equals(pl.DataFrame(arrow))
    pd.testing.assert_frame_equal(pd.DataFrame.from_arrow(rows), arrow.to_pandas())
    assert duckdb.sql("SELECT count(*) FROM arrow").fetchall() == [(len(rows),)]
    assert duckdb.sql("SELECT count(*) FROM rows").fetchall() == [(len(rows),)]


def test_ops_are_those_of_the_summary(result: apus.Result) -> None:
    ops = pl.DataFrame(result.ops)
    assert ops.columns[:2] == ["variant", "seed"]
    for run in result:
        of_run = pl.DataFrame(run.ops)
        assert of_run.columns == ops.columns[2:]
        assert of_run.equals(ops.filter(seed=run.seed).drop("variant", "seed"))
        done = of_run.filter(phase="measured", outcome="done")
        # Percentiles have bins of 0.1 %.
        median = run.summary.op_latency_us.p50
        assert median == pytest.approx(done["latency_us"].median(), rel=0.01)
        assert run.summary.op_latency_us.count == len(done)


def test_columns_have_units_and_definitions(result: apus.Result) -> None:
    field = pa.table(result.ops).schema.field("latency_us")
    assert field.type == pa.float64()
    assert field.metadata[b"unit"] == b"us"
    assert b"submission to completion" in field.metadata[b"definition"]


def test_tables_outlive_their_result(incast: Path) -> None:
    table = apus.run(incast).flows
    assert len(pa.table(table)) == len(pa.table(table)) == 3


def test_tables_that_were_not_kept_are_an_error(incast: Path) -> None:
    result = apus.run(incast, record=False)
    with pytest.raises(ValueError, match="`record=True` keeps them"):
        _ = result.ops
