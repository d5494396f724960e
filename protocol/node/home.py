"""The home folder of a party (ASSAY_HOME), with accounts, deployments, bundles, nodes' data and settings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from protocol.errors import AssayError

VARIABLE = "ASSAY_HOME"


class HomeError(AssayError):
    """The home folder cannot be created, read or written."""

    def __init__(self, folder: Path, got: str) -> None:
        super().__init__(
            "home folder",
            expected=f"a folder at {folder} that this user may use",
            got=got,
            remedy=f"name another with --home or {VARIABLE}, or give this user the right to it",
        )


@dataclass(frozen=True, slots=True)
class Home:
    """Paths below the home folder. Folders are created on first use, readable only by their owner."""

    root: Path

    @classmethod
    def find(cls, given: Path | None = None) -> Home:
        """The home folder: `given`, else $ASSAY_HOME, else ~/.assay. Raises HomeError if the path begins with
        "~" or "~user" and that home folder is not known.
        """
        chosen = given or Path(os.environ.get(VARIABLE) or "~/.assay")
        try:
            return cls(chosen.expanduser().absolute())
        except RuntimeError as error:
            raise HomeError(chosen, f"no home folder for {chosen.parts[0]}") from error

    def folder(self, *parts: str) -> Path:
        """A folder below the home folder, created if missing. Raises HomeError if the folder cannot be
        created, or if this user may not read it.
        """
        path = self.root.joinpath(*parts)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise HomeError(path, f"{type(error).__name__}: {error.strerror}") from error
        if not os.access(path, os.R_OK | os.X_OK):
            raise HomeError(path, f"no right to read {path}")
        return path

    def require_reachable(self) -> None:
        """Raises HomeError if the home folder is not usable, or does not exist and cannot be created."""
        place = self.root
        try:
            while not place.exists() and place != place.parent:
                place = place.parent
            if not place.is_dir():
                raise HomeError(self.root, f"{place}, which is not a folder")
        except OSError as error:
            raise HomeError(self.root, f"{type(error).__name__}: {error.strerror}") from error
        needed = os.R_OK | os.X_OK if place == self.root else os.W_OK | os.X_OK
        if not os.access(place, needed):
            raise HomeError(self.root, f"no right to {'read' if place == self.root else 'write'} {place}")

    @property
    def config(self) -> Path:
        """Path of the settings file (TOML), which may not exist."""
        return self.root / "config.toml"

    @property
    def accounts(self) -> Path:
        """The folder of encrypted key files."""
        return self.folder("accounts")

    @property
    def bundles(self) -> Path:
        """The folder that contains the bundles. Each bundle has a folder in it, named by the SHA-256 of the
        bundle's manifest.
        """
        return self.folder("bundles")

    @property
    def bundle_folders(self) -> list[Path]:
        """For each party with this home, the folder that contains its bundles: the submitter's, and each
        node's. To use another party's bundle, a party links it into its own folder (`link_bundle`), so that
        each party can delete its own bundles.
        """
        return [self.bundles, *sorted(self.root.glob("*/*/bundles"))]

    def deployment(self, chain_id: int) -> Path:
        """Path of a chain's deployment file, which says where its contracts are."""
        return self.folder("deployments") / f"{chain_id}.json"
