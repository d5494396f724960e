"""Turns each vector file into calls of `implementation.Implementation` with their expected answers.

A row of a file becomes one or more cases. For example, a path to a root becomes a call of `root_from_path`.
The formats are in README.md in this folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
Row = dict[str, Any]


class Case(NamedTuple):
    """One call: `method` with `arguments` gives `expected`, which is None if the call is refused. `note` says
    what the row is about if the row's number alone does not.
    """

    row: int
    method: str
    arguments: tuple[Any, ...]
    expected: Any
    note: str = ""


def load(name: str) -> dict[str, Any]:
    """A vector file as JSON values."""
    document: dict[str, Any] = json.loads((FOLDER / name).read_text())
    return document


def rows(table: dict[str, list[Any]]) -> list[Row]:
    """The rows of a table that is stored as columns. Strings that begin with `0x` become bytes."""
    return [
        {name: raw(entry) for name, entry in zip(table, row, strict=True)}
        for row in zip(*table.values(), strict=True)
    ]


def raw(entry: Any) -> Any:
    """A `0x` string as bytes, anything else unchanged."""
    return bytes.fromhex(entry[2:]) if isinstance(entry, str) and entry.startswith("0x") else entry


def cut(joined: bytes, width: int = 32) -> list[bytes]:
    """Split `joined` into words of `width` bytes."""
    return [joined[at : at + width] for at in range(0, len(joined), width)]


def numbers(joined: bytes) -> list[int]:
    """Split `joined` into numbers of four bytes each."""
    return [int.from_bytes(word, "big") for word in cut(joined, 4)]


def integers(table: dict[str, list[str]]) -> list[dict[str, int]]:
    """The rows of a table of decimal strings."""
    return [dict(zip(table, map(int, row), strict=True)) for row in zip(*table.values(), strict=True)]


def tensor_data(nbytes: int) -> bytes:
    """The bytes that trees.json and digests.json fill tensors with."""
    return bytes((7 * i + i // 256) % 256 for i in range(nbytes))


# ------------------------------------------------------------------ trees.json


def trees() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of trees.json."""
    file = load("trees.json")
    leaves = [raw(leaf) for leaf in file["leaves"]]

    def roots() -> Iterator[Case]:
        for n, root in enumerate(file["roots"]):
            yield Case(n, "root", (leaves[: n + 1],), raw(root))

    def paths() -> Iterator[Case]:
        for k, row in enumerate(rows(file["paths"])):
            n, lo, size, path = row["tree_size"], row["lo"], row["size"], cut(row["path"])
            yield Case(k, "node", (leaves[lo : lo + size],), row["node"])
            yield Case(k, "root", (leaves[:n],), row["root"])
            yield Case(k, "root_from_path", (n, lo, size, row["node"], path), row["root"])
            if size == 1:
                yield Case(k, "inclusion_path", (leaves[:n], lo), path)

    def consistency() -> Iterator[Case]:
        for k, row in enumerate(rows(file["consistency"])):
            old, new, proof = row["old_size"], row["new_size"], cut(row["proof"])
            yield Case(k, "consistency_proof", (leaves[:new], old), proof)
            yield Case(k, "consistent", (old, new, row["old_root"], row["new_root"], proof), True)

    def refused_consistency() -> Iterator[Case]:
        for k, row in enumerate(rows(file["refused_consistency"])):
            given = (row["old_size"], row["new_size"], row["old_root"], row["new_root"], cut(row["proof"]))
            yield Case(k, "consistent", given, False)

    def descendants() -> Iterator[Case]:
        for k, row in enumerate(rows(file["descendants"])):
            yield Case(k, "fold_descendants", (row["size"], cut(row["children"])), row["node"])

    def tensors() -> Iterator[Case]:
        for k, row in enumerate(rows(file["tensors"])):
            data = tensor_data(row["bytes"])
            yield Case(k, "tensor_root", (data,), row["root"])
            yield Case(k, "root", (cut(data, 1024),), row["root"])

    yield "roots", roots()
    yield "paths", paths()
    yield "refused_paths", _refused_paths(rows(file["refused_paths"]))
    yield "consistency", consistency()
    yield "refused_consistency", refused_consistency()
    yield "descendants", descendants()
    yield "tensors", tensors()


@dataclass(frozen=True, eq=False)
class Not:
    """An expected answer that equals every answer except `value`."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return bool(self.value != other)


def _refused_paths(table: list[Row]) -> Iterator[Case]:
    """Paths that are refused, or that lead to a root other than the row's."""
    for k, row in enumerate(table):
        given = (row["tree_size"], row["lo"], row["size"], row["node"], cut(row["path"]))
        yield Case(k, "root_from_path", given, Not(row["root"]))


