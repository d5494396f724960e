"""Plays one chunk, which is some points of a sweep, and returns their rows as the bytes of a Parquet file.
`play_chunk` is a pure function, so any kind of worker can call it.

The first columns are `point`, `run`, `rounds`, `seed` and `stream` (int32). Then come the swept parameters in
the engine's units, and the study's measures (all float64). There are two seeds, 0 and 1; half of a point's
runs are played with each. Each point has a separate stream. In a `common` study, all points share one seed
and one stream. Rows of the same seed, stream and run used the same random numbers. A measure that a point
does not have is null in its rows. Swept columns carry their unit as field metadata.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sim.engine.simulate import Columns
from sim.errors import StudyError
from sim.studies.catalogue import study as found
from sim.studies.study import SEEDS, Study
from sim.sweeping.plan import Chunk
from sim.units import DECIMALS, Unit

INDEX = ("point", "run", "rounds", "seed", "stream")


def play_chunk(chunk: Chunk) -> bytes:
    """Play all points of a chunk. Raises any error of the study."""
    study = found(chunk.source)
    results = [_play(study, chunk, number) for number in range(len(chunk.points))]
    sink = io.BytesIO()
    pq.write_table(_table(study, chunk, results), sink, compression="zstd", use_dictionary=[*INDEX])
    return sink.getvalue()


def _play(study: Study, chunk: Chunk, number: int) -> Columns:
    """The rows of one point for each seed, in the order of the seeds."""
    point, stream = chunk.points[number], _stream(study, chunk, number)
    halves = []
    for seed, runs in enumerate(_shares(study, chunk.runs)):
        own = np.random.SeedSequence(chunk.seed, spawn_key=(seed, stream))
        columns = study.play(point, runs=runs, rounds=chunk.rounds, seed=own)
        taken = {*INDEX, *point} & set(columns)
        wrong = [name for name, values in columns.items() if np.shape(values) != (runs,)]
        if taken or wrong:
            raise StudyError(
                f"study {study.name!r}: expected measures with other names than the parameters' and one number for "
                f"each of {runs} runs, got {', '.join(sorted(taken) or wrong)}; correct its `play`"
            )
        halves.append(columns)
    return {name: np.concatenate([columns[name] for columns in halves]) for name in halves[0]}


def _shares(study: Study, runs: int) -> tuple[int, ...]:
    """Number of runs with each seed. A `common` study has only one seed, because it makes no claims."""
    seeds = 1 if study.common else SEEDS
    return tuple((runs + number) // seeds for number in reversed(range(seeds)))


def _stream(study: Study, chunk: Chunk, number: int) -> int:
    return 0 if study.common else chunk.first + number


def _table(study: Study, chunk: Chunk, results: Sequence[Columns]) -> pa.Table:
    runs, count, shares = chunk.runs, len(results), _shares(study, chunk.runs)
    fields, arrays = [], []
    for name, values in (
        ("point", np.repeat(np.arange(chunk.first, chunk.first + count, dtype=np.int32), runs)),
        ("run", np.tile(np.arange(runs, dtype=np.int32), count)),
        ("rounds", np.full(runs * count, chunk.rounds, dtype=np.int32)),
        ("seed", np.tile(np.repeat(np.arange(len(shares), dtype=np.int32), shares), count)),
        (
            "stream",
            np.repeat(np.array([_stream(study, chunk, n) for n in range(count)], dtype=np.int32), runs),
        ),
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
