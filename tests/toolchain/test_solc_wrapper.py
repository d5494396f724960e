"""scripts/solc answers as a native compiler would, however slowly its output is read."""

import json
import subprocess
import time

from tests.toolchain.project import REPOSITORY

SOLC = REPOSITORY / "scripts" / "solc"
PIPE_HOLDS = 65_536  # bytes that a pipe holds on Linux; an exit too early loses the rest


def test_version_is_the_one_of_package_json() -> None:
    wanted = json.loads((REPOSITORY / "package.json").read_text())["devDependencies"]["solc"]
    result = subprocess.run([SOLC, "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.splitlines()[-1].startswith(f"Version: {wanted}+commit.")


def test_long_output_arrives_whole() -> None:
    functions = "".join(
        f"function f{i}(uint256 x) external pure returns (uint256) {{ return x; }}" for i in range(400)
    )
    request = {
        "language": "Solidity",
        "sources": {"C.sol": {"content": f"pragma solidity 0.8.37; contract C {{ {functions} }}"}},
        "settings": {"outputSelection": {"*": {"*": ["abi"]}}},
    }
    with subprocess.Popen(
        [SOLC, "--standard-json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request).encode())
        process.stdin.close()
        time.sleep(2)  # the compiler is done and waits for its reader
        output = process.stdout.read()
    assert process.returncode == 0
    assert len(output) > PIPE_HOLDS
    assert len(json.loads(output)["contracts"]["C.sol"]["C"]["abi"]) == 400


def test_anything_else_is_refused() -> None:
    result = subprocess.run([SOLC, "--bin"], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert "expected --version or --standard-json, got: --bin" in result.stderr