# ------------------------------------------------------------------ numerics.json, elementary_errors.json


def numerics() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of numerics.json."""
    file = load("numerics.json")
    for section in ("primitives", "functions"):
        yield section, _operations(rows(file[section]))


def _operations(table: list[Row]) -> Iterator[Case]:
    for k, row in enumerate(table):
        operands = [(row[f"{x}_type"], row[x]) for x in "xyz" if row[x]]
        given = (row["name"], row["attributes"], operands, row["out_type"])
        note = f"{row['name']} of {', '.join('0x' + type_.hex() for type_, _ in operands) or 'nothing'}"
        yield Case(k, "evaluate", given, row["out"], note)
        if data := row["instruction"]:
            types = [type_ for type_, _ in operands]
            leaves = list(range(len(types)))
            opcode = int.from_bytes(data[:2], "big")
            fields = (opcode, len(types), leaves, types, [row["out_type"]], row["attributes"])
            yield Case(k, "decode_instruction", (data,), fields, note)


def elementary_errors() -> Iterator[tuple[str, Iterator[Case]]]:
    """The results of each elementary function at its worst inputs."""
    for name, table in load("elementary_errors.json")["functions"].items():
        pairs = zip(table["at"], table["result"], strict=True)
        yield (
            name,
            iter([Case(k, "elementary", (name, int(x, 16)), int(y, 16)) for k, (x, y) in enumerate(pairs)]),
        )


# ------------------------------------------------------------------ programs.json


def programs() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of programs.json."""
    file = load("programs.json")
    table, values = rows(file["programs"]), rows(file["values"])
    closures = [[row["data"] for row in table[: k + 1]] for k in range(len(table))]

    def instructions() -> Iterator[Case]:
        for k, row in enumerate(rows(file["instructions"])):
            leaves, data, program = numbers(row["operand_leaves"]), row["data"], table[row["program"]]
            types, results = _types(row["operand_types"]), _types(row["result_types"])
            fields = (row["opcode"], row["first"], leaves, types, results, row["attributes"])
            yield Case(k, "decode_instruction", (data,), fields)
            yield Case(k, "encode_instruction", (fields,), data)
            yield from _included(k, data, program["instructions"], row, program["instruction_root"])

    def opened() -> Iterator[Case]:
        for k, row in enumerate(table):
            due = (row["instructions"], row["trace_leaves"], row["instruction_root"])
            yield Case(k, "program_opening", (closures[k],), (*due, row["signature"], row["id"]))
            yield Case(k, "reencode_program", (closures[k],), row["data"])

    def runs() -> Iterator[Case]:
        for k, row in enumerate(rows(file["runs"])):
            closure = closures[row["program"]]
            own = [value for value in values if value["run"] == k]
            yield Case(k, "trace", (closure, row["inputs"]), [value["data"] for value in own])
            yield Case(k, "outputs", (closure, row["inputs"]), row["outputs"])
            yield Case(k, "leaf_types", (closure,), [value["type"] for value in own])
            yield Case(k, "root", (cut(row["value_roots"]),), row["trace_root"])

    def opened_values() -> Iterator[Case]:
        found = rows(file["runs"])
        for k, row in enumerate(values):
            yield Case(k, "tensor_root", (row["data"],), row["root"])
            run = found[row["run"]]
            size = len(run["value_roots"]) // 32
            yield from _included(k, row["root"], size, {**row, "number": row["leaf"]}, run["trace_root"])

    yield "instructions", instructions()
    yield (
        "refused_instructions",
        iter(
            [
                Case(k, "decode_instruction", (row["data"],), None, row["why"])
                for k, row in enumerate(rows(file["refused_instructions"]))
            ]
        ),
    )
    yield "programs", opened()
    yield "accepted_programs", _reencoded(rows(file["accepted_programs"]), accepted=True)
    yield "refused_programs", _reencoded(rows(file["refused_programs"]), accepted=False)
    yield "runs", runs()
    yield "values", opened_values()


def _reencoded(table: list[Row], *, accepted: bool) -> Iterator[Case]:
    """Programs, each with all programs that it calls. Accepted programs are encoded again to the same bytes."""
    for k, row in enumerate(table):
        closure = _counted(row["closure"])
        yield Case(k, "reencode_program", (closure,), closure[-1] if accepted else None, row["why"])


def _counted(joined: bytes) -> list[bytes]:
    """Split `joined` into items. In `joined`, each item is preceded by its length in four bytes."""
    found = []
    while joined:
        end = 4 + int.from_bytes(joined[:4], "big")
        found.append(joined[4:end])
        joined = joined[end:]
    return found


