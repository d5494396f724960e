"""Hook of mkdocs: links that leave docs/ are shown as text, for the site has only docs/; a dead one is a warning.

`mkdocs build --strict`, part of `make lint`, fails on a warning. mkdocs itself checks the links inside docs/.
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
    """Called by mkdocs for each page: the page without links to files outside docs/."""
    return without_outer_links(markdown, DOCS / page.file.src_uri)


def without_outer_links(markdown: str, page: Path) -> str:
    """The text of a page with the words of each link that leaves docs/ in its place; warns where nothing is there."""

    def words(found: re.Match[str]) -> str:
        target = (page.parent / found[2]).resolve()
        if target.is_relative_to(DOCS):
            return found[0]
        if not (target.is_relative_to(REPOSITORY) and target.exists()):
            _log.warning("%s links to %s, which is not there", page.relative_to(DOCS), found[2])
        return found[1]

    return LINK.sub(words, markdown)
