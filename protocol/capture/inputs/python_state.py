"""Compares and restores the Python values that model and objective keep in attributes, closures, globals and
containers.

A program has only the tensors of its state. It cannot see a number that Python increments from step to step,
a flag that is set once, or a list that grows; `PythonState` detects these for `capture`.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from io import IOBase
from logging import Handler, Logger
from threading import Thread
from types import (
    BuiltinMethodType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as modules
from torch.optim import Optimizer

from protocol.capture.inputs.python_values import (
    CACHED,
    KINDS,
    LEAVES,
    STANDARD,
    Items,
    digest_of,
    digest_of_array,
    flat,
    in_library,
    is_installed,
    is_own,
    keys_of,
    kind_of,
    leads_to_own,
    names_of,
    position_of,
    position_of_file,
    slots_of,
    state_of_generator,
    wrapped_by,
)

MOST_OBJECTS = 200_000
"""At most this many objects are examined; the others are not compared."""
MOST_ELEMENTS = 4_096
"""Up to this number, all elements of a container get names. Of the elements after these, numbers and texts
are compared together, as a single value; the others get names too.
"""
PLAIN = (Tensor, nn.Parameter, nn.Buffer)
"""The types of tensors whose attributes are examined. Other types are traced tensors, on which torch itself
sets attributes.
"""
HOOKS = (
    "_global_forward_pre_hooks",
    "_global_forward_hooks",
    "_global_backward_pre_hooks",
    "_global_backward_hooks",
)
"""Where torch keeps the hooks that it runs for all modules."""
TABLES = ("_parameters", "_buffers", "_modules")
"""Attributes of a module that hold tensors and modules by name."""


@dataclass(frozen=True)
class Change:
    """A value that changed: where it is kept, and both values as text."""

    where: str
    before: str
    after: str


class PythonState:
    """The values of everything that can be reached from some roots; each value is stored under a name.
    Tensors are not compared, because a trace refuses any tensor that belongs neither to the model nor to the
    batch.
    """

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self.roots = dict(roots)
        self._values: dict[str, Any] = {}
        self._holders: list[tuple[Callable[[], Iterable[Any]] | None, Callable[[], None]]] = []
        """Two functions for each object that can change in place: one returns its present contents (None if
        they cannot be read), the other restores the contents that it had.
        """
        self._kept: list[Any] = []
        """Everything examined, kept alive so that no identity is reused while states are compared."""
        self._globals: set[tuple[int, str, bool]] = set()
        """The module globals examined so far: the identity of the module's table, the global's name, and
        whether the global was treated as a library's.
        """
        self._times: Counter[str] = Counter()
        seen: set[int] = set()
        pending = deque((where, value, True) for where, value in self.roots.items())
        while pending and len(seen) < MOST_OBJECTS:
            where, value, own = pending.popleft()
            if isinstance(value, LEAVES):
                self._add(where, value)
            elif id(value) not in seen:
                seen.add(id(value))
                self._kept.append(value)
                own = own and is_own(value)
                holders = len(self._holders)
                pending.extend((name, x, own) for name, x in self._inside(where, value))
                if not own:
                    del self._holders[holders:]
        self.unwatched = pending[0][0] if pending else ""
        """The name of the first object that was not examined; empty if all were examined."""
        self._values |= {f"os.environ[{name!r}]": text for name, text in os.environ.items()}
        self._values["the state of Python's random numbers"] = random.getstate()
        self._values["the state of NumPy's random numbers"] = state_of_generator(np.random.mtrand._rand)

    def changes(self, later: PythonState) -> list[Change]:
        """The differences between this state and `later`, which has the same roots."""
        names = dict.fromkeys((*self._values, *later._values))
        pairs = ((name, self._values.get(name, _Absent), later._values.get(name, _Absent)) for name in names)
        return [Change(name, _text(a), _text(b)) for name, a, b in pairs if _differ(a, b)]

    def restore(self) -> None:
        """Restore attributes, closures, globals and containers, but only those of objects for which `is_own`
        holds and that were reached from a root through such objects only.
        """
        for _, restore in self._holders:
            restore()

    def restore_holders_of(self, unwanted: Callable[[Any], bool]) -> None:
        """Restore objects that now hold something `unwanted`, and those whose contents cannot be read."""
        for now, restore in self._holders:
            if now is None or any(map(unwanted, now())):
                restore()

    def _add(self, where: str, value: Any) -> None:
        """Add a value to compare. If two variables have the same name, the second is called `name (2)`."""
        self._times[where] += 1
        count = self._times[where]
        self._values[where if count == 1 else f"{where} ({count})"] = value

    def _inside(self, where: str, value: Any) -> Items:
        """The contents of an object, by name."""
        if isinstance(value, Tensor):
            return self._attributes(where, value) if type(value) in PLAIN else ()
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                return self._elements(where, value.reshape(-1).tolist())
            self._add(where, (value.shape, digest_of_array(value)))
            return ()
        if isinstance(value, KINDS):
            return [*self._container(where, value), *self._attributes(where, value)]
        if isinstance(value, tuple | frozenset):
            return self._elements(where, value)
        if isinstance(value, MappingProxyType):
            return [(f"{where}[{k!r}]", x) for k, x in value.items()]
        if isinstance(value, ContextVar):
            return ((where, value.get(None)),)
        if isinstance(value, weakref.ref):
            return () if value() is None else ((where, value()),)
        if isinstance(value, BuiltinMethodType):
            return () if isinstance(value.__self__, ModuleType) else ((where, value.__self__),)
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
        if isinstance(value, property):
            return [(where, function) for function in (value.fget, value.fset) if function is not None]
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, IOBase):
            self._add(where, position_of_file(value))
            return ()
        if isinstance(value, ModuleType | CodeType | torch.dtype | torch.device | Thread):
            return ()  # what a thread keeps may change beside the step
        if isinstance(value, Logger | Handler) and not is_own(value):
            return ()
        return self._instance(where, value)

    def _container(self, where: str, value: Any) -> Items:
        """The elements of a container that can change in place. Its length is compared separately."""
        kind = kind_of(value)
        self._changeable(value)
        self._add(f"len({where})", kind.__len__(value))
        if issubclass(kind, dict):
            keys = [(f"a key of {where}", k) for k in keys_of(value) if not isinstance(k, LEAVES)]
            named = [(f"{where}[{k!r}]", dict.__getitem__(value, k)) for k in keys_of(value)]
            return [*keys, *self._named(where, named)]
        if kind is set:
            self._add(where, frozenset(set.__iter__(value)))
            return [
                (f"{where}[{k}]", x) for k, x in enumerate(set.__iter__(value)) if not isinstance(x, LEAVES)
            ]
        return self._elements(where, kind.__iter__(value))

    def _elements(self, where: str, elements: Iterable[Any]) -> Items:
        return self._named(where, [(f"{where}[{k}]", x) for k, x in enumerate(elements)])

    def _named(self, where: str, items: list[tuple[str, Any]]) -> Items:
        """The elements of a container by name. Numbers and texts after the first `MOST_ELEMENTS` elements are
        compared as a single value.
        """
        first, rest = items[:MOST_ELEMENTS], items[MOST_ELEMENTS:]
        if rest:
            self._add(f"{where} behind {first[-1][0]}", tuple(x for _, x in rest if isinstance(x, LEAVES)))
        return [*first, *(item for item in rest if not isinstance(item[1], LEAVES))]

    def _changeable(self, value: Any) -> None:
        """Remember how to restore a container's contents."""
        kind, copy = kind_of(value), flat(value)

        def restore() -> None:
            now = flat(value)
            if len(now) == len(copy) and all(a is b for a, b in zip(now, copy)):
                return
            kind.clear(value)
            if issubclass(kind, dict):
                for key, held in zip(copy[::2], copy[1::2]):
                    kind.__setitem__(value, key, held)
            else:
                kind.update(value, copy) if kind is set else kind.extend(value, copy)

        self._holders.append((lambda: flat(value), restore))

    def _cell(self, where: str, cell: CellType) -> Items:
        try:
            held = cell.cell_contents
        except ValueError:  # not yet assigned
            return ()
        self._holders.append((lambda: (cell.cell_contents,), partial(_set, cell, "cell_contents", held)))
        return ((where, held),)

    def _function(self, where: str, function: FunctionType) -> Items:
        """A function's closure, defaults and attributes, and the globals that its code names. For a function
        of a library (`in_library`), only what `wrapped_by` finds.
        """
        code, shared = function.__code__, function.__globals__
        if in_library(code.co_filename):
            return wrapped_by(where, function)
        found: list[tuple[str, Any]] = [*zip(code.co_freevars, function.__closure__ or ())]
        found += [
            (f"defaults of {where}", function.__defaults__),
            (f"defaults of {where}", function.__kwdefaults__),
        ]
        found.append((f"attributes of {where}", vars(function)))
        names = names_of(code)
        found += self._of_module("", shared, names)
        package = shared.get("__package__") or ""
        for name in sorted(names - shared.keys()):  # modules that are imported inside functions
            module = sys.modules.get(name) or sys.modules.get(f"{package}.{name}")
            if module is not None:
                found += self._of_module(f"{name}.", vars(module), names)
        return found

    def _of_module(
        self, prefix: str, table: dict[str, Any], names: set[str], called: bool = False
    ) -> list[tuple[str, Any]]:
        """The globals in a module's `table` whose names are among `names`, except those examined before. A
        global that is itself a module is replaced by those of its globals whose names are among `names`.

        `prefix` is empty for the module of the function that is searched. If any other module belongs to a
        library or an installed package, many of its globals may be unrelated to the step. So of these
        globals, only numbers, texts and the lengths of containers are examined. They are examined in two
        cases: the searched code names the global directly, or it names a function of an installed package
        that uses the global. `called` is true while such a function is searched; the functions that it uses
        are not followed.
        """
        found: list[tuple[str, Any]] = []
        library = in_library(file := table.get("__file__") or STANDARD)
        theirs = bool(prefix) and (library or is_installed(file))
        for name in sorted(names & table.keys()):
            held = table[name]
            if isinstance(held, ModuleType):
                found += self._of_module(f"{prefix}{name}.", vars(held), names - {name}, called)
            elif (key := (id(table), name, theirs)) in self._globals:
                continue
            else:
                self._globals.add(key)
                if not theirs:
                    if not isinstance(held, FunctionType | type):
                        restore = partial(table.__setitem__, name, held)
                        self._holders.append((partial(_entry, table, name), restore))
                    found.append((f"{prefix}{name}", held))
                elif isinstance(held, KINDS):
                    found.append((f"len({prefix}{name})", kind_of(held).__len__(held)))
                elif isinstance(held, LEAVES):
                    found.append((f"{prefix}{name}", held))
                elif isinstance(held, FunctionType) and not (library or called):
                    found += self._of_module(prefix, held.__globals__, names_of(held.__code__), True)
        return found

    def _cached(self, where: str, function: Any) -> Items:
        """What a function with `functools.lru_cache` holds: the wrapped function and the cached results. The
        cache can only be restored by clearing it.

        If the wrapped function cannot run the submitter's code (`leads_to_own`), the cached results are left
        out, because the cache fills as soon as a trial first calls the function.
        """
        known = function.cache_info().misses

        def restore() -> None:
            if function.cache_info().misses != known:
                function.cache_clear()

        self._holders.append((None, restore))
        if not leads_to_own(function.__wrapped__):
            return [(where, function.__wrapped__)]
        inside = gc.get_referents(function)
        caches = [x for x in inside if type(x) is dict and function.cache_parameters()["maxsize"] is None]
        results = [*(x for cache in caches for x in cache.values()), *inside]
        held = [x for x in results if not isinstance(x, (*LEAVES, type)) and not _is_table(x)]
        return [(where, function.__wrapped__), *((f"a result of {where}", x) for x in held)]

    def _class(self, class_: type) -> Items:
        """For a class that the submitter wrote, and for any optimiser's class outside torch: its attributes,
        and the objects that its methods refer to. Any other class of an installed package may have other users.
        So it is examined only if it is an `nn.Module` class, and then only its methods are examined.
        """
        file = getattr(sys.modules.get(class_.__module__), "__file__", None) or STANDARD
        installed = is_installed(file) and not issubclass(class_, Optimizer)
        if in_library(file) or (installed and not issubclass(class_, nn.Module)):
            return ()
        found: list[tuple[str, Any]] = [(c.__name__, c) for c in (type(class_), *class_.__bases__)]
        if not installed:
            self._holders.append(_additions(class_))
        for name, held in vars(class_).items():
            held = held.__func__ if isinstance(held, staticmethod | classmethod) else held
            if isinstance(held, (FunctionType, CACHED)):
                found.append((f"{class_.__name__}.{name}", held))
            elif name in ("__dict__", "__weakref__", "_abc_impl") or isinstance(held, MemberDescriptorType):
                continue
            elif hasattr(type(held), "__get__"):
                found.append((f"{class_.__name__}.{name}", held))
            elif not installed and not _is_special(name):
                self._holders.append((partial(_attribute, class_, name), partial(_set, class_, name, held)))
                found.append((f"{class_.__name__}.{name}", held))
        return found

    def _instance(self, where: str, value: Any) -> Items:
        """The attributes and the class of an object that needs no special treatment. Random number generators
        and plain memory are compared by their contents instead, and iterators also by their position.
        """
        if (state := state_of_generator(value)) is not None:
            self._add(where, state)
            return ()
        if (data := digest_of(value)) is not None:
            self._add(where, data)
            return ()
        found = [*self._attributes(where, value), (type(value).__name__, type(value))]
        if isinstance(value, Iterator):
            self._add(where, position_of(value))
            found += [(f"{where}[{k}]", x) for k, x in enumerate(gc.get_referents(value))]
        return found

    def _attributes(self, where: str, value: Any) -> list[tuple[str, Any]]:
        """An object's attributes, in its `__dict__` or in slots; a module's also include its tensors and
        submodules.
        """
        dot = f"{where}." if where else ""
        found = []
        for name, slot in slots_of(type(value)):
            try:
                held = slot.__get__(value)
            except AttributeError:  # not yet assigned
                continue
            self._holders.append((partial(_entry_of_slot, slot, value), partial(slot.__set__, value, held)))
            found.append((f"{dot}{name}", held))
        attributes = getattr(value, "__dict__", None)
        if not isinstance(attributes, dict):
            return found
        self._changeable(attributes)
        found += [(f"{dot}{name}", x) for name, x in attributes.items()]
        if isinstance(value, nn.Module):
            for table in TABLES:
                self._changeable(attributes[table])
            found = [(name, x) for name, x in found if name.removeprefix(dot) not in TABLES]
            held = {**value._parameters, **value._buffers, **value._modules}
            found += [(f"{dot}{name}", x) for name, x in held.items()]
        return found


