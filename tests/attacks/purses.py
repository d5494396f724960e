"""What an attack costs and whom it pays: free balances of the arena's three parties, and burned tokens.

Once a task and all claims on it are over, the task holds no tokens. So the changes of these four numbers add
up to 0, and no payment is missing from them. Amounts are token units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from protocol.chain.parameters import TOKEN
from tests.chain.arena import Arena


@dataclass(frozen=True, slots=True)
class Purses:
    """Free balances and burned tokens in the vault, or the changes of both."""

    submitter: int = 0
    solver: int = 0
    challenger: int = 0
    burned: int = 0

    @classmethod
    def of(cls, arena: Arena) -> Self:
        """The present balances in the arena's vault."""
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
        """The sum of all four numbers: 0 for the changes of a task that is over."""
        return self.submitter + self.solver + self.challenger + self.burned


NOTHING: Final = Purses()

DRAW_FEE: Final = TOKEN // 10
SLASHED: Final = Purses(20 * TOKEN - DRAW_FEE, -100 * TOKEN, 10 * TOKEN + DRAW_FEE, 70 * TOKEN)
"""Changes of the balances when the solver is slashed. Of the stake of 100 tokens in the arena's terms, 10 go
to the challenger as reward, 20 to the submitter as restitution, and the rest, which no seat claims, is
burned. The escrow and the bond are returned. The submitter pays the fee of the draw to the challenger, which
executes it.
"""

ACCUSED: Final = Purses(solver=10 * TOKEN, challenger=-20 * TOKEN, burned=10 * TOKEN)
"""Changes of the balances when the challenger was wrong: half of its bond goes to the solver, and half is burned."""
