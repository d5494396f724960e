"""What model and objective keep in Python: attributes, closures, globals and containers, compared and put back.

A program has the tensors of its state and nothing else. A number that Python counts on from step to step, a flag that
it sets once, or a list that grows is invisible to it; `PythonState` is how `capture` sees them.
"""

from __future__ import annotations

import random
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from types import CellType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

MOST_OBJECTS = 200_000
"""Objects that are looked at; what lies beyond is not compared."""
MOST_ELEMENTS = 4_096
"""Elements of a container or of a NumPy array that are looked at."""
CACHED = type(lru_cache(len))
LEAVES = (bool, int, float, complex, str, bytes, type(None))
TABLES = ("_parameters", "_buffers", "_modules")
"""Attributes of a module that hold tensors and modules by name."""
LIBRARIES = tuple(
    str(path)
    for path in (Path(torch.__file__).parent, Path(np.__file__).parent, sysconfig.get_path("stdlib"))
)
"""Folders whose code keeps nothing of the submitter's; packages installed beside them are looked at."""

Items = Iterable[tuple[str, Any]]


@dataclass(frozen=True)
class Change:
    """A value that is not what it was: where it is kept, and both values as text."""

    where: str
    before: str
    after: str


class PythonState:
    """What can be reached from some roots, by name. Tensors are not compared: a trace refuses those that are neither
    the model's nor the batch's."""

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self.roots = dict(roots)
        self._values: dict[str, Any] = {}
        self._holders: list[tuple[Callable[[], Iterable[Any]] | None, Callable[[], None]]] = []
        """Of everything that can be changed in place: what it holds now, or None where nobody can tell, and how to put
        back what it held."""
        self._kept: list[Any] = []
        """All that was looked at, so that no identity is given anew while states are compared."""
        seen: set[int] = set()
        pending = deque(self.roots.items())
        while pending and len(seen) < MOST_OBJECTS:
            where, value = pending.popleft()
            if isinstance(value, LEAVES):
                self._values[where] = value
            elif id(value) not in seen:
                seen.add(id(value))
                self._kept.append(value)
                pending.extend(self._inside(where, value))
        self._values["the state of Python's random numbers"] = random.getstate()
        self._values["the state of NumPy's random numbers"] = _of_generator(np.random.mtrand._rand)

    def changes(self, later: PythonState) -> list[Change]:
        """What differs in `later`, which has the same roots."""
        names = dict.fromkeys((*self._values, *later._values))
        pairs = ((name, self._values.get(name, _Absent), later._values.get(name, _Absent)) for name in names)
        return [Change(name, _text(a), _text(b)) for name, a, b in pairs if _differ(a, b)]

    def restore(self) -> None:
        """Put back every attribute, closure, global and container."""
        for _, restore in self._holders:
            restore()

    def restore_holders_of(self, unwanted: Callable[[Any], bool]) -> None:
        """Put back those that hold something `unwanted` by now, or may do so; all others stay as they are."""
        for now, restore in self._holders:
            if now is None or any(map(unwanted, now())):
                restore()

    def _inside(self, where: str, value: Any) -> Items:
        """What an object holds, by name."""
        if isinstance(value, Tensor):
            return ()
        if isinstance(value, np.ndarray):
            self._values[where] = (value.shape, value.reshape(-1)[:MOST_ELEMENTS].tobytes())
            return ()
        if isinstance(value, dict):
            return self._changeable(where, value, ((f"{where}[{k!r}]", x) for k, x in dict.items(value)))
        if isinstance(value, list | deque):
            return self._changeable(where, value, ((f"{where}[{k}]", x) for k, x in enumerate(value)))
        if isinstance(value, set):
            self._values[where] = frozenset(value)
            return self._changeable(where, value, ())
        if isinstance(value, tuple | frozenset):
            return islice(((f"{where}[{k}]", x) for k, x in enumerate(value)), MOST_ELEMENTS)
        if isinstance(value, CellType):
            return self._cell(where, value)
        if isinstance(value, FunctionType):
            return self._function(where, value)
        if isinstance(value, MethodType):
            return ((where, value.__self__), (where, value.__func__))
        if isinstance(value, partial):
            return ((where, value.func), (f"{where}.args", value.args), (f"{where}.keywords", value.keywords))
        if isinstance(value, CACHED):
            return self._cached(where, value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, ModuleType | CodeType | torch.dtype | torch.device):
            return ()
        return self._instance(where, value)

    def _changeable(self, where: str, value: Any, items: Items) -> Items:
        """A container: its length counts as a value of its own. The methods are those of Python's own types, since a
        subclass may compute, import or refuse in them."""
        kind = next(base for base in (dict, list, deque, set) if isinstance(value, base))
        copy = _flat(value)
        self._values[f"len({where})"] = kind.__len__(value)

        def restore() -> None:
            now = _flat(value)
            if len(now) != len(copy) or any(a is not b for a, b in zip(now, copy)):
                kind.clear(value)
                if kind is dict:
                    dict.update(value, zip(copy[::2], copy[1::2]))
                else:
                    value.update(copy) if kind is set else value.extend(copy)

        self._holders.append((lambda: _flat(value), restore))
        return islice(items, MOST_ELEMENTS)

    def _cell(self, where: str, cell: CellType) -> Items:
        try:
            held = cell.cell_contents
        except ValueError:  # nothing was assigned yet
            return ()
        self._holders.append((lambda: (cell.cell_contents,), partial(_set, cell, "cell_contents", held)))
        return ((where, held),)

    def _function(self, where: str, function: FunctionType) -> Items:
        """Closure, defaults, attributes, and the globals that the code names."""
        code, shared = function.__code__, function.__globals__
        if code.co_filename.startswith(LIBRARIES):
            return ()
        found: list[tuple[str, Any]] = [*zip(code.co_freevars, function.__closure__ or ())]
        found += [
            (f"defaults of {where}", function.__defaults__),
            (f"defaults of {where}", function.__kwdefaults__),
        ]
        found.append((f"attributes of {where}", vars(function)))
        for name in sorted(_names(code) & shared.keys()):
            held = shared[name]
            if not isinstance(held, ModuleType | FunctionType | type):
                self._holders.append((partial(_entry, shared, name), partial(shared.__setitem__, name, held)))
            found.append((name, held))
        return found

    def _cached(self, where: str, function: Any) -> Items:
        """A function with `functools.lru_cache`, whose results cannot be read: they go once there are new ones."""
        known = function.cache_info().misses

        def restore() -> None:
            if function.cache_info().misses != known:
                function.cache_clear()

        self._holders.append((None, restore))
        return ((where, function.__wrapped__),)

    def _class(self, class_: type) -> Items:
        """Attributes of the submitter's class, and what its methods refer to."""
        file = getattr(sys.modules.get(class_.__module__), "__file__", None) or LIBRARIES[0]
        if class_.__module__ == "builtins" or file.startswith(LIBRARIES):
            return ()
        found: list[tuple[str, Any]] = []
        for name, held in vars(class_).items():
            held = held.__func__ if isinstance(held, staticmethod | classmethod) else held
            if isinstance(held, (FunctionType, CACHED)):
                found.append((f"{class_.__name__}.{name}", held))
            elif not name.startswith("_") and not hasattr(type(held), "__get__"):
                self._holders.append((partial(_attribute, class_, name), partial(_set, class_, name, held)))
                found.append((f"{class_.__name__}.{name}", held))
        return found

    def _instance(self, where: str, value: Any) -> Items:
        """Attributes; of a module its submodules, but not its tensors, which are the program's state."""
        if (state := _of_generator(value)) is not None:
            self._values[where] = state
            return ()
        attributes = getattr(value, "__dict__", None)
        if not isinstance(attributes, dict):
            self._values[where] = _position(value)
            return ()
        dot = f"{where}." if where else ""
        found = [(f"{dot}{name}", x) for name, x in attributes.items()]
        self._changeable(where, attributes, ())
        del self._values[f"len({where})"]
        if isinstance(value, nn.Module):
            for table in TABLES:
                self._changeable(where, attributes[table], ())
            del self._values[f"len({where})"]
            found = [(name, x) for name, x in found if name.removeprefix(dot) not in TABLES]
            found += [(f"{dot}{name}", x) for name, x in value._modules.items()]
        return [*found, *((c.__name__, c) for c in type(value).__mro__)]