def roots_of(model: nn.Module, objective: Any) -> dict[str, Any]:
    """The roots of all Python values that a step may keep: the model, the objective, and the hooks that torch runs
    for all modules.
    """
    hooks = {f"a hook on all modules ({name})": [*getattr(modules, name).values()] for name in HOOKS}
    return {"": model, "objective": objective} | {name: held for name, held in hooks.items() if held}


@contextmanager
def left_as_it_was(model: nn.Module, objective: Any) -> Iterator[PythonState]:
    """Yields the Python values of model and objective, and restores them when the `with` block ends, even if
    it ends with an error.
    """
    kept = PythonState(roots_of(model, objective))
    try:
        yield kept
    finally:
        kept.restore()


class _Absent:
    """Placeholder for a value that exists in only one of two states."""


def _is_table(value: Any) -> bool:
    """Whether the value is the dict in which a cached function looks up its results."""
    return type(value) is dict and any(type(x).__name__ == "_lru_list_elem" for x in value.values())


def _entry(table: Mapping[str, Any], name: str) -> Iterable[Any]:
    return (table.get(name),)


def _set(owner: Any, name: str, value: Any) -> None:
    """Set an attribute if its value differs. The members of an enumeration cannot be set, but they never
    differ, so no attempt is made.
    """
    if getattr(owner, name, _Absent) is not value:
        setattr(owner, name, value)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _additions(class_: type) -> tuple[Callable[[], Iterable[Any]], Callable[[], None]]:
    """Two functions, as in `PythonState._holders`, for attributes that are added to a class after this call:
    one returns the values of these attributes, the other deletes the attributes.
    """
    before = set(vars(class_))

    def added() -> dict[str, Any]:
        return {name: x for name, x in vars(class_).items() if name not in before and not _is_special(name)}

    def restore() -> None:
        for name in added():
            delattr(class_, name)

    return lambda: added().values(), restore


def _attribute(owner: type, name: str) -> Iterable[Any]:
    return (getattr(owner, name, None),)


def _entry_of_slot(slot: Any, owner: Any) -> Iterable[Any]:
    return (slot.__get__(owner),)


def _differ(a: Any, b: Any) -> bool:
    return type(a) is not type(b) or (a != b and not (a != a and b != b))


def _text(value: Any) -> str:
    if value is _Absent:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
