"""Settings of `verifier watch`: flags over ASSAY_* over the [verifier] table of config.toml over these defaults.

Importing this loads pydantic, so the command line does it only when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class VerifierSettings(BaseModel):
    """What an operator may choose."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rpc: str = "http://127.0.0.1:8545"
    account: str = "dev:2"
    password_file: Path | None = None
    deployment: Path | None = None
    stake_slots: Annotated[int, Field(ge=0, le=255)] = 1
    """Units of stake to lock; each is one chance in every draw. 0: not registered, as a mere whistleblower may be."""
    speed: Annotated[float, Field(gt=0)] = 2e9
    """Scalar operations a second that this machine manages, to open no game whose clock is shorter than a replay."""
    whistleblow: bool = False
    """Replay all segments of every submitted task, drawn or not."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where steps run; auto: on a CUDA device if torch has one. The bits are the same."""
    tasks: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Tasks to look at; empty: all."""
    games: Annotated[int, Field(ge=1, le=64)] = 4
    """Games played side by side, each in memory; further accusations wait."""
    replays: Annotated[int, Field(ge=1, le=64)] = 2
    """Segments replayed side by side, each in memory."""
    poll: Annotated[float, Field(gt=0, le=60)] = 0.5
    patience: Annotated[float, Field(gt=0)] = 300.0
    """Seconds that the node may be out of reach before the verifier gives up."""
    bundles: tuple[str, ...] = ()
    """Addresses below which bundles may be read besides http(s), such as file:///srv/bundles/."""