def _included(k: int, data: bytes, size: int, row: Row, root: bytes) -> Iterator[Case]:
    """Two cases about `data`, which is a leaf of a tree of `size` leaves. First, its leaf hash is the root of
    a tree that has only this leaf. Second, the row's path leads from the leaf hash to `root`; the row's
    `number` is the leaf's index.
    """
    leaf = sha256(b"\0" + data).digest()
    yield Case(k, "node", ([data],), leaf)
    yield Case(k, "root_from_path", (size, row["number"], 1, leaf, cut(row["path"])), root)


def _types(joined: bytes) -> list[bytes]:
    """Split `joined` into types. Each type is a code, a rank and four bytes for each dimension."""
    found = []
    while joined:
        length = 2 + 4 * joined[1]
        found.append(joined[:length])
        joined = joined[length:]
    return found


# ------------------------------------------------------------------ operations.json, bundles.json


def operations() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of operations.json."""
    file = load("operations.json")
    table = rows(file["programs"])

    def instructions() -> Iterator[Case]:
        for k, row in enumerate(rows(file["instructions"])):
            yield Case(k, "instruction_operations", (row["data"],), row["operations"])

    def programs() -> Iterator[Case]:
        for k, row in enumerate(table):
            closure = [table[number]["data"] for number in numbers(row["closure"])]
            due = (row["run"], row["path_bytes"], row["operations"])
            yield Case(k, "program_operations", (closure,), due)

    yield "instructions", instructions()
    yield "programs", programs()


def bundles() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of bundles.json. Every bundle comes with all blobs of the file."""
    file = load("bundles.json")
    files = rows(file["blobs"])
    given = [row["data"] for row in files]

    def accepted() -> Iterator[Case]:
        for k, row in enumerate(rows(file["bundles"])):
            manifest, *due = row.values()
            yield Case(k, "bundle_terms", (manifest, given), tuple(due))

    def blobs() -> Iterator[Case]:
        for k, row in enumerate(files):
            yield Case(k, "blob_path", (row["data"],), row["path"])

    def refused() -> Iterator[Case]:
        for k, row in enumerate(rows(file["refused_bundles"])):
            yield Case(k, "bundle_terms", (row["manifest"], given), None, row["why"])

    yield "bundles", accepted()
    yield "blobs", blobs()
    yield "refused_bundles", refused()


# ------------------------------------------------------------------ keys.json

METHODS_OF_KEYS = {
    "steps": "steps_key",
    "traces": "trace_key",
    "callees": "callee_key",
    "commitments": "priority_commitment",
    "seeds": "draw_seed",
}


def keys() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of keys.json. In each table, the last column has the results of a method, and the other
    columns have its arguments. Decimal strings are read as integers.
    """
    file = load("keys.json")
    for section, method in METHODS_OF_KEYS.items():
        table = [
            [int(entry) if isinstance(entry, str) else entry for entry in row.values()]
            for row in rows(file[section])
        ]
        yield section, iter([Case(k, method, tuple(row[:-1]), row[-1]) for k, row in enumerate(table)])


# ------------------------------------------------------------------ economics.json, bids.json


def economics() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of economics.json."""
    file = load("economics.json")

    def chances() -> Iterator[Case]:
        for k, row in enumerate(integers(file["chances"])):
            segments, each, false = row["segments"], row["segments_per_verifier"], row["false"]
            yield Case(k, "missed", (segments, each, false), row["missed"])
            given = (segments, each, row["verifiers"], row["honest"], false)
            yield Case(k, "escape", given, row["escape"])

    def stakes() -> Iterator[Case]:
        for k, row in enumerate(integers(file["stakes"])):
            *given, stake = row.values()
            yield Case(k, "least_stake", tuple(given), stake)

    yield "chances", chances()
    yield "stakes", stakes()


