"""What a chain gets is compiled by the "ir" or "loops" profile, and under one name, by which forge's tests deploy it.

A new contract that the profile's list of paths lacks would be compiled as the tests are, without the optimizer.
"""

import json
import re

from protocol.chain.abi import artifact_folder
from tests.toolchain.project import REPOSITORY

SIZE_LIMIT = 24_576  # bytes of code, EIP-170
RUNS = dict.fromkeys(("Arbiter", "AuditBoard", "StakeVault", "TaskMarket"), 3_000)
"""Optimiser runs of the "loops" profile; all others have the "ir" profile's 200 (docs/decisions.md, 23)."""


def test_every_contract_has_one_artifact_of_its_profile() -> None:
    sources = sorted((REPOSITORY / "contracts" / "src").rglob("*.sol"))
    found = [
        (file, name) for file in sources for name in re.findall(r"(?m)^contract (\w+)", file.read_text())
    ]
    assert len(found) > 5
    for file, name in found:
        artifacts = sorted(path.name for path in (artifact_folder() / file.name).glob(f"{name}*.json"))
        assert artifacts == [f"{name}.json"]
        artifact = json.loads((artifact_folder() / file.name / artifacts[0]).read_text())
        settings = artifact["metadata"]["settings"]
        assert settings["viaIR"] is True, name
        assert settings["optimizer"] == {"enabled": True, "runs": RUNS.get(name, 200)}, name
        assert len(bytes.fromhex(artifact["deployedBytecode"]["object"].removeprefix("0x"))) <= SIZE_LIMIT
