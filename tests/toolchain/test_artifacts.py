"""Every deployed contract is compiled into exactly one artifact, by the "ir" or "loops" profile. Forge's
tests deploy that artifact.

A new contract that is not in a profile's list of paths would be compiled like the tests, without the
optimizer.
"""

import json
import re

from scripts.contract_data import COMPILED, DATA, DEPLOYED, INTERFACES, documents
from tests.toolchain.project import REPOSITORY

SIZE_LIMIT = 24_576  # bytes of code, EIP-170
RUNS = dict.fromkeys(("Arbiter", "StakeVault"), 3_000)
"""Optimiser runs of the contracts that the "loops" profile compiles. All other contracts are compiled with
the 200 runs of the "ir" profile (docs/decisions, 23).
"""


def test_every_contract_has_one_artifact_of_its_profile() -> None:
    sources = sorted((REPOSITORY / "contracts" / "src").rglob("*.sol"))
    found = [
        (file, name) for file in sources for name in re.findall(r"(?m)^contract (\w+)", file.read_text())
    ]
    assert len(found) > 5
    for file, name in found:
        artifacts = sorted(path.name for path in (COMPILED / file.name).glob(f"{name}*.json"))
        assert artifacts == [f"{name}.json"]
        artifact = json.loads((COMPILED / file.name / artifacts[0]).read_text())
        settings = artifact["metadata"]["settings"]
        assert settings["viaIR"] is True, name
        assert settings["optimizer"] == {"enabled": True, "runs": RUNS.get(name, 200)}, name
        assert len(bytes.fromhex(artifact["deployedBytecode"]["object"].removeprefix("0x"))) <= SIZE_LIMIT


def test_the_package_holds_what_forge_has_compiled() -> None:
    """The contract data in the package equal the data made from forge's artifacts. With stale data, tests and
    operators would use outdated contracts. `make contracts` renews the data.
    """
    due = documents(COMPILED)
    assert set(due) == {*DEPLOYED, *INTERFACES, "errors"}
    assert sorted(path.stem for path in DATA.iterdir()) == sorted(due)
    for name, document in due.items():
        assert json.loads((DATA / f"{name}.json").read_text()) == document, f"{name}: run `make contracts`"


def test_every_contract_of_the_sources_is_in_the_package() -> None:
    sources = (REPOSITORY / "contracts" / "src").rglob("*.sol")
    found = {name for file in sources for name in re.findall(r"(?m)^contract (\w+)", file.read_text())}
    assert found == set(DEPLOYED)


def test_every_error_of_the_sources_is_in_the_package() -> None:
    sources = (REPOSITORY / "contracts" / "src").rglob("*.sol")
    declared = {name for file in sources for name in re.findall(r"(?m)^ *error (\w+)\(", file.read_text())}
    assert len(declared) > 50
    assert declared <= {entry["name"] for entry in documents(COMPILED)["errors"]}
