"""One step run by several processes, with the bits of one: arithmetic.md section 5, "data-parallel training".

The units of a step program are calls of one callee that do not depend on each other (`units`); `capture` makes them
with `micro_batches`. Each process runs its share of them and gets the results of the others unchanged, bit for bit;
nothing is added on the way, so the order of processes has no effect. Every process computes the rest for itself.
`protocol.execution.workers` starts the processes.
"""

from protocol.program.parallel.errors import ParallelError, PartnerLost, RanksDisagree, TooManyProcesses
from protocol.program.parallel.exchange import Group
from protocol.program.parallel.shared import SharedStep
from protocol.program.parallel.units import units

__all__ = [
    "Group",
    "ParallelError",
    "PartnerLost",
    "RanksDisagree",
    "SharedStep",
    "TooManyProcesses",
    "units",
]
