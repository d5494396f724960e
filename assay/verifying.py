"""`assay verify`: computes a task's segments again and compares them with the chain. Given a proof, it also
compares the proof with the chain, and a file of weights with the proof.

Anyone can do this, without an account or a stake. If all segments are replayed, none of the solver's states
are needed. The output says what was not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom

from assay import weights as weights_file
from assay.commands import Context
from assay.errors import NotHeld, ProofMismatch, ResultError
from assay.estimate import Progress
from assay.holders import Holders
from assay.proofs import METADATA, Proof, load_proof, parse_proof, word
from assay.proving import compare, compare_contracts, is_final
from assay.replays import Finding, Run, first_false
from assay.verify_report import Report
from protocol.chain.client import Client
from protocol.chain.connection import Connection
from protocol.chain.deployment import deployments_of, load_deployment
from protocol.chain.errors import RpcError
from protocol.chain.events import Follower, first_block
from protocol.chain.views import TaskView
from protocol.commitments import segment_tree
from protocol.errors import ExitCode
from protocol.execution.device import checked, executor_on
from protocol.execution.replay import Work
from protocol.node.options import MOST_TASK
from protocol.node.settings import SettingsError
from protocol.node.words import duration
from protocol.numerics.self_check import self_check
from protocol.program.step import State
from protocol.tasks.bundles import cached_bundle
from protocol.tasks.task import ASSUMED_SPEED, replay_seconds


@dataclass(frozen=True)
class Choice:
    """Which segments to replay: a number of random ones, the named ones, or all."""

    count: int | None = None
    named: tuple[int, ...] = ()
    every: bool = False

    def __bool__(self) -> bool:
        return self.count is not None or bool(self.named) or self.every

    def of(self, segments: int) -> list[int]:
        """The chosen segments of 1 … `segments`, ascending. Raises SettingsError if a named segment does not
        exist.
        """
        if self.named and max(self.named) > segments:
            raise SettingsError(
                "--segment",
                expected=f"1 to {segments}, for as many segments are committed",
                got=max(self.named),
                remedy="name another",
            )
        if self.named:
            return sorted(set(self.named))
        every = range(1, segments + 1)
        if self.every or self.count is None or self.count >= segments:
            return list(every)
        return sorted(SystemRandom().sample(every, self.count))


def verify(context: Context, target: str | None, weights: Path | None, choice: Choice) -> ExitCode:
    """Verify a task or a proof, and print the findings. `target` is a task's id or the path of a proof file.
    Without a `target`, the proof is read from the metadata of the file `weights`.
    """
    if target is not None and target.isdecimal():
        if weights is not None:
            raise SettingsError(
                "--weights",
                expected="a proof, for only that has the roots of tensors",
                got=f"task {target}",
                remedy="name the proof.json that `assay result` wrote, or leave the task out where one is embedded",
            )
        task = int(target[:20])  # longer ones are too large
        if not 1 <= task <= MOST_TASK:
            raise SettingsError("task", expected=f"an id from 1 to {MOST_TASK}", got=target[:80])
        with context.client() as client:
            report = _verify_task(context, client, task, choice)
    else:
        proof, settings = _proof(target, weights), context.settings
        with closing(Connection(settings.rpc, finality=settings.finality)) as connection:
            report = _verify_proof(context, connection, proof, weights, choice)
    for line in report.lines():
        context.output.say(line)
    context.output.result(report.data())
    return report.code


def _verify_task(context: Context, client: Client, task: int, choice: Choice) -> Report:
    view = client.market.task(task)
    final = is_final(client, view)
    chain_id, market = client.connection.chain_id, client.market.address
    report = Report(False, task, chain_id, market, view.status, final)
    _replay(context, client, view, choice, None, report)
    return report


def _proof(target: str | None, weights: Path | None) -> Proof:
    """The proof in a file, or in the metadata of the weights. Raises SettingsError, ProofMalformed,
    WeightsMalformed.
    """
    if target is not None:
        return load_proof(Path(target))
    text = None if weights is None else weights_file.embedded_proof(weights)
    if text is None:
        raise SettingsError(
            "what to verify",
            expected="a task's id, a proof file, or --weights with a proof in its metadata",
            got="none" if weights is None else f"no {METADATA} in {weights}",
            remedy="name one; `assay result --embed` writes the last",
        )
    return parse_proof(text, f"proof in {weights}")


def _verify_proof(
    context: Context, connection: Connection, proof: Proof, weights: Path | None, choice: Choice
) -> Report:
    said, unsaid = compare_contracts(connection, proof)
    unsaid += _unknown(context, connection, proof)
    client = Client(connection, proof.deployment, None)
    compared = compare(client, proof)
    report = Report(
        True,
        proof.task.id,
        proof.deployment.chain_id,
        client.market.address,
        compared.status,
        compared.final,
        [*said, *compared.checked],
        [*unsaid, *compared.unchecked],
    )
    if weights is None:
        report.unchecked.append("weights: --weights names a file of them")
    else:
        roots = list(map(word, proof.tensor_roots))
        found = report.weights = weights_file.compare(weights, compared.manifest.state, roots)
        report.checked.append(f"the {found.tensors} tensors of {weights} are the result's, bit for bit")
        if found.missing:
            names = ", ".join(found.missing[:5]) + (", …" if len(found.missing) > 5 else "")
            report.unchecked.append(
                f"{len(found.missing)} tensors of the result that the file has not: {names}"
            )
    if choice:
        _replay(context, client, client.market.task(proof.task.id), choice, proof.roots, report)
    else:
        report.unchecked.append("the training: --segments N, or --all, computes it again")
    return report


def _unknown(context: Context, connection: Connection, proof: Proof) -> list[str]:
    """Sentences on what is unknown about the contracts of a proof. There are none if the deployment file that
    the command names, or one that is known on this machine, has the same contracts. Otherwise the proof's
    maker may have deployed the contracts just for the proof. Raises ProofMismatch if the command names a
    deployment file with other contracts.
    """
    said, named = proof.deployment.addresses, context.settings.deployment
    if named is not None:
        mine = load_deployment(named).addresses
        if mine != said:
            raise ProofMismatch("deployment.addresses", f"those in {named}", f"a market at {said.market}")
        return []
    known = deployments_of(connection.chain_id, connection.genesis)
    if any(one.addresses == said for one in known):
        return []
    return [
        f"whether the market at {said.market} is the one that you mean, and what its token is worth: no deployment "
        "file here has it"
    ]


def _replay(
    context: Context,
    client: Client,
    view: TaskView,
    choice: Choice,
    roots: Sequence[bytes] | None,
    report: Report,
) -> None:
    """Replay some of a task's segments, and add the findings to a report. Raises SettingsError, ResultError,
    NotHeld, BundleError, DeviceError, SelfCheckError, ChainError.
    """
    committed = view.size - 1
    if committed < 1:
        raise ResultError(
            f"task {view.task}",
            expected="segments that its solver has committed to",
            got=f"none; it is {view.status.name.lower()}",
            remedy=f"look at `assay status {view.task}`",
        )
    segments, terms = choice.of(committed), client.market.terms(view.task)
    limits = context.limits(client)
    holders = Holders(client, view, limits, "try again later, or replay --all, which needs nobody's data")
    bundle = cached_bundle(context.home.bundles, terms, limits, holders.bundles(terms.bundle_hash))
    if roots is None:
        try:
            roots = holders.roots(view.root, view.size, terms.segments)
        except NotHeld:
            if len(segments) < committed:
                raise
    self_check()
    work = Work.of(view.task, bundle)
    executor = executor_on(checked(context.settings.device))(work)
    steps = len(segments) * terms.segment_steps
    seconds = len(segments) * replay_seconds(terms, ASSUMED_SPEED)
    context.output.say(
        f"replaying {len(segments)} of {committed} segments, {steps} steps: about {duration(seconds)} at "
        f"{ASSUMED_SPEED:,} operations a second"
    )

    def state_at(number: int) -> State:
        assert roots is not None, "asked for by comparing with them"
        return bundle.initial_state() if number == 0 else holders.state(number, roots[number], work.program)

    with Progress(steps, context.output.say) as progress:
        run = Run(work.program, executor, terms.segment_steps, progress.step)
        if roots is None:
            _compare_tree(client, view, run.roots(bundle.initial_state(), committed), report)
            return
        try:
            for finding in run.compare(segments, roots, state_at):
                report.findings.append(finding)
        except NotHeld:
            if report.equal:
                raise
    done = [finding.segment for finding in report.findings]
    report.checked.append(f"{len(done)} of {committed} segments were computed again: {_numbers(done)}")
    if len(done) < committed:
        report.unchecked.append(f"{committed - len(done)} of {committed} segments")


def _compare_tree(client: Client, view: TaskView, own: Sequence[bytes], report: Report) -> None:
    """Compare `own`, the state roots from a replay of all segments, with the segment trees on the chain. Used
    if nobody serves the solver's roots.
    """
    last = view.size - 1
    report.checked.append(
        f"all {last} segments were computed again, and their tree compared with the committed root"
    )
    if segment_tree(own).root == view.root:
        report.findings += [Finding(number, own[number], own[number]) for number in range(1, view.size)]
        return
    found = first_false(own, [*_commitments(client, view), (view.size, view.root)])
    assert found is not None, "the last of them differs"
    report.first_false = found[0], found[-1]
    report.unchecked.append(
        "which segments behind the first wrong one are wrong too: nobody serves the solver's states"
    )


def _commitments(client: Client, view: TaskView) -> list[tuple[int, bytes]]:
    """Sizes and roots of the segment trees that a task's solver committed during training; none if the node
    does not provide these events.
    """
    market, connection = client.market, client.connection
    (topic,) = (topic for topic, event in market.contract.events.items() if event["name"] == "Progressed")
    topics = [topic, view.task.to_bytes(32, "big")]
    try:
        first = first_block(connection, client.deployment.block, view.bids_until)
        last = first_block(connection, first, view.train_until + 1)
        contracts = {market.address: market.contract}
        events = Follower(connection, contracts, first, topics=topics).poll(last).events
    except RpcError:
        return []
    return [(int(event.arguments["size"]), bytes(event.arguments["root"])) for event in events]


def _numbers(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:20]))
    return f"{shown}, …" if len(numbers) > 20 else shown
