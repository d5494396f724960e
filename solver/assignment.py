"""One task that this solver has won: it is trained in the background, committed, submitted, and settled once
it is over.

The task's state is read from the chain and the run store each time, so a restart at any point continues from
there. Once all checkpoints are kept and the run is submitted, only the mapped bundle stays in memory.
Whatever else a game needs is made for that game.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus, TaskView
from protocol.execution.replay import Work
from protocol.execution.turns import Scheduled
from protocol.node.words import duration
from protocol.program.scales import scales
from protocol.program.step import State
from protocol.tasks.bundles import BundleError
from protocol.tasks.task import Terms
from solver import settlement
from solver.background import in_thread
from solver.bundle_cache import task_bundle
from solver.committing import Committer
from solver.context import Context
from solver.database import Stage
from solver.errors import RunStoreError, SolverError
from solver.processes import runner
from solver.progress import Progress
from solver.run_store import Materials, RunStore
from solver.trainer import Trainer
from solver.training import Training

if TYPE_CHECKING:
    from protocol.execution.replay import Executor
    from protocol.tasks.bundles import Bundle

FEW_BITS = 4.0
"""A warning is given if the typical values of a contraction's row keep fewer bits than this. Values with 4
bits are up to 3 % off (half of 2^-4).
"""
HARMLESS = frozenset({"TreeSize", "TooLate", "WrongStatus", "NotEnoughFree", "UnknownTask", "NotAllowed"})
"""Errors of a reverted commitment that only mean that the chain, or this account's balance, has changed. The
next look at the task handles them. UnknownTask and NotAllowed mean that a re-organisation has taken back the
task's post or its assignment to this solver.
"""


class Assignment:
    """A won task, from loading its bundle to its end. Raises BundleError if the bundle is neither on disk nor
    available elsewhere. Used by one thread, which never computes.
    """

    def __init__(self, context: Context, task: int, progress: Progress) -> None:
        self._context = context
        self._progress = progress
        self.task = task
        self.terms = context.client.market.terms(task)
        context.folders.begin(task, self.terms.bundle_hash)
        bundle = task_bundle(context, self.terms)
        self._work = Work.of(task, bundle)
        context.expect(self._work, self.terms.bundle_hash, bundle.held)
        self._hints = bundle.hints
        self._name = bundle.name
        # For the training only; None once it is done (`_release`).
        self._bundle: Bundle | None = None
        self._executor: Executor | None = None
        if context.database.kept(task) <= self.terms.segments:
            self._bundle, self._executor = bundle, context.strategy.executor(self._work)
        self.run_store = RunStore(
            task,
            self._work.program,
            self._materials,
            self.terms.segments,
            self.terms.segment_steps,
            context.database,
            context.folders.store(task),
        )
        context.catalog.put(self.run_store)
        self.refused: SolverError | None = None
        self._trainer: Trainer | None = None
        self._scheduled = Scheduled(0)
        self._warned = False
        self._stalled = False
        self.failed_after = 0.0
        """If the last tick raised the failure of the training: the seconds from the training's last step to
        this failure, or from the training's start if it did no step. Otherwise 0.
        """
        self._committer = Committer(context, self.run_store)

    def tick(self, view: TaskView) -> None:
        """Start what is due now. The training runs on its own thread.

        If the market refuses the run because of what was committed, `refused` has the error, and nothing more
        is sent for the task. Raises the error that ended the training; the next tick restarts the training
        from the last checkpoint. Also raises the error with which a commitment could not be sent.
        """
        self.failed_after = 0.0
        if self.refused is not None:
            return
        if view.size > self.run_store.committed:  # the database is older than the chain
            self.run_store.commit(view.size)
        if view.status is TaskStatus.TRAINING:
            left = view.train_until - self._context.client.now()
            if left < 0:
                self._expire()
            else:
                self._train(view, left)
        elif view.status.can_be_challenged:
            self._complete(view)
            self._stage(Stage.SUBMITTED)
            if view.status is TaskStatus.UNPAID and not self._stalled:
                self._stalled = True
                self._context.log.error(
                    "not paid, the stake is locked",
                    task=self.task,
                    for_another=duration(view.challenge_until - self._context.client.now()),
                )
            settlement.advance(self._context, view, self.terms)

    @property
    def unsubmitted(self) -> bool:
        """Whether training is done, and only the last checkpoints and the submission are missing."""
        return self._trainer is not None and self._trainer.done

    @property
    def idle(self) -> bool:
        """Whether no training runs, and no commitment is being sent."""
        return (self._trainer is None or self._trainer.ended) and not self._committer.busy

    def pause(self) -> None:
        """Let the training end after the present segment."""
        if self._trainer is not None:
            self._trainer.pause()

    def close(self, wait: bool = True) -> None:
        """End the training after its present step, and the commitments' worker once its transaction is sent.
        Checkpoints of finished segments are kept. With `wait`, return only when both have ended.
        """
        self._end_training(wait)
        self._committer.close(wait)

    def give_back(self) -> Future[None]:
        """End like `close`, and stop serving the task, because it no longer belongs to this solver. The
        returned future is done once nothing more is computed, written or sent for the task.
        """
        trainer = self._trainer
        self._end_training()
        self._release()
        self._context.catalog.forget(self.task)

        def wait() -> None:
            if trainer is not None:
                trainer.join()
            self._committer.close()

        return in_thread(wait)

    def retire(self) -> None:
        """The task is over: keep serving its checkpoints, and release everything else."""
        self.close(wait=False)
        self._context.catalog.retire(self.task, partial(_loaded_again, self._context, self.task, self.terms))

    def _train(self, view: TaskView, left: int) -> None:
        trainer = self._trainer = self._trainer or self._begun(view)
        self._warn_if_late(left, view.price)
        if trainer.ended and trainer.failure is not None:
            self.failed_after = trainer.failed_after
            self._end_training()
            raise trainer.failure
        try:
            if trainer.ended and trainer.done:
                self._committer.submit(self.terms.stake - self.terms.delay_penalty)
            elif not trainer.done:
                self._offer()
        except Reverted as error:
            if error.name not in HARMLESS:
                self.refused = SolverError(f"task {view.task}: the market refuses this run: {error}")
                self._context.log.error("run refused", task=self.task, error=str(error))
            else:
                self._context.log.info("commitment refused", task=self.task, error=error.name)

    def _complete(self, view: TaskView) -> None:
        """If checkpoints are lost after the submission, train their segments again, because the checkpoints
        must be served and defended. Once all checkpoints are kept, release what only the training needs.
        Raises the error that ended this training.
        """
        if self.run_store.size > self.terms.segments:
            self._end_training()
            self._release()
            return
        if self._trainer is None:
            kept = self.run_store.size
            self._context.log.error("checkpoints are lost, trained again", task=self.task, kept=kept)
            self._trainer = self._begun(view)
        if self._trainer.ended and (failure := self._trainer.failure) is not None:
            self.failed_after = self._trainer.failed_after
            self._end_training()
            raise failure

    def _release(self) -> None:
        """Release the initial state and the executor. On a GPU, the executor holds a copy of the dataset and
        the recorded step. During the audit, which takes days, only games and questions need a state and an
        executor, and each of their replays makes new ones.
        """
        self._bundle = self._executor = None

    def _executor_now(self) -> Executor:
        """The training's executor or, if that has been released, a new one for the caller alone."""
        return self._executor or self._context.strategy.executor(self._work)

    def _materials(self) -> Materials:
        executor = self._executor_now()
        return self._work.fixed, self._context.in_turns(executor, self.task, self.terms)

    def _begun(self, view: TaskView) -> Trainer:
        self._scheduled = scheduled = Scheduled(view.train_until, self._context.places.of(self.task))
        return Trainer(partial(self._open_training, scheduled), self._on_step, self._on_segment)

    def _open_training(self, scheduled: Scheduled) -> Training:
        """Open the training. Runs on the trainer's thread."""
        steps = runner(self._context, self._work, self.terms, self._executor_now())
        kept = self._context.metrics.checkpoints.inc
        turns = partial(self._context.turns.scheduled, scheduled)
        training = Training(self.run_store, self._start, kept, steps, turns)
        self._progress.begin(self.task, training.steps, training.steps_done, self._name, scheduled.waited)
        return training

    def _on_segment(self, training: Training) -> None:
        if training.segments_done % -(-self.terms.segments // 4) == 0:
            with self._context.turns.ordinary():
                self._log_scales(training.state)

    def _warn_if_late(self, left: int, price: int) -> None:
        """Warn if the training, at its present rate, will miss its deadline, which is `left` seconds from
        now. While the training stays late, the warning is not repeated.
        """
        needed = self._progress.due(self.task, left)
        late = needed is not None and needed > left
        if late and not self._warned:
            self._context.log.warning(
                "training will not end in time",
                task=self.task,
                seconds_needed=round(needed or 0),
                seconds_left=left,
                penalty_tokens=self.terms.delay_penalty / TOKEN,
                price_tokens=price / TOKEN,
            )
        self._warned = late

    def _offer(self) -> None:
        """Commit the kept checkpoints each time `segments_between` more segments are complete. The kept
        checkpoints may lag behind the training.
        """
        every = self._context.settings.segments_between(self.terms)
        kept = self.run_store.size
        if (kept - 1) // every > max(0, self.run_store.committed - 1) // every:
            self._committer.offer(kept)

    def _end_training(self, wait: bool = False) -> None:
        trainer, self._trainer = self._trainer, None
        if trainer is None:
            return
        trainer.stop()
        self._context.turns.drop(self._scheduled)
        self._progress.end(self.task)
        if wait:
            trainer.join()
            if trainer.failure is not None:
                self._context.log.error("training ended", task=self.task, error=str(trainer.failure))

    def _start(self) -> State:
        bundle = self._bundle or task_bundle(self._context, self.terms)
        return self._context.strategy.start(self._work, bundle.initial_state())

    def _on_step(self, number: int, state: State) -> None:
        self._context.metrics.steps.inc()
        self._progress.step(self.task, number, state)

    def _log_scales(self, state: State) -> None:
        """Log how far the largest value of a contraction's row exceeds the row's typical values. If it
        exceeds them by far, the typical values may keep only few bits. Only the worst case is logged. This
        computation costs as much as one step.
        """
        found = scales(self._work.program, state, self._work.fixed, self._work.kernels, self._hints)
        if not found:
            return
        worst = found[0]
        few = worst.left < FEW_BITS
        log = self._context.log.warning if few else self._context.log.debug
        log(
            # A contraction multiplies rows of fixed-point numbers; the largest value sets their exponent.
            "rounding grows: one value outweighs its row, the others keep few bits"
            if few
            else "contraction scales",
            task=self.task,
            function=worst.function,
            instruction=worst.number,
            operand=worst.operand,
            max_over_rms=round(worst.ratio, 1),
            bits_left=round(worst.left, 1),
        )

    def _expire(self) -> None:
        """The deadline is missed, and the penalty is lost: stop the training and end the task."""
        if self._trainer is not None:
            self._context.log.error("deadline missed, training stopped", task=self.task)
            self._end_training()
        self._context.begin(self.task, "expire", partial(self._context.client.market.expire, self.task))

    def _stage(self, stage: Stage) -> None:
        row = self._context.database.task(self.task)
        if row is None or row.stage is not stage:
            self._context.database.put(self.task, stage)


def _loaded_again(context: Context, task: int, terms: Terms) -> Materials:
    """Load, from a finished task's bundle, what a replay of the task needs. Raises
    RunStoreError if the bundle is lost.
    """
    try:
        work = Work.of(task, task_bundle(context, terms))
    except BundleError as error:
        raise RunStoreError(f"task {task}: its bundle is lost: {error}") from error
    return work.fixed, context.in_turns(context.strategy.executor(work), task, terms)
