"""The families of entries. If the library of a family is missing, requesting the family's entries raises an error."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from tests.models.entry import Entry
from tests.models.libraries import prepared

FAMILIES: Final = (
    "plain",
    "vision",
    "timm_models",
    "timm_transformers",
    "vision_tasks",
    "vision_patterns",
    "vision_losses",
    "decoders",
    "experts",
    "encoders",
    "pictures",
    "speech",
    "multimodal",
    "series",
    "diffusion",
    "latents",
    "finetuning",
    "functions",
    "generative",
    "graphs",
    "optimising",
    "patterns",
    "recurrent",
    "reinforcement",
    "tabular",
)
"""The families, which are modules of this package."""
QUICK: Final = (
    "plain",
    "decoders",
    "encoders",
    "pictures",
    "functions",
    "patterns",
    "recurrent",
    "reinforcement",
    "tabular",
)
"""Families with entries for `make test`."""


def entries(families: tuple[str, ...] = FAMILIES) -> list[Entry]:
    """All entries of some families, in order."""
    prepared()
    found: list[Entry] = []
    for family in families:
        found += import_module(f"{__name__}.{family}").ENTRIES
    return found


def modules() -> dict[str, str]:
    """The module of every entry, by the entry's name."""
    return {str(entry): family for family in FAMILIES for entry in entries((family,))}
