"""Settings of the `assay` commands: flags over ASSAY_* over the [assay] table of config.toml over these defaults.

Importing this loads pydantic, so a command line does it only when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from protocol.node.http import url_of


class AssaySettings(BaseModel):
    """What an operator may choose; each command uses some of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rpc: str = "http://127.0.0.1:8545"
    account: str = "dev:0"
    password_file: Path | None = None
    deployment: Path | None = None
    host: str = "127.0.0.1"
    """Where `assay serve` listens."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8700
    bundles_url: str | None = None
    """Public address of the bundle server, where it is not http://<host>:<port>."""
    bundles: tuple[str, ...] = ()
    """Addresses below which others' bundles may be read besides https and http on the internet, such as
    http://192.168.1.5:8700/.
    """

    @property
    def bundle_base(self) -> str:
        """Address below which /bundles/<hash>/ is found."""
        return (self.bundles_url or url_of(self.host, self.port)).rstrip("/")
