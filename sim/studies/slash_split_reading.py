"""Findings of the study `slash_split`, and its closed forms. Amounts are tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sim.agents.solvers import Lazy
from sim.engine.simulate import Case
from sim.mechanism.arrays import Floats
from sim.studies.grids import within
from sim.studies.points import crossing, grid, where
from sim.studies.study import Claim, Finding, Point, Study, Table
from sim.studies.tables import draws
from sim.theory import caught_probability, concession_pays, self_challenge
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPLIT: Final = ("reward", "restitution")
PENALTY: Final = ("reward", "delay_penalty")
UNIT: Final = 1 / TOKEN
"""Error of amounts that are deterministic but rounded to whole units."""


class Forms:
    """Closed forms at one point."""

    def __init__(self, case: Case) -> None:
        self.parameters = parameters = case.parameters
        self.stake = parameters.stake / TOKEN
        gas = parameters.gas_price
        self.task, self.defence, self.dispute = (
            gas * used for used in (parameters.gas_task, parameters.gas_defence, parameters.gas_dispute)
        )
        self.net, self.net_challenger = (
            self_challenge(
                stake=parameters.stake,
                reward=parameters.reward,
                restitution=parameters.restitution,
                own_task=own,
            ).net_cost
            / TOKEN
            for own in (True, False)
        )
        """Stake that a cheater loses if it gets back both the reward and the restitution (`net`), or only the
        reward (`net_challenger`).
        """
        self.reward = self.stake - self.net_challenger
        self.claims = parameters.verifiers * (parameters.game_cost + parameters.seat_fee) / TOKEN
        """Total paid to the seats if all of them challenge."""
        self.audits = parameters.verifiers * parameters.segments_per_verifier
        self.honest = case.population.honest
        strategy = case.population.solvers[0].strategy
        self.false = strategy.false(parameters) if isinstance(strategy, Lazy) else 0

    @property
    def conceding(self) -> float:
        """Loss of a solver and submitter that collude and convict the solver by their own challenge. The draw
        fee and the gas are included.
        """
        return self.net + self.parameters.draw_fee / TOKEN + self.task + self.defence + self.dispute

    @property
    def late(self) -> float:
        """Loss of a solver and submitter that collude and let a deadline pass. Half of the penalty returns to
        the submitter.
        """
        penalty = self.parameters.delay_penalty
        return (penalty - penalty // 2) / TOKEN + self.task

    @property
    def work(self) -> float:
        """Cost of proving that a result is false, for all seats together."""
        parameters = self.parameters
        replay = parameters.replay_cost * parameters.training_cost / parameters.segments / TOKEN
        return self.audits * replay + parameters.verifiers * self.dispute

    @property
    def caught(self) -> float:
        """Chance that the cheater with few false segments has to concede."""
        parameters = self.parameters
        return float(
            caught_probability(
                parameters.segments,
                self.false,
                parameters.segments_per_verifier,
                parameters.verifiers,
                self.honest,
                accounts=parameters.verifier_count,
            )
        )

    @property
    def at_stake(self) -> float:
        """What a concession costs the cheater, apart from the gain that it misses. The audit fees of its
        task, which the cheater saves, are subtracted.
        """
        return self.net + self.defence + self.dispute - self.audits * self.parameters.audit_fee / TOKEN

    @property
    def insured(self) -> float:
        """A cheater's advantage over honest work, if the cheater concedes whatever would be proven against
        it. The cheater is also the submitter, so it pays the price to itself.
        """
        parameters, caught = self.parameters, self.caught
        saved = self.false / parameters.segments * parameters.training_cost
        return (saved + (1 - caught) * parameters.gain) / TOKEN - caught * self.at_stake

    @property
    def enough(self) -> float:
        """The cost of a self-challenge with which the advantage `insured` is 0."""
        return self.net + self.insured / self.caught


@dataclass(frozen=True)
class Rows:
    """Means and standard errors of all measures by point, with their study, closed forms and table."""

    study: Study
    points: Sequence[Point]
    forms: Sequence[Forms]
    means: Mapping[str, Floats]
    errors: Mapping[str, Floats]
    tasks: int
    table: Table

    def draws(self, *numbers: int, rounds: int | None = None) -> int:
        """Number of distinct random draws behind the results at the points `numbers`. Each run counts as
        `rounds` draws or, by default, as one draw for each of its rounds.
        """
        return draws(self.table, *numbers, each=rounds)

    def error(self, name: str, number: int) -> float:
        """Standard error of a measure's mean at one point, but at least one token unit. With a single run, it
        is one token unit.
        """
        seen = self.errors[name][number]
        return float(max(seen, UNIT)) if np.isfinite(seen) else UNIT


Part = tuple[list[Finding], list[Claim]]


def cost(rows: Rows) -> Part:
    """Findings and claims on the cost of a self-challenge at each split."""
    chosen = within(rows.study, rows.points, SPLIT)
    claims = []
    overhead = np.array([form.conceding - form.net for form in rows.forms])
    net = -rows.means["conceding"] - overhead
    for n in chosen:
        form, at = rows.forms[n], where(rows.study, rows.points[n], *SPLIT)
        claims.append(
            Claim(
                f"tokens that a self-challenge costs, own task, at {at}",
                form.net,
                float(net[n]),
                rows.error("conceding", n),
                draws=rows.draws(n, rounds=1),
            )
        )
        alone = -float(rows.means["conceding_challenger"][n]) - form.task - form.defence - form.dispute
        claims.append(
            Claim(
                f"tokens that it costs, another's task, at {at}",
                form.net_challenger,
                alone,
                rows.error("conceding_challenger", n),
                draws=rows.draws(n, rounds=1),
            )
        )
    share = net[chosen] / np.array([rows.forms[n].stake for n in chosen])
    burned = min(-(-rows.forms[n].parameters.stake // 4) / rows.forms[n].parameters.stake for n in chosen)
    sentence = (
        f"Convicting itself costs a cheater {share.min():.0%} to {share.max():.0%} of its stake when it is its own "
        f"challenger and submitter, {'never' if share.min() > burned - 1e-9 else 'at times'} less than the burned "
        f"{burned:.0%}"
    )
    across, up, laid = grid([rows.points[n] for n in chosen], share, *SPLIT)
    if min(laid.shape) < 2:
        return [Finding(sentence)], claims
    from sim.figures import heat_map

    figure = heat_map(
        across / TOKEN,
        up / TOKEN,
        laid,
        x="reward, tokens",
        y="restitution, tokens",
        label="cost of a self-challenge, share of the stake",
        contours=(),
    )
    return [Finding(sentence, figure)], claims


def concession(rows: Rows) -> Part:
    """Findings and claims on the settings in which conceding is cheaper than missing a deadline."""
    chosen = within(rows.study, rows.points, PENALTY)
    claims, limits = [], []
    gain = rows.means["conceding"] - rows.means["late"]
    for n in chosen:
        form, at = rows.forms[n], where(rows.study, rows.points[n], *PENALTY)
        error = rows.error("conceding", n) + rows.error("late", n)
        claims.append(
            Claim(
                f"tokens that conceding saves over a missed deadline at {at}",
                form.late - form.conceding,
                float(gain[n]),
                error,
                draws=rows.draws(n, rounds=1),
            )
        )
    # Points whose gain exceeds gas and the draw fee, which `concession_pays` leaves out.
    clear = [n for n in chosen if abs(gain[n]) > rows.forms[n].conceding - rows.forms[n].net]
    agree = sum((gain[n] > 0) == _pays(rows.forms[n]) for n in clear)
    claims.append(
        Claim(
            "splits at which conceding pays on the side that theory says",
            len(clear),
            agree,
            0.0,
            draws=rows.draws(*chosen, rounds=1),
        )
    )
    for reward in sorted({rows.points[n]["reward"] for n in chosen}):
        numbers = sorted(
            (n for n in chosen if rows.points[n]["reward"] == reward),
            key=lambda n: rows.points[n]["delay_penalty"],
        )
        penalty = np.array([rows.points[n]["delay_penalty"] / TOKEN for n in numbers])
        zero = crossing(penalty, gain[numbers], np.full(len(numbers), UNIT))
        if zero is not None:
            limits.append((reward / TOKEN, rows.forms[numbers[0]].net, *zero))
    half = 2 * min(-(-form.parameters.stake // 4) for form in rows.forms) / TOKEN
    if not limits and max(gain[n] for n in chosen) <= 0:
        return [Finding("Conceding to oneself beats missing a deadline at no reward and no penalty")], claims
    if not limits:
        return [], claims
    low, high = limits[0], limits[-1]
    safe = [gain[n] <= 0 for n in chosen if rows.points[n]["delay_penalty"] <= half * TOKEN]
    verb = "never" if all(safe) else "also"
    sentence = (
        f"Conceding to oneself beats missing a deadline from a penalty of {low[2]:,.0f} tokens at a reward of "
        f"{low[0]:,.0f}, of {high[2]:,.0f} at {high[0]:,.0f}; {verb} with a penalty of at most half of the stake, "
        f"{half:,.0f}, for half of the penalty is the submitter's"
    )
    across, up, laid = grid([rows.points[n] for n in chosen], gain[chosen], *PENALTY)
    return [Finding(sentence, _concessions(across, up, laid, limits))], claims


def _pays(form: Forms) -> bool:
    parameters = form.parameters
    return concession_pays(
        stake=parameters.stake,
        reward=parameters.reward,
        delay_penalty=parameters.delay_penalty,
        restitution=parameters.restitution,
        own_task=True,
    )


def _concessions(
    across: Floats, up: Floats, laid: Floats, limits: Sequence[tuple[float, float, float, float]]
) -> Figure:
    from sim.figures import heat_map

    figure = heat_map(
        across / TOKEN,
        up / TOKEN,
        laid,
        x="reward, tokens (line: no difference by the closed form)",
        y="penalty of a missed deadline, tokens",
        label="conceding over missing a deadline, tokens",
        contours=(),
    )
    figure.axes[0].plot([limit[0] for limit in limits], [limit[1] for limit in limits], color="black")
    return figure


def whistleblowers(rows: Rows) -> Part:
    """Findings and claims on what the verifiers of a task earn together if they prove that its result is
    false, for each reward.
    """
    every = within(rows.study, rows.points, SPLIT)
    first = min(rows.points[n]["restitution"] for n in every)
    chosen = sorted(
        (n for n in every if rows.points[n]["restitution"] == first),
        key=lambda n: rows.points[n]["reward"],
    )
    claims = []
    for n in chosen:
        form, at = rows.forms[n], where(rows.study, rows.points[n], "reward")
        for name, text, prize in (
            ("whistleblowers", "verifiers earn by proving a false result", form.reward + form.claims),
            ("whistleblowers_preempted", "they earn when an insider is first", form.claims),
        ):
            measured = float(rows.means[name][n])
            claims.append(
                Claim(
                    f"tokens that {text} at {at}",
                    prize - form.work,
                    measured,
                    rows.error(name, n),
                    draws=rows.draws(n, rounds=1),
                )
            )
    reward = np.array([rows.points[n]["reward"] / TOKEN for n in chosen])
    earned, later = (rows.means[name][chosen] for name in ("whistleblowers", "whistleblowers_preempted"))
    zero = crossing(reward, earned, np.array([rows.error("whistleblowers", n) for n in chosen]))
    sentence = (
        f"Who proves a false result earns up to {earned.max():,.0f} tokens for the seats of a task together"
        f"{f', and nothing below a reward of {zero[0]:,.0f}' if zero else ''}; where an insider is first they have "
        f"{later.mean():+,.1f} at any reward"
    )
    from sim.figures import Line, lines

    preempted = np.array([rows.forms[n].claims - rows.forms[n].work for n in chosen])
    expected = preempted + np.array([rows.forms[n].reward for n in chosen])
    figure = lines(
        [
            Line("nobody before them", reward, expected, points=earned),
            Line("insider first", reward, preempted, points=later),
        ],
        x="reward, tokens (lines: theory, dots: engine)",
        y="earned by all seats of a task, tokens",
        level=0.0,
    )
    return [Finding(sentence, figure)], claims


def insured(rows: Rows) -> Part:
    """Findings and claims on a cheater's advantage over honest work, if the cheater concedes whatever would
    be proven against it. The advantage depends on the cost of the concession.
    """
    chosen = within(rows.study, rows.points, SPLIT)
    claims = []
    for n in chosen:
        form = rows.forms[n]
        coin = max(float(np.sqrt(form.caught * (1 - form.caught) / rows.tasks)), 1 / rows.tasks)
        error = max(rows.error("insured", n), coin * (form.at_stake + form.parameters.gain / TOKEN))
        at = where(rows.study, rows.points[n], *SPLIT)
        text = f"advantage in tokens of a cheater that concedes ({form.false} false) at {at}"
        claims.append(Claim(text, form.insured, float(rows.means["insured"][n]), error, draws=rows.draws(n)))
    net, order = np.unique([rows.forms[n].net for n in chosen], return_index=True)
    measured = np.array([claims[i].measured for i in order])
    spread = np.array([claims[i].error for i in order])
    form = rows.forms[chosen[0]]
    zero = crossing(net, measured, spread)
    if zero is None:
        return [], claims
    claims.insert(
        0,
        Claim(
            "cost of a self-challenge below which few false segments pay, tokens",
            form.enough,
            *zero,
            draws=rows.draws(*(chosen[i] for i in order)),
        ),
    )
    sentence = (
        f"What a self-challenge costs deters, not the stake of {form.stake:,.0f} tokens: {form.false} of "
        f"{form.parameters.segments:,} segments false pay while it is below {zero[0]:,.0f} (theory {form.enough:,.0f})"
    )
    from sim.figures import Line, lines

    expected = np.array([claims[1 + i].expected for i in order])
    figure = lines(
        [Line("", net, expected, measured - 4 * spread, measured + 4 * spread, measured)],
        x="what a self-challenge costs, tokens (line: theory, dots: engine with 4 standard errors)",
        y="advantage over honest work, tokens a task",
        level=0.0,
    )
    return [Finding(sentence, figure)], claims
