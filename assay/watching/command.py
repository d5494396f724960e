"""`assay watch`: the loop. It looks at the chain, starts work in other threads (`beside`), and reports what
happened on the chain and what the work found.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from assay.errors import MetricsError, NotMinedAgain
from assay.known_task import KnownTask
from assay.names import task_name
from assay.results import Result, fetch
from assay.watching.beside import Beside, Outcome
from assay.watching.callbacks import Callback
from assay.watching.curve import Point
from assay.watching.following import Following, News, Standing
from assay.watching.losses import Losses
from assay.watching.printing import Printer
from assay.watching.progress import Listener, Progress
from assay.watching.untaken import reasons
from assay.writing import write
from protocol.chain.client import Client
from protocol.chain.errors import RpcError, UnstableChain
from protocol.chain.events import NEWEST
from protocol.chain.views import NOBODY, TaskStatus
from protocol.errors import AssayError, ExitCode
from protocol.node.home import Home
from protocol.node.output import Output
from protocol.tasks.bundles import BundleError, Limits

CURVE, RESULT, UNTAKEN = "curve", "result", "untaken"
"""Kinds of work that runs in threads beside the loop."""
LONGEST_WAIT: Final = 60.0
"""Maximum seconds between two looks at the chain, unless blocks are further apart."""
LEAST_PACE: Final = 0.5
"""Minimum seconds between two looks at the chain."""
LAST_TRIES: Final = 4
"""After this many failed attempts to fetch a settled task's result, the command gives up."""
ENDS: Final = {
    TaskStatus.SETTLED: ExitCode.FINE,
    TaskStatus.SLASHED: ExitCode.FRAUD,
    TaskStatus.REFUNDED: ExitCode.HOPELESS,
    TaskStatus.VOID: ExitCode.HOPELESS,
}
"""The command's exit code, by the task's final status: only a settled task has a result."""


