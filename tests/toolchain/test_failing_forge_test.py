"""A failing contract test turns `make test` red.

The npm launchers of forge exit 0 on every failure, so a recipe that used one would always be green.
"""

from pathlib import Path

from tests.toolchain.project import REPOSITORY, contracts_project, make

SUBJECT = """// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

contract SubjectTest {{
    function test_subject() external pure {{
        assert({claim});
    }}
}}
"""
UNUSED_VARIABLE = """// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

contract SubjectTest is Test {
    function test_subject() external pure {
        uint256 nobodyReadsThis = 1;
    }
}
"""


def test_passing_contract_test_leaves_make_green(tmp_path: Path) -> None:
    result = make(contracts_project(tmp_path, SUBJECT.format(claim="2 + 2 == 4")), "test-contracts")
    assert "1 tests passed, 0 failed" in result.stdout
    assert result.returncode == 0, result.stdout


def test_failing_contract_test_turns_make_red(tmp_path: Path) -> None:
    result = make(contracts_project(tmp_path, SUBJECT.format(claim="2 + 2 == 5")), "test-contracts")
    assert "0 tests passed, 1 failed" in result.stdout
    assert result.returncode != 0, result.stdout


def test_compiler_warning_in_a_contract_test_turns_make_red(tmp_path: Path) -> None:
    """solc reports at most 256 warnings. An unmodified forge-std alone causes more than that, so the warnings
    of our own code would be hidden.
    """
    result = make(contracts_project(tmp_path, UNUSED_VARIABLE), "test-contracts")
    assert "Unused local variable" in result.stdout
    assert result.returncode != 0, result.stdout


def test_make_test_goes_through_the_contract_tests() -> None:
    result = make(REPOSITORY, "test", "--dry-run")
    assert result.returncode == 0, result.stdout
    recipes = result.stdout.splitlines()
    assert [line.split()[-1] for line in recipes if line.endswith('forge" test')] == ["test"], result.stdout
