"""Everything in the ABI is documented, each error has one form, and Evidence gets the game's calldata."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eth_utils.abi import collapse_if_tuple
from eth_utils.crypto import keccak

from tests.toolchain.project import REPOSITORY

COMPILED = REPOSITORY / "build" / "contracts" / "out"
SOURCES = sorted((REPOSITORY / "contracts" / "src").rglob("*.sol"))
DOCUMENTED = {"function": "methods", "event": "events", "error": "errors"}
"""Kinds of ABI entries, and their keys in solc's documentation."""


def compiled(source: Path) -> Iterator[tuple[str, list[dict[str, Any]], dict[str, Any]]]:
    """Yields name, ABI and documentation of each contract that was compiled from the present text of the
    source.
    """
    name = source.relative_to(REPOSITORY).as_posix()
    digest = "0x" + keccak(source.read_bytes()).hex()
    for path in sorted((COMPILED / source.name).glob("*.json")):
        artifact = json.loads(path.read_bytes())
        metadata = json.loads(artifact["rawMetadata"])
        target = metadata["settings"]["compilationTarget"]
        if name in target and metadata["sources"][name]["keccak256"] == digest:
            yield target[name], artifact["abi"], metadata["output"]


def signature(entry: dict[str, Any]) -> str:
    """The name of an ABI entry in solc's documentation."""
    return f"{entry['name']}({','.join(collapse_if_tuple(item) for item in entry['inputs'])})"


def is_documented(entry: dict[str, Any], output: dict[str, Any]) -> bool:
    """Whether an entry has a notice or, as OpenZeppelin's entries do, at least details for developers."""
    for kind in ("userdoc", "devdoc"):
        found = output[kind].get(DOCUMENTED[entry["type"]], {}).get(signature(entry), {})
        found = found[0] if isinstance(found, list) else found  # errors: one for each declaration
        if found.get("notice") or found.get("details"):
            return True
    return False


def test_everything_in_the_abi_has_natspec() -> None:
    bare, seen = set(), 0
    for source in SOURCES:
        declared = set(
            re.findall(r"(?m)^(?:abstract )?(?:contract|library|interface) (\w+)", source.read_text())
        )
        found = set()
        for name, abi, output in compiled(source):
            found.add(name)
            for entry in abi:
                if entry["type"] in DOCUMENTED:
                    seen += 1
                    if not is_documented(entry, output):
                        bare.add(f"{entry['type']} {name}.{signature(entry)}")
        assert found == declared, f"{source.name} was not compiled as it is now: run `make contracts`"
    assert seen > 300
    assert not bare


def test_each_error_has_one_form() -> None:
    """Errors of the same name have the same arguments in the same order. Python reads an error's arguments by
    name, and an operator reads them by position.
    """
    forms: dict[str, set[str]] = {}
    for source in SOURCES:
        for _, abi, _ in compiled(source):
            for entry in abi:
                if entry["type"] == "error":
                    form = ", ".join(f"{item['type']} {item['name']}" for item in entry["inputs"])
                    forms.setdefault(entry["name"], set()).add(form)
    assert len(forms) > 60
    assert {name: found for name, found in forms.items() if len(found) > 1} == {}


# ---------------------------------------------------------------------------------------------- forwarding


def is_static(item: dict[str, Any]) -> bool:
    """Whether an ABI value is encoded in place in the calldata, without an offset that the sender chooses.
    Every array counts as having an offset.
    """
    if item["type"] in ("bytes", "string") or item["type"].endswith("]"):
        return False
    return all(is_static(part) for part in item.get("components", []))


def functions(name: str) -> dict[str, list[dict[str, Any]]]:
    """The parameters of each function of a contract, by the function's name."""
    (abi,) = [found for _, found, _ in compiled(REPOSITORY / "contracts" / "src" / f"{name}.sol")]
    return {entry["name"]: entry["inputs"] for entry in abi if entry["type"] == "function"}


def test_evidence_takes_what_the_game_takes() -> None:
    """Each function of Evidence takes the arguments of the game's function of the same name. The game
    forwards its own calldata from byte 68 on; the selector and the first two words come before that. The
    first two words may have other types in Evidence than in the game, but all later types must be equal. A
    value that both contracts read must be encoded without an offset, since an offset could point to those two
    words, which differ between the contracts.
    """
    game, evidence = functions("DisputeGame"), functions("Evidence")
    assert len(evidence) == 7
    for name, inputs in evidence.items():
        moves = game[name]
        assert [item["type"] for item in inputs[:2]] == ["bytes32", "bytes32"], name
        assert [item["type"] for item in moves[:2]] == ["uint256", "bytes32"], name
        rest, given = inputs[2:], moves[2:]
        assert [collapse_if_tuple(item) for item in rest] == [collapse_if_tuple(item) for item in given], name
        for mine, theirs in zip(rest, given, strict=True):
            if mine["name"] and theirs["name"]:
                assert is_static(mine), f"{name}: both read {mine['name']}"


def written(source: Path) -> dict[str, str]:
    """The text of each function of a source, by its name."""
    texts = re.split(r"(?m)^    (?=function )", source.read_text())[1:]
    return {text.split("(")[0].removeprefix("function "): text for text in texts}


def test_each_move_is_forwarded_to_the_function_of_its_name() -> None:
    """Each function of Evidence gets the calldata of the game's move of the same name, and of no other move.
    The move forwards its own calldata, so the move must be an external function.
    """
    forwarded = []
    for source in SOURCES:
        texts = written(source)
        for name, text in texts.items():
            # Selectors after == are only compared, not forwarded to.
            for target in re.findall(r"(?<!== )\bEvidence\.(\w+)\.selector", text):
                move = texts[target]
                assert re.match(r"[^{]*\bexternal\b", move), target
                if name != target:  # a helper of this move only
                    assert re.match(r"[^{]*\bprivate\b", text), name
                    assert {who for who, body in texts.items() if f"{name}(" in body} == {name, target}
                forwarded.append(target)
    assert sorted(forwarded) == sorted(functions("Evidence"))
