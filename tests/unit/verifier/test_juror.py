"""When a juror votes, refuses and opens, and what it shows and serves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.views import ItemClaim, JuryView, TaskStatus
from protocol.commitments import BlobStore, leaf_hash, segment_tree
from protocol.commitments.proofs import root_from_path
from protocol.dispute.juries import Shown, possession_digest
from protocol.dispute.openings import NO_LEAF
from protocol.node.party.exits import Observation
from protocol.numerics.types import to_bytes
from tests.unit.solver import tiny
from tests.unit.verifier.test_replaying import HONEST, PROGRAM, canonical, checkpoint_roots
from tests.unit.verifier.test_seats import AUDIT, ME, MINE_TOO, NOW, OTHER, observation, seat
from verifier.context import Context
from verifier.deadlines import sends_due
from verifier.errors import DiskFull
from verifier.juror import awaited, deadlines, further, keeping, openings, refusals, releasable, votes
from verifier.jury import Jury
from verifier.metrics import Metrics
from verifier.results import Items
from verifier.salts import salted

PERIOD = 40
UNTIL = NOW + 30
CONSTANTS = tiny.SEGMENTS + 1
CLAIM = ItemClaim(OTHER, bond=5, seat=0, item=2, until=0, tensor=0, walk=0, opened=0)
VIEW = JuryView(0, pending=False, until=UNTIL, yes=0, no=0)
JURORS = (seat(160, ME), seat(161, OTHER), seat(162, MINE_TOO))
SITS = replace(observation(), audit=replace(AUDIT, claimant=1))
QUARTER = UNTIL - PERIOD // 4


class Scene:
    """A verifier with two accounts in a jury, and the calls that they have sent."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.jury: Jury | None = Jury(CLAIM, VIEW, JURORS)
        self.items = Items(folder / "items", folder / "bundles")
        self.here = self.has_voted_yes = False
        self.served: set[int] = set()
        terms = SimpleNamespace(attest_period=PERIOD, segments=tiny.SEGMENTS, bundle_hash=bytes(32))
        self.material: Any = SimpleNamespace(
            terms=terms,
            work=SimpleNamespace(program=PROGRAM, fixed=tiny.fixed()),
            replayer=SimpleNamespace(
                is_here=lambda _committed, segment: (
                    segment in self.served or (self.here and segment == CLAIM.item + 1)
                ),
                state=lambda _committed, number: (HONEST[number * tiny.STEPS], checkpoint_roots(HONEST)),
            ),
        )
        self.room, self.asked = 10**6, list[int]()
        self.material.replayer.ask = self._ask
        self.store = BlobStore(folder / "blobs")
        self.material.states = SimpleNamespace(link=self._link)
        log = SimpleNamespace(info=self._log, warning=self._log)
        self.clients = {ME: self._client(ME, 2), MINE_TOO: self._client(MINE_TOO, 3)}
        self.context = cast(
            Context,
            SimpleNamespace(
                clients=self.clients,
                terms=lambda _task: terms,
                materials=SimpleNamespace(
                    find=lambda _task: self.material, has_bundle=lambda _terms: self.material is not None
                ),
                room=lambda: self.room,
                load=lambda _task: self.material,
                items=self.items,
                database=SimpleNamespace(all_challenges=lambda _task: []),
                segments=lambda _task, _seat: [1, 3],
                juries=SimpleNamespace(
                    of=lambda _task: self.jury,
                    has_voted_yes=lambda _task, _own: self.has_voted_yes,
                    has_claimed=lambda _task, one: one.number == 0,
                ),
                metrics=Metrics(),
                log=log,
                work_by=lambda until: until - 2.5,
            ),
        )

    def _client(self, account: str, index: int) -> Any:
        def note(function: str) -> Any:
            def sent(*arguments: Any) -> SimpleNamespace:
                self.sent.append((account, function, *arguments))
                return SimpleNamespace(gas_used=1)

            return sent

        return SimpleNamespace(
            sender=SimpleNamespace(account=development_account(index, DEVELOPMENT_CHAIN)),
            deployment=SimpleNamespace(chain_id=DEVELOPMENT_CHAIN),
            audit=SimpleNamespace(address=OTHER, attest=note("attest")),
            juries=SimpleNamespace(open=note("open")),
        )

    def _ask(self, _committed: object, segments: Sequence[int]) -> None:
        """Record that the source was asked for these segments and has served them."""
        self.asked += segments
        self.served.update(segments)

    def _link(self, number: int, root: bytes, place: Callable[[int], Path]) -> None:
        assert root == checkpoint_roots(HONEST)[number]
        self.store.link(self.store.put(b"".join(canonical(HONEST[number * tiny.STEPS]))), place(0))

    def _log(self, *_words: object, **_fields: object) -> None:
        """Log nothing."""

    def salt(self, index: int) -> bytes:
        return salted(self.clients[JURORS[index].account], 1, JURORS[index], AUDIT.seed).salt

    def voted(self, what: Any, seen: Observation) -> list[str]:
        found = list(what(self.context, seen))
        for job in found:
            job.work()
        return [job.what for job in found]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_own_jurors_are_awaited_until_they_have_voted(scene: Scene) -> None:
    assert [juror.number for juror, _ in awaited(scene.context, SITS)] == [160, 162]
    assert {item for _, item in awaited(scene.context, SITS)} == {2}
    scene.jury = Jury(CLAIM, replace(VIEW, no=0b001, yes=0b010), JURORS)
    assert [juror.number for juror, _ in awaited(scene.context, SITS)] == [162]
    assert not list(awaited(scene.context, replace(SITS, now=UNTIL + 1)))
    scene.jury = Jury(None, VIEW, JURORS)
    assert not list(awaited(scene.context, SITS))


