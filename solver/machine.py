"""The speed of this machine, for bids and admission: as the operator has set it, or as `solver bench` has
measured it.

On a development chain, the default `speed` is assumed for an unmeasured machine; on any other chain such a
machine makes no bid. Nothing is measured when a node starts: games may be due then, and other work would
distort the measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from protocol.execution.families import Family, speed
from protocol.execution.measured import Measured
from protocol.tasks.admission import Rates
from protocol.tasks.task import FILE_RATE, HASH_RATE
from solver.settings import SolverSettings

if TYPE_CHECKING:
    from protocol.execution.replay import Work

UNMEASURED: Final = (
    "this machine was not measured: run `solver bench`, or set `speed`, and start the node again"
)


@dataclass(frozen=True, slots=True)
class Machine:
    """The speed of this machine. `least` and `most` are the operations a second to assume for a program whose
    speed is not known yet, and for the traces of games of any program (`Rates`). `most` is assumed for a task
    before its bundle is fetched, when the task's terms alone must show whether a bid may pay. `least` is
    assumed in all other cases, such as defending a task. `families` holds measured speeds by kind of
    operation; it is None if these were not measured. `files` is the number of checkpoint files that can be
    written to the machine's disk in one second. `source` is "setting", "measured", "assumed", or "none",
    which means that no bids are made.
    """

    least: float
    most: float
    source: str
    hashing: float = HASH_RATE
    families: Mapping[Family, float] | None = None
    files: float = FILE_RATE

    @property
    def why_not(self) -> str:
        """Why no bids are made; "" if bids are made."""
        return UNMEASURED if self.source == "none" else ""

    def rates(self, programs: Mapping[bytes, float]) -> Rates:
        """The rates of this machine. `programs` are the operations a second of programs, by id: measured or,
        until then, expected.
        """
        return Rates(self.least, self.hashing, programs, self.files)

    def hopes(self, programs: Mapping[bytes, float]) -> Rates:
        """The rates to assume for a task whose program is not known yet: it may be of the fastest kind."""
        return Rates(self.most, self.hashing, programs, self.files)

    def expected(self, work: Work) -> float | None:
        """Estimated operations a second of a program, from the speeds of its kinds of operations; None if
        these were not measured.
        """
        if self.families is None:
            return None
        from protocol.execution.counting import operations

        return speed(operations(work.program.program, work.kernels), self.families)


def machine_of(settings: SolverSettings, found: Measured | None, local: bool) -> Machine:
    """The machine according to these settings and this measurement. `local` says whether the chain is a
    development chain.
    """
    hashing = HASH_RATE if found is None else found.hashing
    files = FILE_RATE if found is None else found.files
    if "speed" in settings.model_fields_set:
        return Machine(settings.speed, settings.speed, "setting", hashing, files=files)
    if found is not None:
        return Machine(found.slowest, found.fastest, "measured", hashing, found.operations, files)
    return Machine(settings.speed, settings.speed, "assumed" if local else "none")


ASSUMED = Machine(2e9, 2e9, "assumed")
"""The default machine of a `Context`: one with the default `speed`, not measured."""