class Watch:
    """Watches one task. `known` is the task to watch; by default, it is the task that has the number `task`
    now. The result is written to `folder`, or only checked if `folder` is None. `file` is the task's file,
    which names its evaluation. While events keep coming, `pace` seconds pass between two looks at the chain.
    The default of `pace` is the time of a block, but at least `LEAST_PACE`.
    """

    def __init__(
        self,
        client: Client,
        home: Home,
        limits: Limits,
        output: Output,
        listener: Listener,
        task: int,
        folder: Path | None = None,
        file: Path | None = None,
        pace: float | None = None,
        known: KnownTask | None = None,
    ) -> None:
        self._client, self._home, self._limits = client, home, limits
        self._output, self._listener = output, listener
        self._task, self._folder, self._file = task, folder, file
        self._following = Following(client, home, task, known)
        self._losses = Losses(client, home, limits, self._following.terms)
        self._beside = Beside()
        self._is_first = True
        """True until the first successful look at the chain. The lines for the events of that look do not say
        what comes next.
        """
        self._seen_at = 0, 0.0
        """The newest block's time, and the monotonic time at which it was seen."""
        self._asked: set[bool] = set()
        """The phases for which the command has already looked up why nobody bids: False stands for the
        bidding period, True for the time after it.
        """
        self._untaken: list[str] = []
        self._refused = ""
        """The last error that kept metrics from being shown."""
        self._result: Result | None = None
        self._failure: Exception | None = None
        self._may_have_ended = False
        self._is_final = False
        self._pace = max(LEAST_PACE, client.connection.block_time) if pace is None else pace
        self._wait = self._pace

    def run(self) -> ExitCode:
        """Run until the task is over for good and, if it was settled, until its result is fetched. Raises
        ChainError, ResultError or BundleError if nobody serves the result, and AnotherTask if a
        re-organisation has given the task's number to another task.
        """
        code = self.run_until(math.inf)
        assert code is not None, "it is over by then"
        return code

    def run_until(self, until: float) -> ExitCode | None:
        """Like `run`, but only until the time `until` of `time.monotonic`. Returns None if the task is not
        over by then. Looks at the chain at least once. Nothing is reported twice.
        """
        lost = 0
        while True:
            try:
                self._look()
            except (RpcError, UnstableChain, NotMinedAgain) as error:
                if not lost:
                    self._listener.line("chain", f"{error}; asking again and again", up=False)
                lost += 1
                self._wait = min(LONGEST_WAIT, self._pace * 2**lost)
            else:
                if lost:
                    self._listener.line("chain", "the chain's node answers again, and has the task", up=True)
                    lost, self._wait = 0, self._pace
                self._begin_work()
                if (code := self._ended()) is not None:
                    return code
            if time.monotonic() >= until:
                return None
            self._pass_time(until)

    def read_points(self) -> Sequence[Point]:
        """The checked metrics of all segments that are committed and served now, in the order of their steps.
        Raises ChainError.
        """
        self._look()
        view = self._standing.view
        if missing := self._losses.missing(view):
            try:
                outcome = Outcome(CURVE, self._losses.reading(view, missing)())
            except (MetricsError, BundleError, OSError) as error:
                outcome = Outcome(CURVE, error=error)
            self._take_points(outcome)
        return self._losses.points

    @property
    def result(self) -> Result | None:
        """The task's result; None until it is fetched."""
        return self._result

    # ------------------------------------------------------------------ the chain

    @property
    def _standing(self) -> Standing:
        standing = self._following.standing
        assert standing is not None, "a look that succeeded has read it"
        return standing

    def _look(self) -> None:
        """Look at the chain, report what is new, and check whether the task is over. Raises ChainError."""
        news = self._following.look()
        if news is not None:
            self._tell(news)
            self._may_have_ended = True
        if self._may_have_ended:
            self._look_for_end()
            self._may_have_ended = False

    def _tell(self, news: News) -> None:
        standing, first = self._standing, self._is_first
        self._is_first, self._seen_at = False, (news.block.time, time.monotonic())
        if news.rewound is not None:
            self._tell_rewound(news)
        if first:
            self._tell_which()
        words, left = standing.waits(news.block.time)
        for number, line in enumerate(news.lines, 1):
            last = (
                number == len(news.lines) and not first
            )  # only a look's last line also says what comes next
            self._listener.line(
                "event",
                f"{line.text} · {words}" if last else line.text,
                line.time,
                event=line.event.name,
                block=line.event.log.block,
                transaction=line.event.log.transaction,
                arguments=dict(line.event.arguments),
                next=words,
                seconds_left=left,
            )
        if first:
            status = standing.report.status
            told = f"task {self._task} is {status} · {words}"
            self._listener.line("now", told, news.block.time, status=status, next=words, seconds_left=left)
        names = {line.event.name for line in news.lines}
        if names & {"Progressed", "Submitted"}:
            self._beside.hurry(CURVE)
        if names & {"Submitted", "Attested", "Settled"}:
            self._beside.hurry(RESULT)
        longest = max(self._pace, min(LONGEST_WAIT, NEWEST * self._pace))
        self._wait = self._pace if news.lines else min(longest, self._wait * 1.5)

    def _tell_which(self) -> None:
        """Say which task is watched, because a re-organisation may have given its number to another task."""
        known = self._following.known
        bundle = known.terms.bundle_hash
        name = task_name(self._home, bundle)
        called = f"task {self._task}" if name is None else f"task {self._task} ({name})"
        self._listener.line(
            "task",
            f"{called}: bundle {bundle.hex()[:16]}…, posted by {known.submitter}",
            name=name,
            bundle=bundle,
            submitter=known.submitter,
        )

    def _tell_rewound(self, news: News) -> None:
        void = [told.text.strip() for told in news.void]
        self._listener.line(
            "reorganisation",
            f"the chain was re-organised after block {news.rewound}: {len(void)} of the lines above are void",
            news.block.time,
            after=news.rewound,
            void=void,
        )
        for text in void:
            self._listener.line("void", f"void: {text}")
        self._losses.rewind()
        if self._result is not None and self._result.root != self._standing.view.result:
            self._result = None
            self._listener.line("void", "void: the result that was fetched")

    # ------------------------------------------------------------------ work beside the loop

    def _begin_work(self) -> None:
        """Start the work that the task's state requires."""
        view = self._standing.view
        if view.status is TaskStatus.BIDDING and view.bidder == NOBODY:
            over = self._seen_at[0] > view.bids_until
            if over not in self._asked and self._begin(UNTAKEN, self._reasons):
                self._asked.add(over)
        missing = self._losses.missing(view)
        if missing:
            self._begin(CURVE, self._losses.reading(view, missing))
        if view.status in (TaskStatus.SUBMITTED, TaskStatus.SETTLED) and self._result is None:
            known = self._following.known
            self._begin(RESULT, lambda: fetch(self._client, self._home, self._task, self._limits, known))

    def _begin(self, kind: str, work: Callable[[], Any]) -> bool:
        may = self._beside.may_begin(kind)
        if may:
            self._beside.begin(kind, work)
        return may

    def _pass_time(self, until: float) -> None:
        """Wait until the next look is due, or until a piece of work ends; in the second case, report the
        outcome of the work. Meanwhile, show the progress.
        """
        deadline = min(until, time.monotonic() + self._wait)
        while (left := deadline - time.monotonic()) > 0:
            self._show_progress()
            outcome = self._beside.wait(min(left, 1.0) if self._listener.refreshes else left)
            if outcome is not None:
                self._take(outcome)
                return

    def _take(self, outcome: Outcome) -> None:
        error = outcome.error
        if error is not None and not isinstance(error, (AssayError, OSError)):
            raise error
        {CURVE: self._take_points, RESULT: self._take_result, UNTAKEN: self._take_reasons}[outcome.kind](
            outcome
        )

    def _reasons(self) -> list[str]:
        return reasons(self._client, self._following.terms, self._limits.this_machine)

    def _take_reasons(self, outcome: Outcome) -> None:
        found = outcome.result if outcome.error is None else [f"it cannot be said why: {outcome.error}"]
        if found != self._untaken:
            self._untaken = found
            for reason in found:
                self._listener.line("untaken", f"no bid yet: {reason}", reason=reason)

    def _take_points(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            if str(outcome.error) != self._refused:
                self._refused = str(outcome.error)
                self._listener.line("metrics", f"metrics are not shown: {outcome.error}", verified=False)
            return
        self._refused = ""
        self._listener.points(self._losses.keep(outcome.result))

    def _take_result(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            self._take_failure(outcome.error)
            return
        found: Result = outcome.result
        if found.root != self._standing.view.result:  # of another branch of the chain
            return
        text = f"the result is here: its state has the committed root {found.root.hex()[:16]}…"
        told: dict[str, Any] = {"file": None, "final": found.final, "metrics": found.metrics, "history": None}
        if self._folder is not None:
            try:
                told = write(
                    self._client, self._home, self._output, found, self._folder, self._file, lenient=True
                )
            except (AssayError, OSError) as error:
                self._beside.spoil(RESULT)
                self._take_failure(error)
                return
        self._result = found
        self._listener.line("result", text, root=found.root, verified=True, **told)

    def _take_failure(self, error: Exception) -> None:
        """Record why there is no result, and report the first failure in a row. The result is fetched again
        later.
        """
        self._failure = error
        if self._beside.failures(RESULT) == 1:
            self._listener.line("result", f"no result yet: {error}", verified=False)

    def _show_progress(self) -> None:
        standing = self._following.standing
        if standing is None or not self._listener.refreshes:
            return
        report, (seen, at) = standing.report, self._seen_at
        words, left = standing.waits(seen + int(time.monotonic() - at))
        counts = report.checkpoints, report.segments
        self._listener.progress(
            Progress(self._task, report.status, *counts, words, left, self._losses.curve())
        )

    # ------------------------------------------------------------------ the end

    def _look_for_end(self) -> None:
        """Record whether the task is over in a block that is final. Raises ChainError."""
        is_over = self._standing.view.status.is_over
        self._is_final = is_over and self._client.is_over_for_good(self._task)
        if is_over and not self._is_final:
            self._listener.state("the end is not final yet: the chain might still be re-organised")

    def _ended(self) -> ExitCode | None:
        """The exit code once the task is over for good and nothing more needs to be fetched; None before.
        Raises the last error if `LAST_TRIES` attempts to fetch or write a settled task's result have failed.
        """
        if not self._is_final:
            return None
        standing = self._standing
        view, failures = standing.view, self._beside.failures
        if view.status is TaskStatus.SETTLED and self._result is None:
            if failures(RESULT) < LAST_TRIES:
                return None
            assert self._failure is not None
            raise self._failure
        if self._losses.missing(view) and not failures(CURVE):
            return None
        if curve := self._losses.curve():
            self._listener.line("curve", f"{curve}; each value as committed", curve=curve)
        text = _end(view.status, view.bidder != NOBODY)
        if view.status is TaskStatus.SLASHED and self._result is not None and self._folder is not None:
            text += f"; do not use what is in {self._folder}"
        self._listener.line("end", f"task {self._task} is over, {text}", status=view.status.name.lower())
        return ENDS[view.status]


def _end(status: TaskStatus, sold: bool) -> str:
    late = "the solver was late: the submitter has its escrow back, and half of the solver's penalty"
    return {
        TaskStatus.SETTLED: "settled: the result is final",
        TaskStatus.SLASHED: "the solver was convicted: its result is false, and the submitter has its escrow back",
        TaskStatus.REFUNDED: late if sold else "without a bid: the submitter has its escrow back",
        TaskStatus.VOID: "void: its result was not audited",
    }[status]


def watch(
    client: Client,
    home: Home,
    limits: Limits,
    output: Output,
    task: int,
    folder: Path | None,
    file: Path | None,
    callbacks: Sequence[Callback] = (),
    known: KnownTask | None = None,
) -> ExitCode:
    """Watch a task, and return the exit code. `known` is the task to watch; by default, it is the task that
    has the number `task` now. Ctrl-C stops watching, and the exit code is then INTERRUPTED. Raises the errors
    of `Watch.run` and of `callbacks`.
    """
    printer = Printer(output, callbacks=callbacks)
    try:
        return Watch(client, home, limits, output, printer, task, folder, file, known=known).run()
    except KeyboardInterrupt:
        printer.end()
        output.say(f"left; `assay watch {task}` goes on")
        return ExitCode.INTERRUPTED
    finally:
        printer.end()
