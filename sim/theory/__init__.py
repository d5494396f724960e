"""Closed forms of the protocol's economics, on `protocol.economics`; each with its derivation where it stands.

Not a simulation: `sim`'s engine draws agents and is compared with these. One file per subject: `escape`,
`cheating`, `frontier`, `inspection`, `collusion`, `griefing`, `auctions`, `liveness`. Pure functions of NumPy
and the standard library. Where theory follows dispute.md beyond the contracts as they stand, the docstring
says so.
"""

from sim.theory.bounds import TheoryError
from sim.theory.cheating import (
    break_even_false,
    cheating_advantage,
    cheating_profit,
    minimum_stake,
    worst_false,
    zero_profit_stake,
)
from sim.theory.escape import (
    MAX_DRAWS,
    caught_probability,
    caught_probability_missed,
    escape_probability,
    last_caught_probability,
    missed_probability,
    raised_segments,
)
from sim.theory.frontier import (
    Audits,
    Milestones,
    audits_per_segment,
    fewest_milestones,
    frontier,
    largest_segments,
    least_segments_per_verifier,
    milestones,
    stake_multiple,
    stake_multiple_sparse,
)

__all__ = [
    "MAX_DRAWS",
    "Audits",
    "Milestones",
    "TheoryError",
    "audits_per_segment",
    "break_even_false",
    "caught_probability",
    "caught_probability_missed",
    "cheating_advantage",
    "cheating_profit",
    "escape_probability",
    "fewest_milestones",
    "frontier",
    "largest_segments",
    "last_caught_probability",
    "least_segments_per_verifier",
    "milestones",
    "minimum_stake",
    "missed_probability",
    "raised_segments",
    "stake_multiple",
    "stake_multiple_sparse",
    "worst_false",
    "zero_profit_stake",
]
