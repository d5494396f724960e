"""docs/licences.md is current. Every package with a copyleft licence, among the packages of an operator and
of the contracts, has been reviewed.
"""

from __future__ import annotations

from importlib.metadata import version

import pytest

from scripts.licences import EXCEPTIONS, PAGE, contract_packages, is_copyleft, lock, operator_packages, page


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `make licences`"


def test_what_is_installed_is_what_the_lock_says() -> None:
    locked = lock()
    for package in operator_packages():
        assert version(package.name).split("+")[0] == locked[package.name], package.name


def test_nothing_binds_an_operator_to_a_copyleft_licence() -> None:
    packages = [*operator_packages(), *contract_packages()]
    assert len(packages) > 50
    assert {package.name for package in packages if is_copyleft(package.licence)} == set(EXCEPTIONS)
    assert not [package for package in packages if package.licence == "unknown"]


@pytest.mark.parametrize(
    ("licence", "copyleft"),
    [
        ("MIT", False),
        ("GPL-3.0-only", True),
        ("LGPL-2.1-or-later", True),
        ("AGPL-3.0", True),
        ("MIT OR GPL-2.0-only", False),
        ("MIT AND GPL-2.0-only", True),
        ("(MIT OR GPL-2.0-only) AND BSD-3-Clause", False),
        ("(MIT AND GPL-2.0-only) OR LGPL-3.0-only", True),
        ("GNU General Public License v3 (GPLv3)", True),
        ("GNU Lesser General Public License v2 or later (LGPLv2+)", True),
        ("Mozilla Public License 2.0 (MPL 2.0)", True),
        ("BUSL-1.1", True),
        ("Apache-2.0 WITH LLVM-exception", False),
        ("ISC License (ISCL)", False),
        ("BSD, Public Domain", False),
    ],
)
def test_copyleft_is_recognised(licence: str, copyleft: bool) -> None:
    assert is_copyleft(licence) is copyleft
