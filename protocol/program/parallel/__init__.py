"""Runs one step in several processes, with the same bits as in one process (arithmetic.md, "data-parallel
training").

The units of a step program are calls of one callee that do not depend on each other (`units`); `capture`
makes them with `micro_batches`. Each process runs a share of the units and receives the others' results, bit
for bit. No results are summed on the way between processes, so the order of processes has no effect. Every
process computes the rest of the step itself. `protocol.execution.workers` starts the processes.
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
