"""The names, types, order and initial contents of the tensors of the state. A step maps a state to the next
state.

The state consists of the following tensors, in this order (encoding.md section 4): parameters, the
optimiser's own tensors, the buffers that the model writes (int64 counters as i32), `step` (u32), `key` (u32
[2]) and the metrics, such as `metric.loss`. If the state keeps a history, `history` comes last: f32 [metrics,
N], all metrics of the last N steps, with step s in column s mod N.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from protocol.capture.assembly.checks import require_continued, require_distinct
from protocol.capture.assembly.part import Part
from protocol.capture.tracing.tracer import TracedStep
from protocol.capture.types import tensor_type
from protocol.numerics.types import DType
from protocol.program.step import HISTORY, State
from protocol.program.types import TensorType

STEP = "step"
KEY = "key"


def state_types(
    parts: Sequence[Part], parameters: Mapping[str, Tensor], constants: Collection[str], history: int
) -> dict[str, TensorType]:
    """Types of the state's tensors by name, in order. Raises `CaptureError` unless all names, including those of
    `constants`, are distinct.
    """
    trained = {name: tensor_type(p) for name, p in parameters.items()}
    scalar = TensorType(DType.F32, ())
    written = {name: tensor_type(part.traced.buffers[name]) for part in parts for name in part.traced.written}
    measured = metrics_of(parts)
    types = [
        *trained.items(),
        *(slot for part in parts for slot in part.update.rule.state(_of_part(trained, part))),
        *written.items(),
        (STEP, TensorType(DType.U32, ())),
        (KEY, TensorType(DType.U32, (2,))),
        *((name, scalar) for name in measured),
        *([(HISTORY, TensorType(DType.F32, (len(measured), history)))] if history else []),
    ]
    require_distinct([*(name for name, _ in types), *constants])
    return dict(types)


def metrics_of(parts: Sequence[Part]) -> list[str]:
    """State names of the metrics of all parts."""
    return [name for part in parts for name in part.metrics]


def buffers_of(resume: State | None, traced: TracedStep) -> dict[str, Tensor]:
    """For each buffer that the step writes: the tensor of this name in `resume`, the state of an earlier
    task. Buffers that `resume` lacks, or has with another shape, are left out.
    """
    given = {name: (resume or {}).get(name) for name in traced.written}
    return {name: t for name, t in given.items() if t is not None and t.shape == traced.buffers[name].shape}


def resumed(
    types: Mapping[str, TensorType], parts: Sequence[Part], resume: State | None
) -> dict[str, Tensor]:
    """The tensors taken over from `resume`, the state of an earlier task: all that `types` names except the
    key, step, metrics and history. Raises `CaptureError` if `resume` lacks one of them or has it with another
    type.
    """
    if resume is None:
        return {}
    own = {name: t for name, t in types.items() if name not in (STEP, KEY, HISTORY, *metrics_of(parts))}
    require_continued(own, resume)
    return {name: resume[name] for name in own}


def initial_tensors(types: Mapping[str, TensorType], of_model: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state before the first step: copies of the tensors in `of_model` (parameters, written buffers and
    the optimiser's initial tensors), and zeros for everything else.
    """
    zeros = {
        name: torch.zeros(type_.shape, dtype=type_.dtype.storage, device="cpu")
        for name, type_ in types.items()
    }
    return zeros | {name: t.clone() for name, t in of_model.items()}


def _of_part(trained: Mapping[str, TensorType], part: Part) -> dict[str, TensorType]:
    return {name: trained[name] for name in part.traced.parameters}
