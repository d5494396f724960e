"""The tensors of a model by name, and the places where its modules hold them."""

from __future__ import annotations

from torch import Tensor, nn


def tensors_of(model: nn.Module) -> list[tuple[str, Tensor]]:
    """The parameters, then the buffers; each tensor once, under its first name."""
    return [*model.named_parameters(), *model.named_buffers()]


def with_attributes(copy: Tensor, original: Tensor) -> Tensor:
    """Give the plain tensor `copy` the attributes that Python code set on `original`, and return `copy`. If
    `original` is a parameter, `copy` becomes a parameter too.
    """
    vars(copy).update({name: value for name, value in vars(original).items() if name not in vars(copy)})
    if isinstance(original, nn.Parameter):
        copy._is_param = True  # checked by `isinstance(…, nn.Parameter)`
    return copy


def places(model: nn.Module) -> dict[str, str]:
    """Every place where a module of the model holds a tensor. The keys are the dotted paths of the places;
    the values are the tensors' names in `tensors_of`.

    A tied tensor has several places. A module that the model holds under two paths is listed under the first
    path only. Otherwise its places would be listed twice, and a tensor that `functional_call` puts there
    would stay there after the call.
    """
    names = {id(t): name for name, t in tensors_of(model)}
    return {
        f"{path}.{slot}" if path else slot: names[id(t)]
        for path, module in model.named_modules()
        for slot, t in (*module._parameters.items(), *module._buffers.items())
        if t is not None
    }
