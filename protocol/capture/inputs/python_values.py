"""Functions that read Python values: the elements of containers, the slots of objects, the positions of
iterators and files, and digests of memory such as that of a `bytearray`.

Nothing here changes a value. The submitter's code runs only if a class of the submitter defines one of the
methods that report an object's state, such as `__reduce__` and `__length_hint__` of iterators, or `tell` of
files.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import sysconfig
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from io import IOBase
from operator import length_hint
from pathlib import Path
from types import (
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    SimpleNamespace,
)
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

KINDS = (OrderedDict, dict, list, deque, set)
"""The types of containers that change in place. A container may belong to a subclass of one of these types,
and the subclass may override methods. So the container is read and restored with the methods of the type
listed here.
"""
CACHED = type(lru_cache(len))
LEAVES = (bool, int, float, complex, str, bytes, type(None))
LIBRARIES = tuple(str(Path(str(package.__file__)).parent) + os.sep for package in (torch, np))
"""The folders of torch and NumPy, whose code keeps none of the submitter's values."""
STANDARD = sysconfig.get_path("stdlib") + os.sep
INSTALLED = tuple(STANDARD + name + os.sep for name in ("site-packages", "dist-packages"))
"""The folders of installed packages inside Python's own library."""

Items = Iterable[tuple[str, Any]]


def in_library(path: str) -> bool:
    """Whether a file belongs to torch, NumPy or Python's own library."""
    if path.startswith(INSTALLED):
        return path.startswith(LIBRARIES)
    return path.startswith((*LIBRARIES, STANDARD, "<frozen "))


def is_installed(path: str) -> bool:
    """Whether a file belongs to an installed package, whose globals may be unrelated to the step."""
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(path).parts)


def is_own(value: Any) -> bool:
    """Whether the contents of a value are restored. They are restored for containers, torch modules,
    optimisers' classes and the submitter's own objects. Iterators and weak references are only compared. All
    other objects of a library are only compared, too, because they may have users besides the step.
    """
    if isinstance(
        value,
        (
            *KINDS,
            nn.Module,
            tuple,
            frozenset,
            SimpleNamespace,
            CellType,
            MethodType,
            partial,
            CACHED,
            property,
        ),
    ):
        return True
    if isinstance(value, FunctionType):
        return not is_installed(value.__code__.co_filename)
    if isinstance(value, Iterator | weakref.ref):
        return False
    if isinstance(value, type) and issubclass(value, Optimizer):
        return True
    class_ = value if isinstance(value, type) else type(value)
    file = getattr(sys.modules.get(class_.__module__), "__file__", None) or STANDARD
    return not in_library(file) and not is_installed(file)


def slots_of(class_: type) -> Iterator[tuple[str, Any]]:
    """The slots that a Python class and its bases declare."""
    for base in class_.__mro__:
        if "__slots__" in vars(base):
            yield from ((k, x) for k, x in vars(base).items() if isinstance(x, MemberDescriptorType))


def wrapped_by(where: str, function: FunctionType) -> Items:
    """The functions and read-only mappings in the closure and attributes of a library's function, such as the
    function that a decorator wraps.
    """
    cells = [c.cell_contents for c in function.__closure__ or () if c != CellType()]
    held = (*cells, *vars(function).values())
    return [(where, x) for x in held if isinstance(x, FunctionType | MethodType | MappingProxyType)]


def leads_to_own(function: Any) -> bool:
    """Whether a function may run the submitter's code. It may unless the function, and every function that it
    wraps, is a Python function of a library or an installed package. Functions that decorators return usually
    wrap another one.
    """
    pending, seen = [function], set[int]()
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, MethodType):
            pending.append(each.__func__)
        elif isinstance(each, partial):
            pending.append(each.func)
        elif isinstance(each, CACHED):
            pending.append(each.__wrapped__)
        elif isinstance(each, FunctionType) and (
            in_library(each.__code__.co_filename) or is_installed(each.__code__.co_filename)
        ):
            cells = [c.cell_contents for c in each.__closure__ or () if c != CellType()]
            held = (*cells, *vars(each).values())
            pending += [x for x in held if isinstance(x, FunctionType | MethodType | partial | CACHED)]
        else:
            return True
    return False


