"""`assay split`: turns a task's step into a job of several lanes. The job is a folder, and `solver lane`
trains it. Needs no chain.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from pydantic import ValidationError

from assay import source as sources
from assay.commands import Context
from assay.description import read
from assay.errors import PlanError
from assay.folders import require_new
from protocol.chain.accounts import DEVELOPMENT_ACCOUNTS, DEVELOPMENT_CHAIN, development_account
from protocol.commitments.atomic import write_atomically
from protocol.exchange.jobs import Numbers, first_of, load_job, write_job
from protocol.exchange.members import FILE, FIRST_PORT, members_document
from protocol.program.library.lanes import BLOCKS


def split(
    context: Context,
    file: Path,
    folder: Path,
    width: int,
    density: str,
    inner_steps: int,
    rate: float,
    most_exponent: int,
    steps: int | None = None,
) -> None:
    """Capture the step of a task file and write the job's folder, which must be new or empty. If there is a
    development account for each lane, also write a members file with these accounts, for trying the job on
    one machine. Each lane trains `steps` steps, by default as many as the task has.

    Raises DescriptionError, PlanError and NotMade before the capture, and SourceError, StartError,
    CaptureError, LanesError, JobError.
    """
    description = read(file)
    if steps is not None:
        task = description.task.model_copy(update={"segments": 1, "segment_steps": steps})
        description = description.model_copy(update={"task": task})
    rounds, left = divmod(description.steps, inner_steps)
    if left or not rounds:
        raise PlanError(
            "--inner-steps",
            expected=f"a number that divides the {description.steps} steps of a lane",
            got=str(inner_steps),
        )
    part = density_of(density)
    _require_numbers(width, part, inner_steps, rounds, rate, most_exponent)
    require_new(folder)
    captured = sources.captured(description)
    job = write_job(
        captured.step,
        folder,
        name=description.task.name,
        width=width,
        density=part,
        inner_steps=inner_steps,
        rounds=rounds,
        seed=captured.seed,
        rate=rate,
        most_exponent=most_exponent,
    )
    lanes = load_job(folder).lanes
    members = "the lanes' accounts and addresses"
    if width <= DEVELOPMENT_ACCOUNTS:
        accounts = [str(development_account(number, DEVELOPMENT_CHAIN).address) for number in range(width)]
        urls = [[f"http://127.0.0.1:{FIRST_PORT + number}"] for number in range(width)]
        document = members_document(accounts, urls)
        write_atomically(folder / FILE, json.dumps(document, indent=1).encode() + b"\n")
        members = f"development accounts 0 to {width - 1} on this machine, in {FILE}"
    output = context.output
    output.say(f"job {job.hex()}: {width} lanes, {rounds} rounds of {inner_steps} steps, members: {members}")
    output.say(f"a message has {lanes.message_bytes:,} bytes; each lane receives {width - 1} of them a round")
    output.say(
        f"next: for each lane N, `solver lane {folder} --number N --dev-account N --port {FIRST_PORT}+N`"
    )
    output.result(
        {
            "job": job.hex(),
            "folder": str(folder),
            "lanes": width,
            "rounds": rounds,
            "inner_steps": inner_steps,
            "message_bytes": lanes.message_bytes,
        }
    )


def density_of(text: str) -> Fraction:
    """Parse a density option such as 1/8. Raises PlanError."""
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise PlanError("--density", expected="a fraction such as 1/8", got=text) from error
    known = [Fraction(1, block) for block in BLOCKS]
    if found not in known:
        raise PlanError("--density", expected=f"one of {', '.join(map(str, known))}", got=text)
    return found


def _require_numbers(
    width: int, density: Fraction, inner_steps: int, rounds: int, rate: float, most_exponent: int
) -> None:
    """Check the numbers that are known before the capture, with placeholders for what the capture determines.
    Raises PlanError.
    """
    try:
        Numbers(
            bundle="0" * 64,
            width=width,
            density=str(density),
            inner_steps=inner_steps,
            rounds=rounds,
            seed=0,
            rate=rate,
            most_exponent=most_exponent,
            parameters=("any",),
        )
    except ValidationError as error:
        raise PlanError("job", expected="numbers that lanes can have", got=first_of(error)) from error