def test_a_juror_that_has_the_state_serves_it_and_votes_yes_at_once(scene: Scene) -> None:
    assert scene.voted(votes, SITS) == []
    scene.here = True
    assert scene.voted(votes, SITS) == ["vote 160", "vote 162"]
    tensors = canonical(HONEST[2 * tiny.STEPS])
    assert [sent[:4] for sent in scene.sent] == [(ME, "attest", 1, 160), (MINE_TOO, "attest", 1, 162)]
    assert [sent[4] for sent in scene.sent] == [possession_digest(scene.salt(k), tensors) for k in (0, 2)]
    assert scene.items.state(1, 2, list(map(len, tensors))) == (tensors, checkpoint_roots(HONEST))
    assert scene.voted(refusals, replace(SITS, now=UNTIL)) == []


def test_a_juror_that_has_nothing_votes_no_at_three_quarters_of_its_time(scene: Scene) -> None:
    assert scene.voted(refusals, replace(SITS, now=QUARTER)) == []
    assert scene.voted(refusals, replace(SITS, now=QUARTER + 1)) == ["refuse 160", "refuse 162"]
    zero = bytes(32)
    assert scene.sent == [(ME, "attest", 1, 160, zero, zero), (MINE_TOO, "attest", 1, 162, zero, zero)]
    scene.sent.clear()
    scene.material = None  # the bundle is missing too
    assert scene.voted(refusals, replace(SITS, now=QUARTER + 1)) == ["refuse 160", "refuse 162"]
    assert scene.voted(votes, SITS) == []


def test_the_constants_are_in_the_bundle(scene: Scene, tmp_path: Path) -> None:
    scene.jury = Jury(replace(CLAIM, item=CONSTANTS), VIEW, JURORS)
    bundle = tmp_path / "bundles" / bytes(32).hex()
    bundle.mkdir(parents=True)
    (bundle / "manifest.json").write_bytes(b"{}")
    assert scene.voted(votes, SITS) == ["vote 160", "vote 162"]
    (data,) = tiny.fixed()
    tensors = [to_bytes(data, PROGRAM.fixed_types[0].dtype)]
    assert [sent[4] for sent in scene.sent] == [possession_digest(scene.salt(k), tensors) for k in (0, 2)]
    assert scene.items.bundle_file(bundle.name, "manifest.json") == bundle / "manifest.json"


def test_a_juror_opens_what_the_claimant_asks_for_also_after_a_restart(scene: Scene, tmp_path: Path) -> None:
    scene.here = True
    scene.voted(votes, SITS)
    voted = {sent[3]: sent[4] for sent in scene.sent}
    again = Scene(tmp_path)
    claim = replace(CLAIM, until=UNTIL + 9, tensor=0, walk=0, opened=0b100)
    again.jury = Jury(claim, replace(VIEW, yes=0b101), JURORS)
    assert again.voted(openings, replace(SITS, now=UNTIL + 10)) == [], "too late"
    assert again.voted(openings, replace(SITS, now=UNTIL + 9)) == ["open 160"]
    account, function, task, juror, secret, digest, shown = again.sent[0]
    assert (account, function, task, juror) == (ME, "open", 1, 160)
    assert digest == voted[160]
    assert len(secret) == 32
    assert isinstance(shown, Shown)
    tensors, roots = canonical(HONEST[2 * tiny.STEPS]), checkpoint_roots(HONEST)
    assert shown.chunk == tensors[0][:1024]
    assert shown.state.value == roots[2]
    root = root_from_path(len(roots), 2, 1, leaf_hash(shown.state.value), shown.state.path)
    assert root == segment_tree(roots).root
    assert shown.state != NO_LEAF


