"""Compares tables of every format, cell by cell, and reads a timeline (tools/check-formats)."""

import csv
import math
import pathlib
import sys

import polars
import pyarrow
import pyarrow.feather
import pyarrow.parquet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

TABLES = ["workloads", "ops", "flows", "ports", "faults", "samples", "sample_percentiles", "port_samples"]


def equal(cell: str, value: object) -> bool:
    """Whether a cell of CSV shows this value."""
    match value:
        case None:
            return cell == ""
        case bool():
            return cell == str(int(value))
        case float():
            # CSV has at most six decimals.
            return cell != "" and math.isclose(float(cell), value, rel_tol=0.0, abs_tol=5.1e-7)
        case _:
            return cell == str(value)


def check_tables(work: pathlib.Path) -> None:
    """Each table has the same cells in every format and reader."""
    for name in TABLES:
        with (work / "csv" / f"{name}.csv").open(newline="") as file:
            header, *lines = csv.reader(file)
        parquet = pyarrow.parquet.read_table(work / "parquet" / f"{name}.parquet")
        arrow = pyarrow.feather.read_table(work / "arrow" / f"{name}.arrow")
        assert parquet.equals(arrow, check_metadata=True), name
        assert lines, name
        for field in parquet.schema:
            assert {b"definition", b"aggregation"} <= field.metadata.keys(), field
        assert parquet.schema.metadata[b"table"] == name.encode(), name
        frames = [
            parquet.to_pylist(),
            polars.read_parquet(work / "parquet" / f"{name}.parquet").to_dicts(),
            polars.from_arrow(arrow).to_dicts(),
        ]
        for rows in frames:
            assert len(rows) == len(lines), name
            for number, (line, row) in enumerate(zip(lines, rows), 2):
                assert list(row) == header, name
                for cell, (column, value) in zip(line, row.items()):
                    assert equal(cell, value), f"{name}, line {number}, {column}: {cell} and {value}"
    unit = pyarrow.parquet.read_schema(work / "parquet" / "ops.parquet").field("latency_us").metadata
    assert unit[b"unit"] == b"us"


def check_timeline(path: pathlib.Path, ops: pathlib.Path) -> None:
    """Every field is one of Perfetto's schema, slices end and nest, and there is one for each op."""
    trace = perfetto.Trace()
    trace.ParseFromString(path.read_bytes())
    whole = trace.ByteSize()
    trace.DiscardUnknownFields()
    assert trace.ByteSize() == whole, "a field is not one of Perfetto's schema"
    tracks, depth, slices, values = {}, {}, 0, 0
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.name and descriptor.uuid not in tracks
            assert not descriptor.HasField("parent_uuid") or descriptor.parent_uuid in tracks
            tracks[descriptor.uuid] = descriptor
            continue
        event = packet.track_event
        assert packet.trusted_packet_sequence_id and event.track_uuid in tracks, packet
        is_counter = tracks[event.track_uuid].HasField("counter")
        match event.type:
            case perfetto.TrackEvent.TYPE_SLICE_BEGIN:
                depth[event.track_uuid] = depth.get(event.track_uuid, 0) + 1
                assert not is_counter and depth[event.track_uuid] == 1, "slices of a track overlap"
                slices += 1
            case perfetto.TrackEvent.TYPE_SLICE_END:
                depth[event.track_uuid] -= 1
            case perfetto.TrackEvent.TYPE_COUNTER:
                assert is_counter and event.HasField("double_counter_value")
                values += 1
            case other:
                assert other == perfetto.TrackEvent.TYPE_INSTANT
    assert not any(depth.values()), "a slice does not end"
    with ops.open(newline="") as file:
        count = sum(1 for _ in csv.DictReader(file))
    assert count > 0 and values > 0
    # The fault is also a slice.
    assert slices == count + 1, f"{slices} slices, {count} ops"


work = pathlib.Path(sys.argv[1])
check_tables(work)
check_timeline(work / "csv" / "timeline.perfetto-trace", work / "csv" / "ops.csv")
print("formats: Parquet and Arrow equal CSV in pyarrow and polars; Perfetto's schema has the timeline")
