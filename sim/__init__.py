"""Economics: simulated agents play against a model of the contracts, in exact integer token units.

For notebooks: `sim.run("baseline", runs=100, params={"stake": "100:5000:20"})` plays a study and returns
its `Results`. `run` and `Results` are loaded on first use, because they import NumPy and Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.results.results import Results, run

__all__ = ["Results", "run"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from sim.results import results

        return getattr(results, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
