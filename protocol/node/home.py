"""The one folder of a party: accounts, deployments, bundles, its node's data and settings (ASSAY_HOME)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "ASSAY_HOME"


@dataclass(frozen=True, slots=True)
class Home:
    """Paths below the home folder. Folders are made on first use, readable by their owner alone."""

    root: Path

    @classmethod
    def find(cls, given: Path | None = None) -> Home:
        """The folder given, else $ASSAY_HOME, else ~/.assay."""
        return cls(
            (given or Path(os.environ.get(VARIABLE) or Path.home() / ".assay")).expanduser().absolute()
        )

    def folder(self, *parts: str) -> Path:
        """A folder below the home, made if missing."""
        path = self.root.joinpath(*parts)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    @property
    def config(self) -> Path:
        """The settings file (TOML); it may be missing."""
        return self.root / "config.toml"

    @property
    def accounts(self) -> Path:
        """Encrypted keystores."""
        return self.folder("accounts")

    @property
    def bundles(self) -> Path:
        """Bundles, one folder each, named by the SHA-256 of their manifest."""
        return self.folder("bundles")

    @property
    def bundle_folders(self) -> list[Path]:
        """Where parties of this home keep bundles: the submitter's, and each node's own. Whoever needs one takes it by
        `link_bundle`, so that each may delete its own.
        """
        return [self.bundles, *sorted(self.root.glob("*/*/bundles"))]

    def deployment(self, chain_id: int) -> Path:
        """The file that says where the contracts of a chain are."""
        return self.folder("deployments") / f"{chain_id}.json"
