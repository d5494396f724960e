"""What changes between two formats of the solver's database: nothing yet, format 1 is the only one.

The format with the commit that began it is in `tests/vectors/README.md`.
"""

from __future__ import annotations

from typing import Final

from protocol.node.migrations import Migration

MIGRATIONS: Final[tuple[Migration, ...]] = ()
