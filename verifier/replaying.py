"""Replays one segment and compares it with what the solver committed (audit.md section 3).

The finding is `Equal` or `Different`. If the solver's roots or the state before the segment are not on this
machine, the task is run from its initial state. `Different` names the first segment that was found false: the
replayed one, or the first whose end differs between our run and the solver's roots. It names none if the
solver's roots are not known. Every state of a replayed segment is hashed for each seat that must attest it,
under the seat's salt (audit.md section 4).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from random import SystemRandom

import torch

from protocol.commitments import chunk_count, segment_tree, state_root, step_tree
from protocol.commitments.digests import Digester, index_of
from protocol.commitments.opened_chunks import Opening, Place, open_chunk_of
from protocol.execution.replay import Executor, first_step, run_steps
from protocol.program.step import State, StepProgram
from verifier.errors import TwoReplays, Unserved
from verifier.findings import Committed, Different, Equal, Finding
from verifier.solver_client import CheckpointProvider
from verifier.states import States

Others = Callable[[], Iterable[CheckpointProvider]]
"""Returns further sources of a task's checkpoints, besides its solver."""


class Replayer:
    """Requests the data that replays of one task need, and runs these replays. Any thread may do either
    without waiting for another thread.

    The solver is asked first. Once it has failed to serve something, other sources are asked first: those
    that have wasted the least time, in random order if they have wasted equally much. A source that served
    something other than the commitment is asked only when no other is left.
    """

    def __init__(
        self,
        program: StepProgram,
        executor: Executor,
        segment_steps: int,
        states: States,
        provider: CheckpointProvider,
        others: Others = tuple,
    ) -> None:
        self._program = program
        self._executor = executor
        self._segment_steps = segment_steps
        self._states = states
        self._provider = provider
        self._others = others
        self._revealed: dict[Committed, Sequence[bytes]] = {}
        self._read: set[Committed] = set()
        """Commitments whose roots were looked up on disk."""
        self._withheld: set[Committed] = set()
        self._asked: dict[Committed, float] = {}
        """When something of a commitment was first requested."""
        self._in_vain: Counter[int] = Counter()
        """How often the state before a segment was requested but not received, by segment."""
        self._cost: dict[int, float] = {}
        """Seconds that each source wasted, by the source's `id`; infinite if it served something other
        than the commitment.
        """

    def is_here(self, committed: Committed, segment: int) -> bool:
        """Whether the solver's roots for this segment, and the state before it, are on this machine."""
        roots = self._known(committed)
        return roots is not None and self._states.has(segment - 1, roots[segment - 1])

    def has_withheld(self, committed: Committed) -> bool:
        """Whether something requested of a commitment was served by no source."""
        return committed in self._withheld

    def awaited(self, committed: Committed) -> float:
        """Seconds since something of a commitment was first requested; 0 if nothing was."""
        since = self._asked.get(committed)
        return 0.0 if since is None else time.monotonic() - since

    def ask(self, committed: Committed, segments: Sequence[int], seconds: float = math.inf) -> None:
        """Request from the solver, and from jurors that voted yes, what these segments still need. Segments
        with the fewest failed requests come first; after `seconds`, nothing is requested for further
        segments. Raises Unserved if something was not served.
        """
        begun = time.monotonic()
        self._asked.setdefault(committed, begun)
        roots = self._segment_roots(committed)
        missing: list[int] = []
        for asked, segment in enumerate(sorted(segments, key=lambda segment: self._in_vain[segment])):
            if asked and time.monotonic() - begun > seconds:
                break
            if roots is None or not self._ask(segment - 1, roots):
                self._withheld.add(committed)  # at once, so that a claim does not wait for the rest
                self._in_vain[segment] += 1
                missing.append(segment - 1)
        if missing:
            raise Unserved(
                "what the solver serves",
                expected=f"checkpoints {', '.join(map(str, missing))}",
                got="no roots that it has committed to" if roots is None else "not all of them",
                remedy="it is asked again; a run from the start tells meanwhile, or a jury",
            )

    def audit(self, committed: Committed, segment: int, digesters: Sequence[Digester] = ()) -> Finding | None:
        """Check what the solver committed for a segment (1 … size - 1), or for the result (`size`). Uses only
        the data that are on this machine, and requests nothing.

        Returns None if the finding is not known yet. Our own run from the start has then advanced by one
        segment, so call again. Raises TwoReplays like `digest_own`, which it may call.
        """
        roots = self._known(committed)
        if roots is None:
            return self._audit_unserved(committed, segment, digesters)
        before = self._states.kept(segment - 1, roots[segment - 1])
        if before is None:
            run = self._states.extend(segment - 1)
            pairs = zip(run[:segment], roots, strict=False)
            false = next((number for number, (own, told) in enumerate(pairs) if own != told), None)
            if false is not None:
                return Different(false, tuple(roots))
            if len(run) < segment:
                return None
            before = self._states.own(segment - 1)
        if segment == committed.size:
            return Equal(self._digest_result(before, digesters))
        root, digests = self._replay(before, segment, digesters)
        return Equal(digests) if root == roots[segment] else Different(segment, tuple(roots), digests)

    def digest_own(
        self, committed: Committed, segment: int, digesters: Sequence[Digester]
    ) -> tuple[bytes, ...] | None:
        """The digests of a segment as in `Equal.digests`, but computed from our own run, whatever the solver
        committed. Requests nothing.

        Returns None if our own run has not reached the result yet; call again. The segment is replayed to
        compute the digests: raises TwoReplays if this replay ends in another state than our own run does.
        """
        run = self._states.extend(committed.size - 1)
        if len(run) < committed.size:
            return None
        before = self._states.own(segment - 1)
        if segment == committed.size:
            return self._digest_result(before, digesters)
        due = run[segment]
        root, digests = self._replay(before, segment, digesters)
        if root != due:
            raise TwoReplays(
                f"segment {segment}",
                expected=f"the state of the run from the start, {due.hex()}",
                got=root.hex(),
                remedy="it is replayed again; if that does not help, check the machine's memory and processor",
            )
        return digests

    def roots(self, committed: Committed) -> Sequence[bytes]:
        """The roots r_0 … of a commitment that was found equal to our replays. They are the roots that a
        source serves now or served earlier. If no source has served them, our own run is completed, and the
        roots are taken from it.
        """
        served = self._segment_roots(committed)
        if served is not None:
            return served
        run = self._states.extend(committed.size - 1)
        while len(run) < committed.size:
            run = self._states.extend(committed.size - 1)
        return run[: committed.size]

    def open_chunk(
        self, committed: Committed, segment: int, digester: Digester, place: Place
    ) -> Opening | None:
        """Our own leaf of the chunk at `place` in a segment, under the digester's salt, with the leaf's
        siblings; None if the segment has no such chunk. Replays the segment up to the state that `place`
        names. If the roots of the segment's states are not kept, or if the kept root of that state differs
        from this replay's, then replays the whole segment to compute the roots.
        """
        if place.step > self._segment_steps:
            return None
        first, before = first_step(segment, self._segment_steps), self._before(committed, segment)
        state = run_steps(self._executor, before, first, place.step)
        tensors = [tensor.data for tensor in self._program.checkpoint(state).tensors]
        if place.tensor >= len(tensors):
            return None
        data = tensors[place.tensor]
        index = index_of(chunk_count(len(data)), place.turns, place.depth)
        if index is None:
            return None
        salted = [digester.tensor_root(other, place.step) for other in tensors]
        roots = self._states.steps(segment, digester.salt)
        if not roots or roots[place.step] != state_root(salted):
            self._replay(before, segment, [digester])
            roots = self._states.steps(segment, digester.salt)
        tree = digester.tensor_tree(data, place.step)
        return open_chunk_of(tree, index, salted, place.tensor, roots, place.step)

    def state(self, committed: Committed, number: int) -> tuple[State, Sequence[bytes]] | None:
        """Checkpoint `number` of a commitment, and the roots r_0 …; None unless both are on this machine."""
        roots = self._known(committed)
        kept = None if roots is None else self._states.kept(number, roots[number])
        return None if kept is None or roots is None else (kept, roots)

    def _before(self, committed: Committed, segment: int) -> State:
        """The state before a segment of a commitment that was found equal."""
        kept = self._states.kept(segment - 1, self.roots(committed)[segment - 1])
        return self._states.own(segment - 1) if kept is None else kept

    def _ask(self, number: int, roots: Sequence[bytes]) -> bool:
        """Request checkpoint `number` if it is not here. Returns whether it is here now."""
        root = roots[number]
        if self._states.has(number, root):
            return True
        for provider in self._providers():
            begun = time.monotonic()
            tensors = provider.checkpoint(number)
            if tensors is not None and self._states.take(number, root, tensors) is not None:
                return True
            self._note(provider, math.inf if tensors is not None else time.monotonic() - begun)
        return False

    def _segment_roots(self, committed: Committed) -> Sequence[bytes] | None:
        """The solver's checkpoint roots, if a source serves the committed ones, or did so earlier;
        otherwise None.
        """
        known = self._known(committed)
        if known is not None:
            return known
        for provider in self._providers():
            begun = time.monotonic()
            roots = provider.segment_roots()
            if roots is None or len(roots) < committed.size:
                self._note(provider, time.monotonic() - begun)
                continue
            roots = roots[: committed.size]
            if segment_tree(roots).root == committed.root:
                self._states.keep_commitment(committed.root, roots)
                self._revealed = {committed: roots}
                return roots
            self._note(provider, math.inf)
        return None

    def _note(self, provider: CheckpointProvider, seconds: float) -> None:
        """Record that a source failed a request, and the seconds that it wasted."""
        self._cost[id(provider)] = self._cost.get(id(provider), 0.0) + seconds

    def _known(self, committed: Committed) -> Sequence[bytes] | None:
        """The checkpoint roots, if this process or an earlier one has received them; otherwise None."""
        if committed not in self._revealed and committed not in self._read:
            self._read.add(committed)
            kept = self._states.commitment(committed.root)
            if len(kept) == committed.size:
                self._revealed = {committed: kept}
        return self._revealed.get(committed)

    def _providers(self) -> Iterator[CheckpointProvider]:
        """The sources in the order to ask them. Others are looked up only if the solver does not serve. A
        source that served wrong data comes last but stays, because a proxy may have changed the data.
        """
        solver = self._provider
        first = id(solver) not in self._cost
        if first:
            yield solver
        found = [other for other in self._others() if other is not solver]
        SystemRandom().shuffle(found)  # the first voters may be accomplices of the solver
        found.sort(key=lambda other: self._cost.get(id(other), 0.0))
        if not first:
            found.append(solver)
        yield from sorted(found, key=lambda one: self._cost.get(id(one), 0.0) == math.inf)

    def _audit_unserved(
        self, committed: Committed, segment: int, digesters: Sequence[Digester]
    ) -> Finding | None:
        run = self._states.extend(committed.size - 1)
        if len(run) < committed.size:
            return None
        if segment_tree(run[: committed.size]).root != committed.root:
            return Different(None, ())
        digests = self.digest_own(committed, segment, digesters) if digesters else ()
        return None if digests is None else Equal(digests)

    def _replay(
        self, before: State, segment: int, digesters: Sequence[Digester]
    ) -> tuple[bytes, tuple[bytes, ...]]:
        """The root of the segment's last state, and each digester's root over the segment's states s_0 …
        s_C.
        """
        digested: list[list[bytes]] = [[] for _ in digesters]

        def digest(state: State) -> None:
            for digester, roots in zip(digesters, digested, strict=True):
                roots.append(self._salted_root(state, digester, len(roots)))

        digest(before)
        after = run_steps(
            self._executor,
            before,
            first_step(segment, self._segment_steps),
            self._segment_steps,
            lambda _, state: digest(state),
        )
        for digester, roots in zip(digesters, digested, strict=True):
            self._states.keep_steps(segment, digester.salt, roots)
        return self._program.state_root(after), tuple(step_tree(roots).root for roots in digested)

    def _digest_result(self, result: State, digesters: Sequence[Digester]) -> tuple[bytes, ...]:
        """The digests of the result. All of it is hashed, even if other states are thinned."""
        whole = [replace(digester, thinning=1) for digester in digesters]
        return tuple(self._salted_root(result, digester, 0) for digester in whole)

    def _salted_root(self, state: State, digester: Digester, step: int) -> bytes:
        """The salted root of a state. Uses as many threads as the steps do, because no step runs
        meanwhile.
        """
        return self._program.salted_state_root(state, digester, step, torch.get_num_threads())