def kind_of(container: Any) -> Any:
    """The type in `KINDS` that a container has or inherits from."""
    return next(kind for kind in KINDS if isinstance(container, kind))


def keys_of(container: Any) -> list[Any]:
    """The keys of a dict, even if its class overrides iteration."""
    return list(kind_of(container).__iter__(container))


def flat(container: Any) -> list[Any]:
    """The elements of a container; for a dict, keys and values alternate."""
    if isinstance(container, dict):
        return [x for key in keys_of(container) for x in (key, dict.__getitem__(container, key))]
    return list(kind_of(container).__iter__(container))


def names_of(code: CodeType) -> set[str]:
    """Names of globals and attributes in a function and in functions nested in it; also names given as text, as in
    `getattr(module, "name")`.
    """
    inner = (names_of(c) for c in code.co_consts if isinstance(c, CodeType))
    texts = (c for c in code.co_consts if isinstance(c, str) and c.isidentifier())
    return {*code.co_names, *texts}.union(*inner)


def state_of_generator(value: Any) -> Any:
    """The state of a random number generator; None for anything else."""
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, np.random.RandomState):
        return repr(value.get_state(legacy=False))
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, torch.Generator):
        return value.get_state().numpy().tobytes()
    return None


def digest_of(value: Any) -> Any:
    """A digest of an object that is plain memory, such as a `bytearray`; None for anything else."""
    try:
        with memoryview(value) as data:
            return hashlib.sha256(data.tobytes()).hexdigest()
    except TypeError:
        return None


def digest_of_array(array: np.ndarray[Any, Any]) -> str:
    """A digest of an array's contents. If the array maps a file read-only, the file may be larger than
    memory, so it is told instead which elements of the file the array has: the file's name, the offset
    that was asked for, the place of the array's first element in the mapping, and the array's type, shape
    and strides.
    """
    if isinstance(array, np.memmap) and array.mode == "r":
        start = np.frombuffer(array._mmap, np.uint8).ctypes.data  # type: ignore[attr-defined]
        where = f"{array.filename} at {array.offset} + {array.ctypes.data - start}"
        return f"{where}: {array.dtype.str} {array.shape} {array.strides}"
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()


def digest_of_tensor(t: Tensor) -> str:
    """A digest of a tensor's elements. Raises an error of torch for a tensor that has no plain elements, such
    as a nested one or one on the device `meta`.
    """
    plain = t.detach().cpu()
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    # `contiguous` would keep the stride of a single element, which `view` refuses.
    row = plain.resolve_conj().resolve_neg().reshape(-1).clone(memory_format=torch.contiguous_format)
    return hashlib.sha256(row.view(torch.uint8).numpy().data).hexdigest()


def position_of(value: Any) -> Any:
    """The position of an iterator. For a generator, this is the current instruction and the plain local
    variables; for any other iterator, the number of elements left and the plain values in its state.
    """
    if isinstance(value, GeneratorType):
        frame = value.gi_frame
        numbers = {} if frame is None else {k: x for k, x in frame.f_locals.items() if isinstance(x, LEAVES)}
        return None if frame is None else (frame.f_lasti, repr(numbers))
    try:
        state = value.__reduce__()[1:]
    except Exception:  # this iterator cannot be copied
        state = ()
    left = -1 if hasattr(value, "__dict__") else length_hint(value, -1)
    held = [x for part in state if isinstance(part, tuple) for x in part if isinstance(x, LEAVES)]
    return left, repr([*held, *(x for x in state if isinstance(x, LEAVES))])


def position_of_file(file: IOBase) -> int | None:
    """Where an open file is read next; None for a file that is only written, and where no position is known."""
    try:
        return file.tell() if file.readable() and file.seekable() else None
    except (OSError, ValueError):  # closed, or read by `next`
        return None
