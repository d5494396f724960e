"""The handle of a posted task: wait for it, look at its losses, take its result and proof. The task is on the
chain and continues without the handle; `attach` makes another handle for it.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from assay import cancelling, proof_files, results
from assay.commands import Context
from assay.folders import require_writable
from assay.known_task import KnownTask
from assay.options import context_of
from assay.places import place_of
from assay.posting import Posted
from assay.pricing import Price
from assay.proofs import Proof
from assay.replacing import origin_of, require_replaceable
from assay.results import Result
from assay.status import report
from assay.task_status import TaskStatusReport
from assay.training.display import Relay, display_of
from assay.training.quiet import Silent, output_of
from assay.watching.callbacks import Callback
from assay.watching.command import Watch
from assay.watching.curve import Point, shown_metric
from assay.watching.progress import Progress
from assay.writing import write
from protocol.tasks.bundles import Bundle, cached_bundle
from protocol.tasks.task import Terms

if TYPE_CHECKING:
    from torch import nn


class Handle:
    """The handle of a task. It reads the chain without an account; only `cancel` uses an account. Callbacks
    are called only during `wait`.

    `posted` is None for a handle that `attach` makes. In this case, the task is the one that was posted from
    the home folder with the number `task`. If there is none, it is the task that has this number now. The
    price is then computed from today's prices.

    A re-organisation may give the task's number to another task. A method that reads the task then raises
    AnotherTask, which has the task's new number if that was found. It raises NotMinedAgain if the chain does
    not have the task's post and no other task has its number.
    """

    def __init__(
        self, context: Context, task: int, posted: Posted | None = None, callbacks: Iterable[Callback] = ()
    ) -> None:
        self.task = task
        self._context = context
        self._client = context.client()
        self._close = weakref.finalize(self, self._client.close)
        try:
            self._known = (
                KnownTask.meant(self._client, context.home, task) if posted is None else posted.known
            )
        except BaseException:
            self._close()
            raise
        self.terms: Terms = self._known.terms
        if posted is not None:
            self.price = posted.price
        self._limits = context.limits(self._client)
        self._relay = Relay()
        for callback in callbacks:
            self._relay.told.add(callback)
        self._final: Result | None = None

    @cached_property
    def price(self) -> Price:
        """What the task costs. Raises ChainError, NoRecommendation, UnknownArithmetic."""
        return Price.of_terms(place_of(self._context.settings, self._client), self.terms)

    @property
    def report(self) -> TaskStatusReport:
        """The state of the task: parties, deadlines, seats, games. Raises ChainError."""
        self._known.view(self._client, self._context.home)
        return report(self._client, [self.task])[0]

    @property
    def status(self) -> str:
        """The task's status: `bidding`, `training`, `submitted`, `settled`, `slashed`, `refunded`, `unpaid`
        or `void`. Raises ChainError.
        """
        return self.report.status

    @property
    def metrics(self) -> dict[int, dict[str, float]]:
        """The metrics of the segments that are committed and served so far, by the number of each segment's
        last step. They are the metrics of that step's batch, checked against the committed state. Raises
        ChainError.
        """
        return {point.step: dict(point.values) for point in self._points()}

    @property
    def loss(self) -> dict[int, float]:
        """The loss by step. If the state keeps no loss, the first metric is returned instead. Raises ChainError."""
        points = self._points()
        name = shown_metric(points[-1]) if points else None
        return {} if name is None else {point.step: point.values[name] for point in points}

    def wait(
        self,
        timeout: float | None = None,
        on_progress: Callable[[Progress], object] | None = None,
        on_metrics: Callback | None = None,
    ) -> str:
        """Wait until the task is over for good. If it was settled, also wait until its result is fetched.
        Waits at most `timeout` seconds in all. Returns the status. `on_progress` is called every second with
        the progress. `on_metrics`, like the `callbacks` of `train`, is called with the checked metrics of the
        last step of each segment, from the first segment on.

        Ctrl-C does not affect the task. Raises ChainError, and ResultError or BundleError if nobody serves
        the result.
        """
        if on_metrics is not None:
            self._relay.told.add(on_metrics)
        output = self._context.output
        self._relay.begin(None if isinstance(output, Silent) else display_of(output), on_progress)
        try:
            self._watch.run_until(math.inf if timeout is None else time.monotonic() + timeout)
        except KeyboardInterrupt:
            self._relay.end()
            output.say(f"left; the task goes on, and `assay.attach({self.task})` finds it again")
            raise
        finally:
            self._relay.end()
        return self.status

    def result(self) -> Result:
        """The state after the last step, checked against the chain; `final` says whether the task is settled. Raises
        ResultError, BundleError, ChainError.
        """
        if self._final is None:
            found = results.fetch(self._client, self._context.home, self.task, self._limits, self._known)
            if not found.final:
                return found
            self._final = found
        return self._final

    def load_into(self, model: nn.Module) -> Result:
        """Copy the result's parameters and buffers into a model that was built like the captured one. Raises
        LoadError, and leaves the model unchanged, if names, shapes or types differ; also raises the errors of
        `result`.
        """
        from assay.training.loading import load_result

        found = self.result()
        bundle = self._bundle
        fixed = bundle.fixed()[bundle.step.datasets :]
        load_result(model, found, dict(zip([tensor.name for tensor in bundle.constants], fixed, strict=True)))
        return found

    @property
    def proof(self) -> Proof:
        """What the chain says about the result, for others to check (`assay verify`). Raises the errors of
        `result`.
        """
        return proof_files.proof_of(self._client, self._context.home, self.result())

    def save(self, folder: Path | str, embed: bool = False) -> Path:
        """Write `state.safetensors`, `proof.json` and, if the state keeps a history, `metrics.csv`, as `assay
        result` does. Returns the folder. `embed` also puts the proof into the state's metadata. Raises the
        errors of `result`, and ResultError if the folder holds another task's result.
        """
        folder = Path(folder)
        require_writable(folder)
        require_replaceable(folder, origin_of(self._client.deployment, self.task))
        home, output = self._context.home, self._context.output
        write(self._client, home, output, self.result(), folder, None, embed)
        return folder

    def cancel(self) -> int:
        """Cancel the task if nobody has bid yet, and return the token units that this frees. Raises
        NotCancelled, ChainError.
        """
        with self._context.client(account=True) as client:
            self._known.view(client, self._context.home)
            return cancelling.cancel(client, self.task)

    def close(self) -> None:
        """Disconnect from the chain's node. The task continues."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<assay task {self.task}>"

    @property
    def _bundle(self) -> Bundle:
        """The task's bundle. It is on this machine if the task was posted here or its result was fetched."""
        return cached_bundle(self._context.home.bundles, self.terms, self._limits)

    @cached_property
    def _watch(self) -> Watch:
        context = self._context
        client, output, known = self._client, context.output, self._known
        return Watch(client, context.home, self._limits, output, self._relay, self.task, known=known)

    def _points(self) -> list[Point]:
        return [*self._watch.read_points()]


def attach(
    task: int,
    *,
    callbacks: Iterable[Callback] = (),
    home: Path | str | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Handle:
    """The handle of any posted task. `home` and `settings` are as for `train`. Raises SettingsError and
    ChainError; the latter is Reverted (UnknownTask) if there is no such task.
    """
    context = context_of("attach", None if home is None else Path(home), False, **settings)
    context.output = output_of("attach", quiet)
    return Handle(context, task, callbacks=callbacks)