def bids() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of bids.json."""
    file = load("bids.json")
    for section, method in (("undercuts", "undercut"), ("biddings", "late_bids")):
        yield section, _last_column(integers(file[section]), method)


def _last_column(table: list[dict[str, int]], method: str) -> Iterator[Case]:
    """A case for each row. The last column has the result of `method`, and the other columns have its arguments."""
    for k, row in enumerate(table):
        *given, due = row.values()
        yield Case(k, method, tuple(given), due)


# ------------------------------------------------------------------ draws.json


def draws() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of draws.json. The draws of seats are columns at the file's top level; the picks of looks
    are the table `picks`, and the accounts of seats are the table `fills`.
    """
    file = load("draws.json")
    table = rows({name: column for name, column in file.items() if name not in ("picks", "fills")})

    def seats() -> Iterator[Case]:
        for k, row in enumerate(table):
            seed, count, most, each = (
                row[name] for name in ("seed", "seats", "segments", "segments_per_verifier")
            )
            yield Case(k, "uniform", (seed, row["slots"], count), numbers(row["slots_tried"]))
            found, due = numbers(row["seat_segments"]), min(each, most)
            for seat in range(count):
                own = found[seat * due : (seat + 1) * due]
                yield Case(k, "seat_segments", (seed, seat, most, each), own)

    def picks() -> Iterator[Case]:
        for k, row in enumerate(rows(file["picks"])):
            given = (row["seed"], _bits(row["candidates"]), row["look_chance"], row["room"])
            yield Case(k, "picks", given, _bits(row["picked"]))

    yield "draws", seats()

    def fills() -> Iterator[Case]:
        for k, row in enumerate(rows(file["fills"])):
            first = (row["chain"], row["board"], row["task"], row["root"], 1, row["word"])
            yield Case(k, "draw_seed", first, row["seed"])
            able = [bool(row["able"] >> number & 1) for number in range(len(row["levels"]))]
            given = (row["seed"], list(row["levels"]), able, row["least_level"], row["seats"])
            yield Case(k, "accounts", given, numbers(row["accounts"]))

    yield "picks", picks()
    yield "fills", fills()


def _bits(number: int) -> list[int]:
    return [bit for bit in range(32) if number >> bit & 1]


# ------------------------------------------------------------------ digests.json, walks.json

STATE = (4, 5_000, 9_216, 1_025)
"""The size in bytes of each tensor of a state. All states of digests.json have these sizes."""


def _state(first: int) -> list[bytes]:
    """The tensors of a state. Each holds the bytes of the pattern of `tensor_data` from byte `first` on."""
    return [tensor_data(first + nbytes)[first:] for nbytes in STATE]


