"""Documents: link targets exist, the site has the order of the index, prose is wrapped, the README's Python
runs.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.site_links import without_outer_links
from tests.toolchain.project import REPOSITORY
from tests.toolchain.test_references import FILES

DOCS = REPOSITORY / "docs"
PAGES = [name for name in FILES if name.endswith(".md")]
LINK = re.compile(r"\]\(((?!https?:|#)[^)\s#]+)(?:#[^)\s]*)?\)")
WIDTH = 100
WRITTEN = (
    "README.md",
    "SECURITY.md",
    "performance.md",
    "roadmap.md",
    "security.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
)
WRAPPED = [name for name in PAGES if name.endswith(WRITTEN)]
WRAPPED += [name for name in PAGES if name.startswith(("docs/decisions/", "docs/guide/", "docs/spec/"))]
GENERATED = {"docs/guide/coverage.md"}
GENERATED_PART = re.compile(r"<!-- (\w+): .*? -->.*?<!-- \1 end -->", re.DOTALL)
KERNELS = (None, "float64", "int16-baseline,fused-baseline")
"""Values of `ASSAY_KERNELS`: all kernels of the machine (unset); float64 products and nothing compiled; the
code compiled for old processors.
"""


def text_of(page: str, tables: bool) -> Iterator[str]:
    """Lines of a page outside code blocks; table rows are left out unless `tables`."""
    code = False
    for line in page.splitlines():
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and (tables or not line.startswith("|")):
            yield line


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = REPOSITORY / name
    targets = LINK.findall("\n".join(text_of(page.read_text(), tables=True)))
    assert not [target for target in targets if not (page.parent / target).exists()]


def pages_of(nav: Any) -> Iterator[str]:
    """The pages of mkdocs' navigation, in order."""
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from pages_of(entry)


def test_the_site_has_the_order_of_the_index() -> None:
    nav = [*pages_of(yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text())["nav"])]
    listed = LINK.findall((DOCS / "README.md").read_text().split("## All pages")[1])
    assert nav == ["README.md", *listed]
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert {name for name in pages if not name.startswith("decisions/")} | {"decisions/README.md"} == set(nav)


def test_a_link_out_of_the_documents_becomes_text(caplog: pytest.LogCaptureFixture) -> None:
    page = DOCS / "guide" / "start.md"
    text = "See [a](../../README.md), [b](../security.md#4) and [c](submit.md)."
    assert without_outer_links(text, page) == "See a, [b](../security.md#4) and [c](submit.md)."
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        assert without_outer_links("[gone](../../gone.md)", page) == "gone"
    assert "gone.md" in caplog.text


@pytest.mark.parametrize("name", sorted({*WRAPPED} - GENERATED))
def test_prose_wraps(name: str) -> None:
    written = GENERATED_PART.sub("", (REPOSITORY / name).read_text())
    long = [line for line in text_of(written, tables=False) if len(line) > WIDTH]
    assert not [line for line in long if " " in line and not line.startswith(("# ", "- Status: "))]


def readme() -> tuple[str, str]:
    """The README's Python, and the output that the README gives for it."""
    (found,) = re.findall(
        r"```python\n(.*?)```.*?```\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL
    )
    program, printed = found
    return program, printed


@pytest.mark.parametrize("kernels", KERNELS)
def test_the_readmes_python_prints_what_the_readme_says(kernels: str | None, tmp_path: Path) -> None:
    program, printed = readme()
    environment = dict(os.environ) | ({} if kernels is None else {"ASSAY_KERNELS": kernels})
    environment["PYTHONPATH"] = str(REPOSITORY)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    if platform.machine() == "x86_64":  # elsewhere torch may draw other initial weights
        assert done.stdout == printed
