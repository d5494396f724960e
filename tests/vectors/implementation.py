"""The interface through which `conformance` asks an implementation of docs/spec for its answers.

Arguments are integers, bytes, names of operations, and sequences of these; results are integers, bytes,
text, booleans, and lists and tuples of these. None means that the implementation refuses. A hash or a word has
32 bytes, an address 20. A type is encoded as in encoding.md section 1; a tensor is its canonical bytes. An
implementation may leave methods out: the runner reports them as not implemented.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Fields = tuple[int, int, list[int], list[bytes], list[bytes], bytes]
"""An instruction: opcode, first, operand leaves, operand types, result types, attributes."""
Place = tuple[int, int, int, int]
"""A chunk that an accusation names: step, tensor, turns, depth."""


class Trees(Protocol):
    """encoding.md section 2."""

    def root(self, leaves: Sequence[bytes]) -> bytes:
        """Root of the tree over leaf data."""

    def inclusion_path(self, leaves: Sequence[bytes], index: int) -> list[bytes]:
        """Siblings of leaf `index`, bottom first."""

    def node(self, leaves: Sequence[bytes]) -> bytes:
        """Hash of a node that covers exactly these leaves: the root of a tree of them alone."""

    def root_from_path(
        self, tree_size: int, lo: int, size: int, node: bytes, path: Sequence[bytes]
    ) -> bytes | None:
        """The root that a node's path leads to; None if the node or the path's length is refused."""

    def consistency_proof(self, leaves: Sequence[bytes], old_size: int) -> list[bytes]:
        """The proof from the tree of the first `old_size` leaves to the tree of all."""

    def consistent(
        self, old_size: int, new_size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]
    ) -> bool:
        """Whether a consistency proof is accepted."""

    def fold_descendants(self, size: int, descendants: Sequence[bytes]) -> bytes:
        """The hash of a node that covers `size` leaves, computed from the hashes of its descendants four
        levels below.
        """

    def tensor_root(self, data: bytes) -> bytes:
        """Root of a tensor's chunks."""


class Numbers(Protocol):
    """arithmetic.md."""

    def evaluate(
        self, name: str, attributes: bytes, operands: Sequence[tuple[bytes, bytes]], result: bytes
    ) -> bytes:
        """Canonical bytes of an operation's result. `name` is the name of a primitive, or of one of the
        functions in numerics.json. Operands are (type, data); NaN and bools in the data need not be
        canonical. `result` is the type of the result.
        """

    def elementary(self, name: str, bits: int) -> int:
        """Bits of an elementary function's result, from the bits of its f32 argument."""


class Programs(Protocol):
    """encoding.md sections 3 to 5. A program comes with all programs that it calls, callees first."""

    def decode_instruction(self, data: bytes) -> Fields | None:
        """The fields of an instruction; None if decoding refuses the bytes. `check` is not applied."""

    def encode_instruction(self, fields: Fields) -> bytes:
        """The bytes of an instruction."""

    def reencode_program(self, closure: Sequence[bytes]) -> bytes | None:
        """The last program of the list, decoded, checked and encoded again; None if decoding or `check` refuses."""

    def program_opening(self, closure: Sequence[bytes]) -> tuple[int, int, bytes, bytes, bytes]:
        """The last program of the list: its numbers of instructions and of trace leaves, its instruction
        root, signature and id.
        """

    def trace(self, closure: Sequence[bytes], inputs: bytes) -> list[bytes]:
        """Every value of one run of the last program, by trace leaf; `inputs` are the joined canonical bytes."""

    def outputs(self, closure: Sequence[bytes], inputs: bytes) -> bytes:
        """The joined canonical bytes of the run's outputs."""

    def leaf_types(self, closure: Sequence[bytes]) -> list[bytes]:
        """The type of every trace leaf."""


class Bundles(Protocol):
    """encoding.md sections 8 and 9."""

    def instruction_operations(self, data: bytes) -> int:
        """The number of operations of an instruction that is not a call. It includes the 2^14 that every
        instruction counts.
        """

    def program_operations(self, closure: Sequence[bytes]) -> tuple[int, int, int]:
        """Three numbers for the last program of the list: the operations of one run, the bytes of the
        program's longest path of frames, and the operations that terms state for the program.
        """

    def blob_path(self, data: bytes) -> str:
        """The path of a blob below the address of its bundle."""

    def bundle_terms(
        self, manifest: bytes, blobs: Sequence[bytes]
    ) -> tuple[bytes, bytes, bytes, bytes, int, int, int, int, int] | None:
        """What the terms say of a bundle: bundle hash, program id, root of the constants, root of the initial
        state, the numbers of constants and of the state's tensors, the operations of a step, the bytes of a
        state, and the arithmetic's version, which is 1. None if the bundle is refused. `blobs` are the
        bundle's blobs, and may include some that the manifest does not name.
        """


class Keys(Protocol):
    """encoding.md section 5."""

    def steps_key(self, task: int, segment: int) -> bytes:
        """The key of a segment's step tree."""

    def trace_key(self, task: int, segment: int, step: int, before: bytes, after: bytes) -> bytes:
        """The key of a step's trace. `before` and `after` are the roots of the states before and after the step."""

    def callee_key(self, caller: bytes, call: bytes) -> bytes:
        """The key of the trace of a call, from the caller's key and the call's bytes."""

    def priority_commitment(
        self, chain: int, contract: bytes, task: int, segment: int, challenger: bytes, salt: bytes
    ) -> bytes:
        """A challenger's commitment, which gives it priority."""


