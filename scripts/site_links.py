"""A hook of mkdocs that turns each link to a file outside docs/ into plain text, because the site contains
only docs/.

It warns if the target of such a link does not exist; mkdocs itself checks the links inside docs/. `mkdocs
build --strict`, part of `make lint`, fails on a warning.
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
    """mkdocs calls this for each page. Returns the page without links to files outside docs/."""
    return without_outer_links(markdown, DOCS / page.file.src_uri)


def without_outer_links(markdown: str, page: Path) -> str:
    """The page, in which each link to a file outside docs/ is replaced by the link's text. Warns if a link's
    target does not exist.
    """

    def words(found: re.Match[str]) -> str:
        target = (page.parent / found[2]).resolve()
        if target.is_relative_to(DOCS):
            return found[0]
        if not (target.is_relative_to(REPOSITORY) and target.exists()):
            _log.warning("%s links to %s, which is not there", page.relative_to(DOCS), found[2])
        return found[1]

    return LINK.sub(words, markdown)
