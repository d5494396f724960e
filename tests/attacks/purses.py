"""What an attack cost and whom it paid: free balances of the arena's three parties and what was burned.

Taken before and after, the difference is the whole of it: a task that is over, whose claims are too, holds no token, so
the changes add up to 0. Amounts are units of the token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from protocol.chain.parameters import TOKEN
from tests.chain.arena import Arena


@dataclass(frozen=True, slots=True)
class Purses:
    """Free balances in the vault, or their changes."""

    submitter: int = 0
    solver: int = 0
    challenger: int = 0
    burned: int = 0

    @classmethod
    def of(cls, arena: Arena) -> Self:
        """As the vault has them now."""
        vault = arena.submitter.vault
        return cls(
            vault.free(arena.submitter.address),
            vault.free(arena.solver.address),
            vault.free(arena.challenger.address),
            vault.burned(),
        )

    def __sub__(self, before: Purses) -> Purses:
        return Purses(
            self.submitter - before.submitter,
            self.solver - before.solver,
            self.challenger - before.challenger,
            self.burned - before.burned,
        )

    @property
    def total(self) -> int:
        """All of it: 0 for the changes of a task that is over."""
        return self.submitter + self.solver + self.challenger + self.burned


NOTHING: Final = Purses()

DRAW_FEE: Final = TOKEN // 10
SLASHED: Final = Purses(20 * TOKEN - DRAW_FEE, -100 * TOKEN, 10 * TOKEN + DRAW_FEE, 70 * TOKEN)
"""The arena's stake of 100: a reward of 10 to the challenger, 20 restored, and all that no seat claims burned; the
escrow returns and so does the bond. The draw that was asked for is paid, and it is the challenger who executes it."""

ACCUSED: Final = Purses(solver=10 * TOKEN, challenger=-20 * TOKEN, burned=10 * TOKEN)
"""The bond of a challenger who was wrong: half pays the solver, half burns."""
