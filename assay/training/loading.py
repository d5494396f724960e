"""Loads a result into a model: its parameters and buffers by name, including those that training did not
change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from torch import Tensor, nn

from assay.results import Result
from protocol.capture import load_into
from protocol.program.step import HISTORY, METRIC

OPTIMISER: Final = re.compile(r"optimizer\.\d+\.\w+")
"""Matches the names of a state's scalars that belong to an optimiser's parameter group."""


def model_tensors(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a state that belong to the model, in the order of capture. The step, the key, metrics
    and an optimiser's tensors are left out. An optimiser's tensor is recognised by its name, which matches
    `OPTIMISER` or is a parameter's name followed by a word.
    """
    found: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if name in ("step", "key", HISTORY) or name.startswith(METRIC) or OPTIMISER.fullmatch(name):
            continue
        if not any(above in found for above in _above(name)):
            found[name] = tensor
    return found


def _above(name: str) -> Iterator[str]:
    """All prefixes of a name that end before a dot, the longest first, and then the empty string."""
    while name:
        name = name.rpartition(".")[0]
        yield name


def load_result(model: nn.Module, result: Result, constants: Mapping[str, Tensor]) -> None:
    """Copy a result into a model that was built like the captured one. `constants` are the task's constants;
    those that the model has are copied too. Raises LoadError, and changes nothing, if names, shapes or types
    differ.
    """
    names = {name for name, _ in (*model.named_parameters(), *model.named_buffers())}
    plain = {name.replace("_orig_mod.", "").removeprefix("module.") for name in names}
    fixed = {name: tensor for name, tensor in constants.items() if name in plain}
    load_into(model, {**fixed, **model_tensors(result.state)}, strict=True)
