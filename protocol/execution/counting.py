"""Counts a program's operations by family (`families`). `protocol.program.cost` defines what an operation is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from protocol.execution.families import Family
from protocol.program.cost import cost, run_operations
from protocol.program.execute import Kernel
from protocol.program.library.function import LibraryKernel
from protocol.program.opcodes import Op
from protocol.program.program import Program

OF_FUNCTION: Final[Mapping[str, Family]] = {
    **dict.fromkeys(("linear", "linear_grad_input", "linear_grad_weight"), Family.PRODUCTS),
    **dict.fromkeys(("matmul", "matmul_nt", "matmul_tn"), Family.PRODUCTS),
    **dict.fromkeys(("conv", "conv_grad_input", "conv_grad_weight"), Family.CONVOLUTIONS),
}
"""The family of a library function, by the function's name. All other calls that have a kernel belong to
FUNCTIONS.
"""


def operations(program: Program, kernels: Mapping[bytes, Kernel]) -> dict[Family, int]:
    """Operations of one run of a checked program, by family. `kernels` holds the kernels that run the
    program's calls, by program id.

    The families' operations add up to the program's cost. If hashing determines the cost, the operations of
    each family are scaled up by the same factor.
    """
    counted: dict[Family, int] = dict.fromkeys(Family, 0)
    _count(program, kernels, counted, {})
    # What no kernel runs: all operations minus those of calls with a kernel.
    run, total = run_operations(program), cost(program).operations
    counted[Family.PRIMITIVES] += run - sum(counted.values())
    shares = {family: count * total // run for family, count in counted.items()}
    shares[Family.PRIMITIVES] += total - sum(shares.values())  # the rest of the divisions
    return shares


def _count(
    program: Program,
    kernels: Mapping[bytes, Kernel],
    counted: dict[Family, int],
    known: dict[bytes, dict[Family, int]],
) -> None:
    """Count the operations of the calls in `program` that have a kernel, and add them to `counted` by family.
    `known` caches the counts of callees, because there may be thousands of calls.
    """
    for number, instruction in enumerate(program.instructions):
        if instruction.op is not Op.CALL:
            continue
        callee = program.callee(number)
        if callee.id not in known:
            known[callee.id] = dict.fromkeys(Family, 0)
            kernel = kernels.get(callee.id)
            if kernel is None:
                _count(callee, kernels, known[callee.id], known)
            else:
                name = kernel.function.name if isinstance(kernel, LibraryKernel) else ""
                known[callee.id][OF_FUNCTION.get(name, Family.FUNCTIONS)] = run_operations(callee)
        for family, count in known[callee.id].items():
            counted[family] += count
