"""Playing one chunk: rows of some points as the bytes of a Parquet file. A pure function; workers of any kind call it.

Columns: `point`, `run` and `rounds` (int32), the swept parameters in the engine's units, then the study's measures
(float64). A measure that a point does not have is null there. Swept columns carry their unit as field metadata.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sim.engine.simulate import Columns
from sim.errors import StudyError
from sim.studies.catalogue import study as found
from sim.studies.study import Study
from sim.sweeping.plan import Chunk
from sim.units import DECIMALS, Unit

INDEX = ("point", "run", "rounds")


def play_chunk(chunk: Chunk) -> bytes:
    """Play all points of a chunk. All share the seed: common random numbers. Raises what a study raises."""
    study = found(chunk.source)
    results = [_play(study, chunk, point) for point in chunk.points]
    sink = io.BytesIO()
    pq.write_table(_table(study, chunk, results), sink, compression="zstd", use_dictionary=[*INDEX])
    return sink.getvalue()


def _play(study: Study, chunk: Chunk, point: Any) -> Columns:
    seed = np.random.SeedSequence(chunk.seed)
    columns = study.play(point, runs=chunk.runs, rounds=chunk.rounds, seed=seed)
    taken = {*INDEX, *point} & set(columns)
    wrong = [name for name, values in columns.items() if np.shape(values) != (chunk.runs,)]
    if taken or wrong:
        raise StudyError(
            f"study {study.name!r}: expected measures with other names than the parameters' and one number for each of "
            f"{chunk.runs} runs, got {', '.join(sorted(taken) or wrong)}; correct its `play`"
        )
    return columns


def _table(study: Study, chunk: Chunk, results: Sequence[Columns]) -> pa.Table:
    runs, count = chunk.runs, len(results)
    fields, arrays = [], []
    for name, values in (
        ("point", np.repeat(np.arange(chunk.first, chunk.first + count, dtype=np.int32), runs)),
        ("run", np.tile(np.arange(runs, dtype=np.int32), count)),
        ("rounds", np.full(runs * count, chunk.rounds, dtype=np.int32)),
    ):
        fields.append(pa.field(name, pa.int32(), nullable=False))
        arrays.append(pa.array(values))
    for name in chunk.points[0]:
        of_points = np.array([point[name] for point in chunk.points], dtype=np.float64)
        unit = _unit(study.unit(name))
        fields.append(pa.field(name, pa.float64(), nullable=False, metadata={"unit": unit}))
        arrays.append(pa.array(np.repeat(of_points, runs)))
    for name in dict.fromkeys(name for columns in results for name in columns):
        fields.append(pa.field(name, pa.float64()))
        parts = [
            pa.array(np.asarray(columns[name], dtype=np.float64))
            if name in columns
            else pa.nulls(runs, pa.float64())
            for columns in results
        ]
        arrays.append(pa.chunked_array(parts).combine_chunks())
    return pa.table(arrays, schema=pa.schema(fields))


def _unit(unit: Unit) -> str:
    return f"10^-{DECIMALS} token" if unit is Unit.TOKENS else unit.value
