"""`assay.train`: does what `assay submit` does, for a model in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from assay.consent import Ask
from assay.description import Plan, RunTable, TermsTable
from assay.errors import NotConfirmed, PlanError, StartError
from assay.options import context_of
from assay.posting import Choices, post
from assay.pricing import Price
from assay.results import Result
from assay.source import Captured
from assay.starting import Start, read_start, seed_of
from assay.training.handle import Handle
from assay.training.quiet import output_of
from assay.watching.callbacks import Callback
from protocol.node.words import tokens

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

    from protocol.capture import Objective
    from protocol.capture.analysis.roles import Bits


def train(
    model: nn.Module,
    objective: Objective,
    optimizer: Optimizer,
    data: Any,
    *,
    batch_size: int,
    steps: int,
    segments: int = 10,
    seed: int | None = None,
    name: str = "training",
    terms: Mapping[str, Any] | None = None,
    start: Result | Handle | Path | str | None = None,
    scheduler: LRScheduler | None = None,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    bits: Mapping[str, Bits] | None = None,
    micro_batches: int = 1,
    replacement: bool = True,
    history: int = 0,
    preflight: bool = True,
    yes: bool = False,
    ask: Ask | None = None,
    wait_for_verifiers: bool = False,
    anyway: bool = False,
    callbacks: Iterable[Callback] = (),
    home: Path | str | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Handle:
    """Have strangers train a model: capture its training step, print the price, and post it as a task. All
    parties can read its data and weights.

    The model, objective, optimiser, data, `batch_size` and the options from `scheduler` to `preflight` are
    those of `protocol.capture.capture`. The task has `steps` steps in `segments` segments, each of which ends
    with a committed checkpoint; `segments` must divide `steps`. `seed` is the key of all random numbers, by
    default 0. `terms` are the terms of a task file by name, in tokens and seconds; any that are left out are
    derived. `start` is the result of an earlier task, that task's handle, or the folder that its result was
    written to. Training then continues from the result's weights and optimiser state, by default with the
    next seed.

    Nothing is paid without consent. With `yes`, the task is posted. Otherwise `ask`, such as `assay.prompt`,
    gets the `Price` and decides. Without either, nothing is sent, and NotConfirmed carries the price. While
    this function runs, the bundle must be served (`assay serve`).

    `callbacks` are called with the checked metrics of each segment's last step while the handle waits. `home`
    is the home folder, which this process then keeps using. `quiet` suppresses output. `settings` are those
    that `assay config show` lists: rpc, account, password_file, deployment, bundles_url and others. They take
    precedence over the environment and the settings file.

    The model is left unchanged. Raises PlanError, StartError, CaptureError, SettingsError, NotConfirmed,
    NoRecommendation, and all other errors of `assay submit`.
    """
    plan = _plan(name, steps, segments, seed, terms)
    begun = _start(start)
    context = context_of("train", None if home is None else Path(home), False, **settings)
    context.output = output_of("train", quiet)

    def captured() -> Captured:
        from protocol.capture import capture

        step = capture(
            model,
            objective,
            optimizer,
            data,
            batch_size=batch_size,
            steps=steps,
            scheduler=scheduler,
            clip_norm=clip_norm,
            clip_value=clip_value,
            bits=bits,
            micro_batches=micro_batches,
            replacement=replacement,
            history=history,
            resume=None if begun is None else begun.state,
            preflight=preflight,
        )
        return Captured(plan, step, number)

    def priced(price: Price) -> None:
        if not yes and ask is None:
            raise NotConfirmed(
                "posting",
                expected="yes=True, or ask=assay.prompt",
                got=f"neither, for a task with a budget of {tokens(price.budget)}, and "
                f"{tokens(price.escrow)} to be locked",
                remedy="look at the error's price, then say yes; nothing was sent",
                price=price,
            )

    number = seed_of(plan.task, begun)
    choices = Choices(yes, wait_for_verifiers, anyway)
    posted = post(context, plan, captured, choices, None if yes else ask, priced=priced)
    context.output.say(f"task {posted.task} ({name}) posted; `wait` of its handle follows it")
    return Handle(context, posted.task, posted, callbacks)


def _plan(name: str, steps: int, segments: int, seed: int | None, terms: Mapping[str, Any] | None) -> Plan:
    """The plan that these arguments describe. Raises PlanError if an argument is not valid for a task."""
    for what, count in (("steps", steps), ("segments", segments)):
        if type(count) is not int or count < 1:
            raise PlanError(what, expected="a whole number from 1 on", got=repr(count), remedy="correct it")
    if steps % segments:
        near = [count for count in range(1, min(steps, 4 * segments) + 1) if steps % count == 0]
        best = min(near, key=lambda count: abs(count - segments))
        raise PlanError(
            "segments",
            expected=f"a number that divides {steps} steps",
            got=segments,
            remedy=f"say segments={best}, or take other steps",
        )
    run: dict[str, Any] = {"name": name, "segments": segments, "segment_steps": steps // segments}
    if seed is not None:
        run["seed"] = seed
    try:
        return Plan(task=RunTable(**run), terms=TermsTable(**(terms or {})))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "terms"
        raise PlanError(
            f"{where}: {first['msg']}, got {str(first.get('input'))[:80]!r}", remedy="correct this argument"
        ) from error


def _start(start: Result | Handle | Path | str | None) -> Start | None:
    """The state from which training continues; None without a `start`. Raises StartError if a folder cannot
    be read, or if a `Result` or a handle's result is not final. Such a result may still be found false, and
    the next solver would be paid to train on from false weights. For a folder, this is not checked.
    """
    if start is None:
        return None
    if isinstance(start, Handle):
        start = start.result()
    if not isinstance(start, Result):
        return read_start(Path(start))
    what = f"start, the result of task {start.task}"
    if not start.final:
        raise StartError(
            what,
            expected="a settled task",
            got=f"one that is {start.status.name.lower()} and may still be found false",
            remedy="wait until it is settled",
        )
    return Start(start.state, what)
