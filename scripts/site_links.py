"""A hook of mkdocs that turns links out of docs/ into text, as the site contains only docs/.

It warns of dead links out of docs/; mkdocs itself checks the links inside. `mkdocs build --strict`, part of
`make lint`, fails on a warning.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[1]
DOCS: Final = REPOSITORY / "docs"
LINK: Final = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#\s]+)(?:#[^)\s]*)?\)")

_log = logging.getLogger("mkdocs.hooks.site_links")


def on_page_markdown(markdown: str, page: Any, **_given: object) -> str:
    """mkdocs calls this for each page; returns the page without links to files outside docs/."""
    return without_outer_links(markdown, DOCS / page.file.src_uri)


def without_outer_links(markdown: str, page: Path) -> str:
    """A page with each link out of docs/ replaced by its text; warns if a target does not exist."""

    def words(found: re.Match[str]) -> str:
        target = (page.parent / found[2]).resolve()
        if target.is_relative_to(DOCS):
            return found[0]
        if not (target.is_relative_to(REPOSITORY) and target.exists()):
            _log.warning("%s links to %s, which is not there", page.relative_to(DOCS), found[2])
        return found[1]

    return LINK.sub(words, markdown)
