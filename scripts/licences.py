"""Writes docs/licences.md (`make licences`): the packages that operators or the contracts' build use.

For Python packages, versions come from requirements.lock, and licences from the packages' metadata. For npm
packages, both come from package-lock.json.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageMetadata, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "licences.md"
EXCEPTIONS = {
    "certifi": "the Mozilla licence covers its own files, a list of certificates, which are used unchanged",
}
"""Packages under a copyleft licence, and why that licence does not affect this project."""
COPYLEFT = re.compile(
    r"\b[AL]?GPL|GNU |Affero|\bMPL|Mozilla|\bEUPL|\bEPL|Eclipse|\bCDDL|\bOSL|\bSSPL|\bBUSL|\bCC-BY-SA", re.I
)
HEAD = """# Licences

Assay itself is under the MIT licence. Its wheel holds none of the packages below; `pip install` fetches them. The
tables are written by `make licences` from the packages' own metadata, for Linux and Python 3.11, at the versions of
`requirements.lock` and `package-lock.json`. A test fails when they are out of date, or when a package of an operator
is under a copyleft licence without standing among the exceptions.

"""


@dataclass(frozen=True)
class Package:
    """A package's name, its version, and its licence as the metadata gives it. In a licence, OR separates
    alternatives.
    """

    name: str
    version: str
    licence: str


def page() -> str:
    """The whole document."""
    parts = [HEAD, "## What an operator installs\n\n", *_table(operator_packages())]
    parts += ["\n## What the contracts are compiled with\n\n", *_table(contract_packages())]
    parts.append("\n## Exceptions\n\n")
    parts += [f"- {name}: {reason}.\n" for name, reason in sorted(EXCEPTIONS.items())]
    return "".join(parts)


def operator_packages() -> list[Package]:
    """The wheel's dependencies, without extras, and everything that these need on this machine."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    locked = lock()
    names = sorted(closure(project["dependencies"]))
    return [Package(name, locked[name], licence_of(distribution(name).metadata)) for name in names]


def contract_packages() -> list[Package]:
    """The npm packages that the contracts' sources import."""
    entries = json.loads((REPOSITORY / "package-lock.json").read_text())["packages"]
    sources = [path.read_text() for path in (REPOSITORY / "contracts" / "src").rglob("*.sol")]
    names = {name for text in sources for name in re.findall(r'from "(@[^/"]+/[^/"]+)/', text)}
    found = [(name, entries[f"node_modules/{name}"]) for name in sorted(names)]
    return [Package(name, entry["version"], entry["license"]) for name, entry in found]


def lock() -> dict[str, str]:
    """The exact version of each distribution in requirements.lock."""
    lines = (REPOSITORY / "requirements.lock").read_text().splitlines()
    return {normal(name): version for name, version in (line.split("==") for line in lines if "==" in line)}


def normal(name: str) -> str:
    """A distribution's name in the form in which package indexes compare names (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(requirements: Iterable[str]) -> set[str]:
    """The distributions that these requirements name, and all their dependencies on this machine."""
    found: set[tuple[str, str]] = set()
    queue = [(line, "") for line in requirements]
    while queue:
        line, asked = queue.pop()
        needed = Requirement(line)
        if needed.marker is not None and not needed.marker.evaluate({"extra": asked}):
            continue
        for extra in ("", *needed.extras):
            if (normal(needed.name), extra) not in found:
                found.add((normal(needed.name), extra))
                queue += [(line, extra) for line in _required_by(needed.name)]
    return {name for name, _ in found}


def licence_of(metadata: PackageMetadata) -> str:
    """The licence that metadata gives: the SPDX expression, otherwise a short text in the old field,
    otherwise the classifiers, otherwise "unknown".
    """
    fields = metadata.json
    for key in ("license_expression", "license"):
        text = str(fields.get(key, "")).strip()
        if text and "\n" not in text and len(text) <= 160:
            return text
    listed = [str(line) for line in fields.get("classifier", ()) if str(line).startswith("License ::")]
    return " AND ".join(line.split(" :: ")[-1] for line in listed) or "unknown"


def is_copyleft(licence: str) -> bool:
    """Whether a licence is copyleft and has no permissive alternative (OR)."""
    text = licence.strip()
    while re.search(r"\([^()]*\)", text):
        text = re.sub(r"\(([^()]*)\)", lambda inner: "GPL" if is_copyleft(inner[1]) else "MIT", text)
    choices = re.split(r"\s+OR\s+", text)
    return all(any(COPYLEFT.search(part) for part in re.split(r"\s+AND\s+", choice)) for choice in choices)


def _required_by(name: str) -> list[str]:
    try:
        return distribution(name).requires or []
    except PackageNotFoundError:
        return []


def _table(packages: list[Package]) -> Iterator[str]:
    yield "| package | version | licence |\n|---|---|---|\n"
    for package in packages:
        yield f"| {package.name} | {package.version} | {package.licence} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")
