"""This repository's Python package as an `implementation.Implementation`."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from protocol.beacon import bn254
from protocol.commitments import BlobStore, ProofError, Tree, fold_descendants, tensor_root
from protocol.commitments.digests import Digester, leaf, seat_digest, turns
from protocol.commitments.hashing import leaf_hash, node_hash
from protocol.commitments.opened_chunks import Place
from protocol.commitments.proofs import root_from_path, verify_consistency
from protocol.commitments.walks import chunk_at, walk_to
from protocol.dispute import keys
from protocol.numerics.types import from_bytes, to_bytes
from protocol.program import (
    EncodingError,
    Instruction,
    Op,
    Operand,
    Program,
    ProgramError,
    TensorType,
    check,
    decode_closure,
    trace,
)
from protocol.program.attributes import encode_index
from protocol.program.cost import DISPATCH, cost, run_operations
from protocol.program.trace import Trace
from protocol.tasks import draws
from protocol.tasks.bidding import ladder, least_undercut
from protocol.tasks.bundles import BundleError, committed_terms, load_bundle
from protocol.tasks.economics import Audit, escape_chance, minimum_stake, missed_chance
from sim.mechanism.draw import NOBODY
from sim.replay.drawing import found
from tests import bls
from tests.vectors import implementation
from tests.vectors.elementary_errors import kernel
from tests.vectors.torch_cases import Call, parse_type, replay


class Package:
    """The package's functions under the names of the interface."""

    # -------------------------------------------------------------- trees

    def root(self, leaves: Sequence[bytes]) -> bytes:
        return Tree.from_leaves(leaves).root

    def node(self, leaves: Sequence[bytes]) -> bytes:
        return Tree.from_leaves(leaves).root

    def inclusion_path(self, leaves: Sequence[bytes], index: int) -> list[bytes]:
        return Tree.from_leaves(leaves).inclusion_path(index)

    def root_from_path(
        self, tree_size: int, lo: int, size: int, node: bytes, path: Sequence[bytes]
    ) -> bytes | None:
        try:
            return root_from_path(tree_size, lo, size, node, path)
        except ProofError:
            return None

    def consistency_proof(self, leaves: Sequence[bytes], old_size: int) -> list[bytes]:
        return Tree.from_leaves(leaves).consistency_proof(old_size)

    def consistent(
        self, old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
    ) -> bool:
        try:
            verify_consistency(old_size, new_size, old_root, new_root, proof)
        except ProofError:
            return False
        return True

    def fold_descendants(self, size: int, descendants: Sequence[bytes]) -> bytes:
        return fold_descendants(size, 4, descendants)

    def tensor_root(self, data: bytes) -> bytes:
        return tensor_root(data)

    # -------------------------------------------------------------- numbers

    def evaluate(
        self, name: str, attributes: bytes, operands: Sequence[tuple[bytes, bytes]], result: bytes
    ) -> bytes:
        xs, types = [], []
        for encoded, data in operands:
            dtype, shape = parse_type(encoded)
            xs.append(from_bytes(data, dtype, shape))
            types.append(dtype)
        out, shape = parse_type(result)
        found = replay(name, Call(xs, types, out, shape, attributes))
        if list(found.shape) != shape:
            raise ValueError(f"expected the shape {shape}, got {list(found.shape)}")
        return to_bytes(found, out)

    def elementary(self, name: str, bits: int) -> int:
        result = kernel(name)(torch.from_numpy(np.array([bits], np.uint32).view(np.float32)))
        return int(result.view(torch.int32).item()) & 0xFFFFFFFF

    # -------------------------------------------------------------- programs

    def decode_instruction(self, data: bytes) -> implementation.Fields | None:
        try:
            found = Instruction.decode(data)
        except EncodingError:
            return None
        leaves = [operand.leaf for operand in found.operands]
        types = [operand.type.encode() for operand in found.operands]
        results = [result.encode() for result in found.results]
        return int(found.op), found.first, leaves, types, results, found.attributes

    def encode_instruction(self, fields: implementation.Fields) -> bytes:
        opcode, first, leaves, types, results, attributes = fields
        operands = [Operand(at, TensorType.decode(type_)) for at, type_ in zip(leaves, types, strict=True)]
        declared = tuple(map(TensorType.decode, results))
        return Instruction(Op(opcode), first, tuple(operands), declared, attributes).encode()

    def reencode_program(self, closure: Sequence[bytes]) -> bytes | None:
        try:
            program = decode_closure(closure)
            check(program)
        except ProgramError:
            return None
        return program.encode()

    def program_opening(self, closure: Sequence[bytes]) -> tuple[int, int, bytes, bytes, bytes]:
        program = decode_closure(closure)
        opening = program.opening
        counts = len(program.instructions), program.trace_leaves
        if counts != (opening.instructions, opening.trace_leaves) or opening.id != program.id:
            raise ValueError(f"expected an opening of the program's own, got {opening}")
        return *counts, opening.root, program.signature, program.id

    def trace(self, closure: Sequence[bytes], inputs: bytes) -> list[bytes]:
        run = self._run(decode_closure(closure), inputs)
        values = [bytes(run.value(at)) for at in range(run.program.trace_leaves)]
        if [tensor_root(value) for value in values] != list(run.roots):
            raise ValueError("expected the roots of a trace to be those of its values")
        return values

    def outputs(self, closure: Sequence[bytes], inputs: bytes) -> bytes:
        run = self._run(decode_closure(closure), inputs)
        types = [type_.dtype for type_ in run.program.outputs]
        return b"".join(to_bytes(value, dtype) for value, dtype in zip(run.outputs, types, strict=True))

    def leaf_types(self, closure: Sequence[bytes]) -> list[bytes]:
        program = decode_closure(closure)
        return [program.leaf_type(at).encode() for at in range(program.trace_leaves)]

    def _run(self, program: Program, joined: bytes) -> Trace:
        inputs, at = [], 0
        for type_ in program.inputs:
            inputs.append(from_bytes(joined[at : at + type_.nbytes], type_.dtype, type_.shape))
            at += type_.nbytes
        return trace(program, inputs)

    # -------------------------------------------------------------- operations and bundles

    def instruction_operations(self, data: bytes) -> int:
        """The number of operations of an instruction. The package counts only the operations of whole
        programs. So this method makes a program of the instruction and one input for each operand. It counts
        the program's operations and subtracts those of the inputs.
        """
        found = Instruction.decode(data)
        types, count = found.operand_types, len(found.operands)
        given = [
            Instruction(Op.INPUT, leaf, (), (type_,), encode_index(leaf)) for leaf, type_ in enumerate(types)
        ]
        operands = tuple(Operand(leaf, type_) for leaf, type_ in enumerate(types))
        moved = Instruction(found.op, count, operands, found.results, found.attributes)
        return run_operations(Program(types, (), (*given, moved), {}, "one")) - DISPATCH * count

    def program_operations(self, closure: Sequence[bytes]) -> tuple[int, int, int]:
        program = decode_closure(closure)
        found = cost(program)
        return run_operations(program), found.path_bytes, found.operations

    def blob_path(self, data: bytes) -> str:
        with TemporaryDirectory() as folder:
            BlobStore(f"{folder}/blobs").put(data)
            (path,) = [path for path in Path(folder).rglob("*") if path.is_file()]
            return path.relative_to(folder).as_posix()

    def bundle_terms(
        self, manifest: bytes, blobs: Sequence[bytes]
    ) -> tuple[bytes, bytes, bytes, bytes, int, int, int, int, int] | None:
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "manifest.json").write_bytes(manifest)
            store = BlobStore(folder / "blobs")
            for data in blobs:
                store.put(data)
            try:
                found = committed_terms(load_bundle(folder))
            except BundleError:
                return None
        return (
            sha256(manifest).digest(),
            found["program_id"],
            found["constants_root"],
            found["initial_state"],
            found["constants"],
            found["state_tensors"],
            found["step_operations"],
            found["state_bytes"],
            found["arithmetic"],
        )

    # -------------------------------------------------------------- keys

    def steps_key(self, task: int, segment: int) -> bytes:
        return keys.steps_key(task, segment)

    def trace_key(self, task: int, segment: int, step: int, before: bytes, after: bytes) -> bytes:
        return keys.trace_key(task, segment, step, before, after)

    def callee_key(self, caller: bytes, call: bytes) -> bytes:
        return keys.callee_key(caller, call)

    def priority_commitment(
        self, chain: int, contract: bytes, task: int, segment: int, challenger: bytes, salt: bytes
    ) -> bytes:
        return keys.priority_commitment(chain, _address(contract), task, segment, _address(challenger), salt)

    # -------------------------------------------------------------- draws

    def draw_seed(self, chain: int, board: bytes, task: int, root: bytes, draw: int, word: bytes) -> bytes:
        return draws.seed_of(chain, _address(board), task, root, draw, word)

    def uniform(self, seed: bytes, bound: int, count: int) -> list[int]:
        stream = draws.words(seed)
        return [draws.below(stream, bound) for _ in range(count)]

    def seat_segments(self, seed: bytes, seat: int, segments: int, each: int) -> list[int]:
        return draws.segments_of(seed, seat, segments, each)

    def picks(self, seed: bytes, candidates: Sequence[int], look_chance: int, room: int) -> list[int]:
        return draws.picks(seed, candidates, look_chance, room)

    def accounts(
        self, seed: bytes, levels: Sequence[int], able: Sequence[bool], least_level: int, seats: int
    ) -> list[int]:
        covering = [number for number, level in enumerate(levels) if level >= least_level]
        bound = [place for place, number in enumerate(covering) if not able[number]]
        drawn = found(draws.words(seed), [1 << levels[number] for number in covering], seats, bound)
        return [0 if place == NOBODY else covering[place] + 1 for place in drawn]

    # -------------------------------------------------------------- digests

    def secret(self, key: bytes, chain: int, board: bytes, task: int, seat: int, stage: int) -> bytes:
        return keys.seat_secret(key, chain, _address(board), task, seat, stage)

    def salt(
        self, chain: int, board: bytes, task: int, seat: int, account: bytes, seed: bytes, secret: bytes
    ) -> bytes:
        return keys.seat_salt(chain, _address(board), task, seat, _address(account), seed, secret)

    def salt_hash(self, salt: bytes) -> bytes:
        return keys.salt_hash(salt)

    def informing_commitment(
        self, chain: int, looks: bytes, task: int, seat: int, informer: bytes, salt: bytes
    ) -> bytes:
        return keys.informing_commitment(chain, _address(looks), task, seat, _address(informer), salt)

    def attestation_word(self, digest: bytes, salt_hash: bytes) -> bytes:
        return keys.attestation_word(digest, salt_hash)

    def salted_leaf(self, salt: bytes, chunk: bytes) -> bytes:
        return leaf(salt, chunk)

    def salted_tensor_root(self, salt: bytes, thinning: int, step: int, data: bytes) -> bytes:
        return Digester(salt, thinning).tensor_root(data, step)

    def salted_state_root(self, salt: bytes, thinning: int, step: int, tensors: Sequence[bytes]) -> bytes:
        return Digester(salt, thinning).state_root(tensors, step)

    def seat_digest(self, segments: Sequence[bytes], result: bytes) -> bytes:
        return seat_digest(segments, result)

    def look_digest(self, segment: bytes) -> bytes:
        return seat_digest([segment])

    def reveal_word(self, salt: bytes, segment_root: bytes) -> bytes:
        return keys.revealed_word(salt, segment_root)

    def accusation_word(self, place: implementation.Place, leaf: bytes, segment_root: bytes) -> bytes:
        return keys.accusation_word(Place(*place), leaf, segment_root)

    def turns(self, count: int, index: int) -> tuple[int, int]:
        return turns(count, index)

    def fold(self, leaf: bytes, trees: Sequence[tuple[int, int]], path: Sequence[bytes]) -> bytes:
        siblings, node = iter(path), leaf
        for number, (sides, depth) in enumerate(trees):
            node = leaf_hash(node) if number else node
            for i in range(depth):
                sibling = next(siblings)
                node = node_hash(sibling, node) if sides >> i & 1 else node_hash(node, sibling)
        if list(siblings):
            raise ValueError("expected as many siblings as the trees have levels")
        return node

    def chunk_of_walk(self, count: int, walk: int) -> int:
        return chunk_at(count, walk)

    def walk_to(self, count: int, index: int, rest: int) -> int:
        return walk_to(count, index, rest)

    # -------------------------------------------------------------- market

    def undercut(self, best: int, overtime: int, extension: int) -> int:
        return least_undercut(best, overtime // extension)

    def late_bids(self, budget: int) -> int:
        return len(list(ladder(budget, late=True)))

    def missed(self, segments: int, each: int, false: int) -> int:
        return missed_chance(segments, false, each)

    def escape(self, segments: int, each: int, verifiers: int, honest: int, false: int) -> int:
        return escape_chance(Audit(segments, each, verifiers, honest), false)

    def least_stake(
        self, segments: int, each: int, verifiers: int, honest: int, price: int, gain: int
    ) -> int:
        return minimum_stake(Audit(segments, each, verifiers, honest), price, gain)

    # -------------------------------------------------------------- beacon

    def map_to_point(self, u: int) -> tuple[int, int]:
        x, y = bn254.map_to_point(u)
        return x, y

    def map_hints(self, u: int) -> tuple[int, int, int]:
        inverse, root, other = bn254.map_hints(u)
        return inverse, root, other

    def round_point(self, number: int) -> tuple[int, int]:
        x, y = bn254.hash_to_point(bn254.round_message(number))
        return x, y

    def round_hints(self, number: int) -> list[int]:
        return [value for hints in bn254.hints(bn254.round_message(number)) for value in hints]

    def signed(self, key: bytes, number: int, signature: bytes) -> bool:
        return bls.verify(key, bn254.round_message(number), signature)

    def beacon_word(self, signature: bytes) -> bytes:
        return bn254.word(signature)


def _address(data: bytes) -> str:
    return "0x" + data.hex()


_: implementation.Implementation = Package()