@contextmanager
def left_as_it_was(model: nn.Module, objective: Any) -> Iterator[PythonState]:
    """Model and objective have the same attributes, containers and closures afterwards, whatever happens inside."""
    kept = PythonState({"": model, "objective": objective})
    try:
        yield kept
    finally:
        kept.restore()


class _Absent:
    """In place of a value that is in one of two states only."""


def _entry(table: Mapping[str, Any], name: str) -> Iterable[Any]:
    return (table.get(name),)


def _set(owner: Any, name: str, value: Any) -> None:
    """Where it is another one: members of an enumeration cannot be set, and do not change."""
    if getattr(owner, name, _Absent) is not value:
        setattr(owner, name, value)


def _attribute(owner: type, name: str) -> Iterable[Any]:
    return (getattr(owner, name, None),)


def _flat(container: Any) -> list[Any]:
    """The elements; of a dict keys and values by turns."""
    if isinstance(container, dict):
        return [x for pair in dict.items(container) for x in pair]
    return list(container)


def _names(code: CodeType) -> set[str]:
    """Global names of a function and of those written inside it."""
    inner = (_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*inner)


def _of_generator(value: Any) -> Any:
    """The state of a generator of random numbers; None for anything else."""
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, np.random.RandomState):
        return repr(value.get_state(legacy=False))
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, torch.Generator):
        return value.get_state().numpy().tobytes()
    return None


def _position(value: Any) -> Any:
    """How far an iterator has come; None for anything else."""
    if isinstance(value, GeneratorType):
        frame = value.gi_frame
        numbers = {} if frame is None else {k: x for k, x in frame.f_locals.items() if isinstance(x, LEAVES)}
        return None if frame is None else (frame.f_lasti, repr(numbers))
    if not hasattr(value, "__next__"):
        return None
    try:
        return repr(value.__reduce__()[1:])[:MOST_ELEMENTS]
    except TypeError:  # it cannot be copied
        return None


def _differ(a: Any, b: Any) -> bool:
    return type(a) is not type(b) or (a != b and not (a != a and b != b))


def _text(value: Any) -> str:
    if value is _Absent:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
