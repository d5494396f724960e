"""What `capture` refuses when the parts of a step come together: names that several tensors would have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from protocol.capture.errors import CaptureError, Problem


def require_distinct(names: Iterable[str]) -> None:
    """Raise `CaptureError` if a name occurs twice among those of the task's tensors."""
    taken = [name for name, count in Counter(names).items() if count > 1]
    if taken:
        what = f"several tensors of the task would be called {', '.join(taken)}"
        remedy = "rename the model's parameter or buffer, or the objective's metric, of this name"
        raise CaptureError([Problem(what, remedy)])