def test_only_a_jury_that_was_left_without_a_verdict_has_to_be_released(scene: Scene) -> None:
    assert releasable(scene.context, SITS) == []
    over = observation(TaskStatus.SLASHED)
    assert [juror.number for juror in releasable(scene.context, over)] == [160, 162]
    scene.jury = Jury(CLAIM, VIEW, (seat(160, released=True), replace(JURORS[2], caught=True)))
    assert releasable(scene.context, over) == []
    scene.jury = None
    assert releasable(scene.context, over) == []


def test_who_voted_yes_serves_what_else_the_claimant_needs(scene: Scene) -> None:
    """Until the claimant has attested, a juror serves the result and the states that the claimant's segments
    need: the state before each segment or, for segment 1, the state after it.
    """
    size = tiny.SEGMENTS + 1
    seen = observation(seats=(seat(0, OTHER), seat(1, OTHER)), size=size)
    assert further(scene.context, seen) == []
    scene.has_voted_yes = True
    assert further(scene.context, seen) == [1, 2, 3]
    scene.here = True
    for kept in range(3):
        assert sum(scene.items.has_state(1, item) for item in (1, 2, 3)) == kept
        assert scene.voted(keeping, seen) == ["keep"], "one at a time"
    assert sorted(scene.asked) == [2, 4], "one was here"
    assert scene.voted(keeping, seen) == []
    assert {path.stat().st_nlink for path in scene.items.path(1, 2, 0).parent.glob("group-*")} == {2}
    attested = observation(seats=(seat(0, OTHER, attested=True), seat(1, OTHER)), size=size)
    assert further(scene.context, attested) == []
    unpaid = replace(seen, view=replace(seen.view, status=TaskStatus.UNPAID))
    assert further(scene.context, unpaid) == []


def test_nothing_more_is_kept_for_claimants_where_the_disk_is_nearly_full(scene: Scene) -> None:
    """Data for a vote is fetched anyway, because the vote is due."""
    seen = observation(seats=(seat(0, OTHER),), size=tiny.SEGMENTS + 1)
    size = 2 * sum(len(tensor) for tensor in canonical(HONEST[0]))  # beside the state, its only group
    scene.has_voted_yes, scene.room = True, size - 1
    with pytest.raises(DiskFull, match=f"expected {size} bytes"):
        scene.voted(keeping, seen)
    assert scene.asked == []
    scene.room = size
    assert scene.voted(keeping, seen) == ["keep"]
    scene.here, scene.room = True, 0
    assert scene.voted(votes, SITS) == ["vote 160", "vote 162"]


def test_what_one_source_withholds_keeps_no_other_state_waiting(scene: Scene) -> None:
    seen = observation(seats=(seat(0, OTHER),), size=tiny.SEGMENTS + 1)
    scene.has_voted_yes = True
    tried: set[int] = set()
    scene.material.replayer.ask = lambda _committed, segments: tried.update(segments)
    scene.material.replayer.state = lambda _committed, _number: None
    for _ in range(64):
        with pytest.raises(AssertionError):
            scene.voted(keeping, seen)
    assert tried == {2, 3, 4}


def test_a_juror_has_to_vote_and_to_open_in_time(scene: Scene) -> None:
    assert list(deadlines(scene.context, SITS)) == [UNTIL]
    objected = replace(CLAIM, until=UNTIL + 9, opened=0)
    scene.jury = Jury(objected, replace(VIEW, yes=0b101), JURORS)
    assert list(deadlines(scene.context, SITS)) == [UNTIL + 9]
    scene.jury = None
    assert list(deadlines(scene.context, SITS)) == []


def test_a_vote_is_urgent_also_after_the_end_of_challenges(scene: Scene) -> None:
    late = replace(SITS, view=replace(SITS.view, challenge_until=NOW - 1))
    assert sends_due(scene.context, late) == UNTIL
