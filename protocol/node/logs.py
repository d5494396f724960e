"""Logs of the long-running parties: structlog to stderr, for people, or one JSON object per line with
`--log-json`.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


def configure(as_json: bool, verbose: bool = False) -> None:
    """Set up the process's logs. Call this once, before the first logger is used."""
    import structlog

    renderer = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if verbose else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def get(name: str) -> FilteringBoundLogger:
    """The logger of one module, named by its party and purpose: "solver.training"."""
    import structlog

    logger: FilteringBoundLogger = structlog.get_logger(component=name)
    return logger
