"""All studies by name, and the lookup of a study in this list or in a researcher's own file."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

from sim.errors import SimError, StudyError
from sim.studies.auctions import Auctions
from sim.studies.baseline import Baseline
from sim.studies.capital import Capital
from sim.studies.collusion import Collusion
from sim.studies.dilemma import Dilemma
from sim.studies.dynamics import Dynamics
from sim.studies.griefing import Griefing
from sim.studies.liveness import Liveness
from sim.studies.looks import Looks
from sim.studies.recommended import Recommended
from sim.studies.sensitivity import Sensitivity
from sim.studies.slash_split import SlashSplit
from sim.studies.stake_audits import StakeAudits
from sim.studies.study import Study
from sim.studies.withholding import Withholding

STUDIES: Final[Mapping[str, type[Study]]] = {
    kind.name: kind
    for kind in (
        Auctions,
        Baseline,
        Capital,
        Collusion,
        Dilemma,
        Dynamics,
        Griefing,
        Liveness,
        Looks,
        Recommended,
        Sensitivity,
        SlashSplit,
        StakeAudits,
        Withholding,
    )
}  # fmt: skip  # One line for each study.


def study(name: str) -> Study:
    """The listed study of this name, or the study that the Python file at this path defines. The file is
    executed.

    Raises StudyError if the name is not listed, the file cannot be read or executed, or the file does not
    define exactly one study.
    """
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name not in STUDIES:
        near = get_close_matches(name, STUDIES, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise StudyError(
            f"study {name!r}: expected one of {', '.join(sorted(STUDIES))}, or a file that ends in .py; "
            f"{hint}`sim list` shows all"
        )
    return STUDIES[name]()


def _from_file(path: Path) -> Study:
    module = _load(path)
    own = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Study) and kind.__module__ == module.__name__
    ]
    if len(own) != 1:
        raise StudyError(
            f"{path}: expected one subclass of Study, got {len(own)}; keep one study in a file (docs/guide/studies.md)"
        )
    kind = own[0]
    lacking = [name for name in ("name", "question") if not hasattr(kind, name)] + sorted(
        kind.__abstractmethods__
    )
    if lacking:
        raise StudyError(
            f"{path}: expected a study with {', '.join(lacking)}, got {kind.__name__} without; "
            f"write it (docs/guide/studies.md)"
        )
    return kind()


def _load(path: Path) -> ModuleType:
    try:
        # The path is part of the name: after a move, nothing could be loaded from the old location.
        digest = hashlib.sha256(path.read_bytes() + bytes(path.resolve())).hexdigest()[:16]
    except OSError as error:
        raise StudyError(
            f"{path}: expected a readable file with a study, got {error.strerror}; correct the path"
        ) from error
    name = f"sim_study_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise StudyError(f"{path}: expected a Python file, got none; correct the path")
    module = module_from_spec(spec)
    sys.modules[name] = module  # Dataclasses look up their module while it is executed.
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]  # The next import would find a partly initialised module.
        if isinstance(error, SimError) or not isinstance(error, Exception):
            raise
        raise StudyError(
            f"{path}: expected a file that Python executes, got {type(error).__name__}: {error}; correct it"
        ) from error
    return module