class Draws(Protocol):
    """audit.md section 2."""

    def draw_seed(self, chain: int, board: bytes, task: int, root: bytes, draw: int, word: bytes) -> bytes:
        """The seed of a task's draw; `root` is the segment tree's, `word` the beacon's."""

    def uniform(self, seed: bytes, bound: int, count: int) -> list[int]:
        """The first `count` uniform numbers below `bound` from a seed's words."""

    def seat_segments(self, seed: bytes, seat: int, segments: int, each: int) -> list[int]:
        """The segments of a seat, in order; `seed` is that of the task's first draw."""

    def picks(self, seed: bytes, candidates: Sequence[int], look_chance: int, room: int) -> list[int]:
        """The candidates that a draw of looks picks, at most `room` of them."""

    def accounts(
        self, seed: bytes, levels: Sequence[int], able: Sequence[bool], least_level: int, seats: int
    ) -> list[int]:
        """The number of the account in each seat of a draw, counted from 1; 0 if the seat stays empty. The
        accounts have registered in the order of `levels`, `able` says which can be drawn, and the stakes of
        levels from `least_level` on cover the seat's lock.
        """


class Digests(Protocol):
    """audit.md sections 4 to 7."""

    def secret(self, key: bytes, chain: int, board: bytes, task: int, seat: int, stage: int) -> bytes:
        """A seat's secret."""

    def salt(
        self, chain: int, board: bytes, task: int, seat: int, account: bytes, seed: bytes, secret: bytes
    ) -> bytes:
        """A seat's salt."""

    def salt_hash(self, salt: bytes) -> bytes:
        """The hash of a seat's salt; the seat shows the hash when it attests."""

    def informing_commitment(
        self, chain: int, looks: bytes, task: int, seat: int, informer: bytes, salt: bytes
    ) -> bytes:
        """The commitment that an informer sends first."""

    def attestation_word(self, digest: bytes, salt_hash: bytes) -> bytes:
        """The word that the board keeps of an attestation."""

    def salted_leaf(self, salt: bytes, chunk: bytes) -> bytes:
        """The leaf of a chunk under a salt."""

    def salted_tensor_root(self, salt: bytes, thinning: int, step: int, data: bytes) -> bytes:
        """Root of a tensor in state `step` of a segment."""

    def salted_state_root(self, salt: bytes, thinning: int, step: int, tensors: Sequence[bytes]) -> bytes:
        """Root of state `step` of a segment."""

    def seat_digest(self, segments: Sequence[bytes], result: bytes) -> bytes:
        """The digest of a seat from the roots of its step trees and of the result."""

    def look_digest(self, segment: bytes) -> bytes:
        """The digest of a look from the root of its step tree."""

    def reveal_word(self, salt: bytes, segment_root: bytes) -> bytes:
        """The word that is kept of a reveal."""

    def accusation_word(self, place: Place, leaf: bytes, segment_root: bytes) -> bytes:
        """The word that is kept of an accusation."""

    def turns(self, count: int, index: int) -> tuple[int, int]:
        """Turns and depth of a leaf in a tree of `count` leaves."""

    def fold(self, leaf: bytes, trees: Sequence[tuple[int, int]], path: Sequence[bytes]) -> bytes:
        """The root above a leaf, through several trees: the root of each tree is leaf data of the next.
        `trees` has (turns, depth) for each tree, `path` the siblings in all of them.
        """

    def chunk_of_walk(self, count: int, walk: int) -> int:
        """The chunk at which a walk ends."""

    def walk_to(self, count: int, index: int, rest: int) -> int:
        """The walk to chunk `index` in a tensor of `count` chunks. The low bits, which the walk does not use,
        are equal to those of `rest`, a whole uint32.
        """


class Market(Protocol):
    """dispute.md section 2 and audit.md section 9."""

    def undercut(self, best: int, overtime: int, extension: int) -> int:
        """The least undercut of a bid."""

    def late_bids(self, budget: int) -> int:
        """The number of bids if the first asks for the budget, and all others are as high and as late as allowed."""

    def missed(self, segments: int, each: int, false: int) -> int:
        """The chance that a seat has none of the false segments, in units of 10^-18, rounded up. `false` is
        the number of false segments.
        """

    def escape(self, segments: int, each: int, verifiers: int, honest: int, false: int) -> int:
        """The chance that no honest seat has a false segment, rounded up. `false` is the number of false
        segments. The result and `honest` are in units of 10^-18.
        """

    def least_stake(
        self, segments: int, each: int, verifiers: int, honest: int, price: int, gain: int
    ) -> int:
        """The least stake at which cheating does not pay, without margin."""


class Beacon(Protocol):
    """audit.md section 1. A point is (x, y)."""

    def map_to_point(self, u: int) -> tuple[int, int]:
        """The point of G1 that a field element maps to."""

    def map_hints(self, u: int) -> tuple[int, int, int]:
        """The three hints of a field element. They are called `inverse`, `root` and `other`."""

    def round_point(self, number: int) -> tuple[int, int]:
        """The point that a round's message hashes to."""

    def round_hints(self, number: int) -> list[int]:
        """The hints of the message's two field elements."""

    def signed(self, key: bytes, number: int, signature: bytes) -> bool:
        """Whether the key has signed the round."""

    def beacon_word(self, signature: bytes) -> bytes:
        """The word of a signed round."""


class Implementation(Trees, Numbers, Programs, Bundles, Keys, Draws, Digests, Market, Beacon, Protocol):
    """All parts of the specification that have vectors."""