def digests() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of digests.json."""
    file = load("digests.json")
    salt = raw(file["salt"])

    def seats() -> Iterator[Case]:
        for k, row in enumerate(rows(file["seats"])):
            chain, task, seat, stage = (int(row[name]) for name in ("chain", "task", "seat", "stage"))
            board, own = row["board"], row["salt"]
            yield Case(k, "secret", (row["key"], chain, board, task, seat, stage), row["secret"])
            yield Case(k, "salt", (chain, board, task, seat, row["account"], row["seed"], row["secret"]), own)
            yield Case(k, "salt_hash", (own,), row["salt_hash"])
            given = (chain, row["looks"], task, seat, row["informer"], own)
            yield Case(k, "informing_commitment", given, row["commitment"])

    def plain(section: str, method: str) -> tuple[str, Iterator[Case]]:
        cases = [
            Case(k, method, tuple(list(row.values())[:-1]), list(row.values())[-1])
            for k, row in enumerate(rows(file[section]))
        ]
        return section, iter(cases)

    def salted() -> Iterator[Case]:
        for k, row in enumerate(rows(file["leaves"])):
            yield Case(k, "salted_leaf", (salt, row["chunk"]), row["leaf"])

    def tensors() -> Iterator[Case]:
        for k, row in enumerate(rows(file["tensors"])):
            given = (salt, row["thinning"], row["step"], tensor_data(row["bytes"]))
            yield Case(k, "salted_tensor_root", given, row["root"])

    def states() -> Iterator[Case]:
        for k, row in enumerate(rows(file["states"])):
            step = row["step"]
            yield Case(k, "salted_state_root", (salt, row["thinning"], step, _state(step)), row["root"])

    def seat_digests() -> Iterator[Case]:
        for k, row in enumerate(rows(file["digests"])):
            yield Case(k, "seat_digest", (cut(row["segments"]), row["result"]), row["digest"])

    def accusations() -> Iterator[Case]:
        for k, row in enumerate(rows(file["accusations"])):
            place = (row["step"], row["tensor"], row["turns"], row["depth"])
            yield Case(k, "accusation_word", (place, row["leaf"], row["segment_root"]), row["word"])

    yield "seats", seats()
    yield plain("attestations", "attestation_word")
    yield "leaves", salted()
    yield "tensors", tensors()
    yield "states", states()
    yield "digests", seat_digests()
    yield plain("looks", "look_digest")
    yield plain("reveals", "reveal_word")
    yield "accusations", accusations()
    yield "openings", _openings(salt, rows(file["openings"]))


def _openings(salt: bytes, table: list[Row]) -> Iterator[Case]:
    """Cases of chunks with their paths through the trees of chunks, tensors, steps and segments. A chunk of the
    result has no path through a tree of steps, because the result is in none.
    """
    steps, segments = 5, 3
    for k, row in enumerate(table):
        segment, step, tensor, chunk = (row[name] for name in ("segment", "step", "tensor", "chunk"))
        trees = list(zip(numbers(row["turns"]), numbers(row["depths"]), strict=True))
        count = -(-STATE[tensor] // 1024)
        sizes = [(count, chunk), (len(STATE), tensor), (steps + 1, step), (segments + 1, segment)]
        if segment == segments:
            del sizes[2]
        for size, tree in zip(sizes, trees, strict=True):
            yield Case(k, "turns", size, tree)
        held = segment == segments or (trees[0][0] + step) % row["thinning"] == 0
        if held:
            yield Case(k, "salted_leaf", (salt, row["data"]), row["leaf"])
        leaf = row["leaf"] if held else bytes(32)
        yield Case(k, "fold", (leaf, trees, cut(row["path"])), row["digest"])


def walks() -> Iterator[tuple[str, Iterator[Case]]]:
    """The rows of walks.json."""

    def cases() -> Iterator[Case]:
        for k, row in enumerate(rows(load("walks.json"))):
            count, walk, chunk = row["chunks"], row["walk"], row["chunk"]
            yield Case(k, "chunk_of_walk", (count, walk), chunk)
            yield Case(k, "turns", (count, chunk), (row["turns"], row["depth"]))
            yield Case(k, "walk_to", (count, chunk, walk), walk)
            below = (1 << 32 - row["depth"]) - 1
            rest = walk * 2_654_435_761 % 2**32
            yield Case(k, "walk_to", (count, chunk, rest), walk & ~below | rest & below)

    yield "walks", cases()


# ------------------------------------------------------------------ beacon.json


def beacon() -> Iterator[tuple[str, Iterator[Case]]]:
    """The sections of beacon.json."""
    file = load("beacon.json")

    def words(joined: bytes) -> list[int]:
        return [int.from_bytes(word, "big") for word in cut(joined)]

    def maps() -> Iterator[Case]:
        for k, row in enumerate(rows(file["maps"])):
            (u,) = words(row["u"])
            yield Case(k, "map_to_point", (u,), tuple(words(row["point"])))
            yield Case(k, "map_hints", (u,), tuple(words(row["hints"])))

    def rounds() -> Iterator[Case]:
        table = rows(file["rounds"])
        for k, row in enumerate(table):
            number = int(row["round"])
            yield Case(k, "round_point", (number,), tuple(words(row["point"])))
            yield Case(k, "round_hints", (number,), words(row["hints"]))
            yield Case(k, "signed", (row["key"], number, row["signature"]), True)
            for why, key, signature in (
                _unsigned(row, table[k - 1]) if k < 2 else ()
            ):  # a pairing takes a while
                yield Case(k, "signed", (key, number, signature), False, why)
            yield Case(k, "beacon_word", (row["signature"],), row["word"])

    yield "maps", maps()
    yield "rounds", rounds()


MODULUS = 21888242871839275222246405745257275088696311157297823662689037894645226208583
"""The modulus of the field of BN254."""


def _unsigned(row: Row, other: Row) -> Iterator[tuple[str, bytes, bytes]]:
    """Keys and signatures for which the row's round does not count as signed, each with the reason. `other`
    is another round.
    """
    key, signature = row["key"], row["signature"]
    x, y = (int.from_bytes(word, "big") for word in cut(signature))

    def point(x: int, y: int) -> bytes:
        return x.to_bytes(32, "big") + y.to_bytes(32, "big")

    yield "the signature of another round", key, other["signature"]
    yield "the opposite point", key, point(x, MODULUS - y)
    yield "x is not below P", key, point(x + MODULUS, y)
    yield "y is not below P", key, point(x, y + MODULUS)
    yield "not on the curve", key, point(x, y ^ 1)
    if other["key"] != key:
        yield "another key", other["key"], signature


FILES: dict[str, Callable[[], Iterator[tuple[str, Iterator[Case]]]]] = {
    "trees.json": trees,
    "numerics.json": numerics,
    "elementary_errors.json": elementary_errors,
    "programs.json": programs,
    "operations.json": operations,
    "bundles.json": bundles,
    "keys.json": keys,
    "economics.json": economics,
    "bids.json": bids,
    "draws.json": draws,
    "digests.json": digests,
    "walks.json": walks,
    "beacon.json": beacon,
}
"""The function that reads each vector file. Two are not read, because no implementation needs them: gas.json
measures the contracts, and databases/ has files of our nodes.
"""
