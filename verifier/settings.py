"""Settings of `verifier watch`: flags over ASSAY_* over the [verifier] table of config.toml over these defaults.

Importing this loads pydantic, so the command line does it only when it runs.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from protocol.node.party.settings import NodeSettings


class VerifierSettings(NodeSettings):
    """What an operator may choose."""

    account: str = "dev:2"
    stake_slots: Annotated[int, Field(ge=0, le=255)] = 1
    """Units of stake to lock; each is one chance in every draw. 0: not registered, as a mere whistleblower may be."""
    whistleblow: bool = False
    """Replay all segments of every submitted task, drawn or not."""
    games: Annotated[int, Field(ge=1, le=64)] = 4
    """Games whose trees are open side by side, each in memory; the earliest deadline goes first."""
    replays: Annotated[int, Field(ge=1, le=64)] = 2
    """Segments replayed side by side, each in memory."""
    fetches: Annotated[int, Field(ge=1, le=256)] = 8
    """Tasks whose bundle or checkpoints are fetched side by side, each in memory as far as it has come."""
    metrics_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Where Prometheus may read on this machine; by default nowhere."""
