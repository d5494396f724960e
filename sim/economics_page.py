"""Generates docs/economics.md from the findings of all studies and from the recommended parameters.

`python -m sim.economics_page` takes the findings from the results in build/sim, which `make studies`
produces. It keeps the findings in docs/economics.json, draws their figures, and writes the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from protocol.chain.parameters import RECOMMENDED
from protocol.chain.parameters import TOKEN as CHAIN_TOKEN
from protocol.chain.recommendation import COIN_PRICE, GAS_PRICE, RULES
from protocol.commitments.atomic import write_atomically
from protocol.tasks.amounts import RETRAIN_BUDGETS
from sim.parameters import MarketParameters
from sim.recommendation import recommended, trust
from sim.results.report import svg
from sim.results.results import Results
from sim.studies.catalogue import STUDIES
from sim.studies.margins import challenges
from sim.theory import stake_multiple
from sim.trust_table import lines as trust_lines

DOCS: Final = Path(__file__).parents[1] / "docs"
KEPT: Final = DOCS / "economics.json"
PAGE: Final = DOCS / "economics.md"
FIGURES: Final = DOCS / "figures"
RESULTS: Final = Path("build/sim")
BUDGET: Final = 100 * CHAIN_TOKEN
DAY: Final = 86_400
WIDEST: Final = 10
"""Maximum number of claims that the page shows for each study: those with the widest tolerance."""
_SIZES: Final = (5, 10, 20, 60, 120, 300, 1000)

Kept = Mapping[str, Mapping[str, Any]]
Drawn = Mapping[str, str]
"""Contents of the figure files, by file name."""


def gather(results: Path) -> tuple[Kept, Drawn]:
    """Findings of all studies by name, and their figures. Raises ResultsError if a study has not been played."""
    kept, drawn = {}, {}
    for name in STUDIES:
        found = Results.at(results / name)
        findings = []
        for number, finding in enumerate(found.answer.findings, 1):
            file = f"economics-{name.replace('_', '-')}-{number}.svg"
            if finding.figure is not None:
                drawn[file] = _standing(svg(finding.figure, f"{name}{number}"))
            findings.append(
                {
                    "sentence": finding.sentence,
                    "note": finding.note,
                    "figure": file if finding.figure is not None else None,
                }
            )
        verdict = found.answer
        question = found.manifest["question"]
        kept[name] = {
            "question": found.study.question,
            "findings": findings,
            "claims": len(verdict.claims),
            "held": verdict.held,
            "weak": verdict.weak,
            "widest": [
                {"text": claim.text, "words": claim.words, "weak": claim.weak, "holds": claim.holds}
                for claim in verdict.ordered[:WIDEST]
            ],
            "points": found.manifest["points"],
            "runs": question["runs"],
            "rounds": question["rounds"],
            "seed": question["seed"],
        }
    return kept, drawn


def _standing(element: str) -> str:
    """Contents of an SVG file that consists of this element."""
    return '<?xml version="1.0" encoding="utf-8"?>\n' + element.rstrip() + "\n"


def page(kept: Kept) -> str:
    """The whole page."""
    order = sorted(kept, key=lambda name: (name != "recommended", name))
    return (
        "\n".join(
            [*_head(), *trust_lines(), *_parameters(), *_by_segments(), *_long(), *_studies(kept, order)]
        )
        + "\n"
    )


def _head() -> Iterator[str]:
    yield "# Economics: recommended defaults, and why"
    yield ""
    yield "Written by `make studies`, which plays what this code has not played yet (`sim run all --fresh`) and draws"
    yield "the figures; do not edit. Studies play each point with two seeds and its own random numbers; a claim is"
    yield "weak where its tolerance is over a tenth of the value and, for a chance, over 0.02 (docs/guide/studies.md)."
    yield "The values are those of `protocol/chain/presets/recommended.toml`, which the deployment, `assay submit` and"
    yield "the simulation read. What the simulation leaves out: `sim/ASSUMPTIONS.md`. The formulas: `sim/theory/`."
    yield ""


def _parameters() -> Iterator[str]:
    """Lines of the table of recommended defaults."""
    chain, rules = RECOMMENDED, RULES
    proof = challenges()
    rows = [
        (
            "stake S",
            "S_min + restitution + the greater reward",
            "the least with which no number of false segments pays, for every price up to the budget; what a cheater "
            "that is its own challenger, retrainer and submitter gets back is not counted on",
        ),
        (
            "seats V",
            rules.verifiers,
            "a wholly false result escapes with chance (1 - h)^V; more seats detect little more at the same V q",
        ),
        (
            "segments of a seat q",
            "by K, below",
            "the one at which audit fees and the stake's capital together cost least",
        ),
        (
            "assumed",
            f"h = {float(rules.honest_share):g}, G = {float(rules.gain):g} budget, capital at "
            f"{float(rules.capital_rate):.0%} a year, gas at {float(GAS_PRICE) / 1e9:g} gwei and "
            f"{float(COIN_PRICE):,g} tokens a coin",
            "one try at a draw: the beacon's round can be neither chosen nor missed (audit.md section 1)",
        ),
        (
            "audit fee",
            f"{float(rules.replay):g} budget / K for a segment, and a seat's gas",
            "what replaying the segment may cost",
        ),
        (
            "game cost",
            "a game's gas, and two replays of a segment",
            "what every seat that spoke up has on a conviction, no matter who convicted",
        ),
        (
            "reward",
            "two game costs, at most S / 8",
            f"with a game's cost and the fee a seat has {proof.least:.1f} to {proof.most:.1f} times what a challenge "
            "costs it, by K",
        ),
        (
            "reward of retrainers",
            f"{RETRAIN_BUDGETS} budgets, at most S / 8",
            "somebody did the whole work again, and waits for its pay; a cheater's accomplice may have it, so the "
            "stake counts on none of it",
        ),
        (
            "restitution",
            f"{float(rules.restitution):g} budget",
            "the submitter's loss; at most the budget in the contracts",
        ),
        (
            "delay penalty",
            f"{float(rules.delay_penalty):g} budgets",
            "half of it pays the submitter; far below half of S, or convicting oneself is cheaper than being late",
        ),
        (
            "bond",
            "two game costs, and twice the stake's capital while a game lasts",
            "half of a lost bond makes a wrongly accused solver whole; the other half burns",
        ),
        (
            "seat lock",
            "fee of the seat + draw fee",
            "what a silent account loses: its seat is drawn again at its cost",
        ),
        (
            "look chance e, where there are looks",
            "by K, budget and gas, above",
            "the one at which looks and the capital of locks together cost least; at most 32 segments of all seats",
        ),
        (
            "seat lock, where there are looks",
            "2 fees of the seat / (h (1 - (1 - e)^q)), at least four game costs",
            "half of it, times the chance to be caught by a looker that replays, is more than skipping saves",
        ),
        (
            "stake unit",
            _tokens(chain.stake_unit),
            "more than a seat locks at a budget of 100 tokens without looks",
        ),
        (
            "stall period",
            f"{chain.stall_period / DAY:g} days",
            f"time for {MarketParameters().redraws} redraws of {chain.draw_delay / 3600:g} h and a day",
        ),
        (
            "draw fee",
            _tokens(chain.draw_fee),
            "somebody must be paid to execute each draw; the escrow holds eight",
        ),
    ]
    yield "## Recommended defaults"
    yield ""
    yield "| parameter | recommended | why |"
    yield "|---|---|---|"
    for name, value, why in rows:
        yield f"| {name} | {value} | {why} |"
    yield ""


def _by_segments() -> Iterator[str]:
    yield f"## Terms by the number of segments, for a budget of {_tokens(BUDGET)}"
    yield ""
    yield "| K | V | q | stake | audit fee | game cost | bond | seat lock | all fees, budgets | trust, budgets |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for segments in _SIZES:
        terms = recommended(segments, BUDGET)
        yield (
            f"| {segments} | {terms.verifiers} | {terms.segments_per_verifier} | {_tokens(terms.stake)} "
            f"| {_tokens(terms.audit_fee)} | {_tokens(terms.game_cost)} | {_tokens(terms.bond)} "
            f"| {_tokens(terms.seat_lock)} | {_fees(segments):.3f} | {_trust(segments):.3f} |"
        )
    yield ""
    yield "Trust: audit fees, a draw, gas, and the capital of the stake and of all locks, for a training of three days"
    yield "that is settled five days after its draw; without second looks."
    yield ""


def _fees(segments: int) -> float:
    """Fees of all seats, as a multiple of the budget."""
    terms = recommended(segments, BUDGET)
    return terms.verifiers * terms.seat_fee / BUDGET


def _trust(segments: int) -> float:
    """Total cost of trust, as a multiple of the budget."""
    return trust(segments, BUDGET).total / BUDGET


def _long() -> Iterator[str]:
    thin, short, long = MarketParameters(), _SIZES[0], _SIZES[-1]
    needed = stake_multiple(
        segments=thin.segments,
        segments_per_verifier=thin.segments_per_verifier,
        verifiers=thin.verifiers,
        honest=float(RULES.honest_share),
        gain_ratio=float(RULES.gain),
    )
    yield "## What long tasks need"
    yield ""
    yield "At a fixed audit the least stake grows in proportion to K. The simulation's default market"
    yield f"(K = {thin.segments}, V = {thin.verifiers}, q = {thin.segments_per_verifier}) takes {needed:,.1f} prices as"
    yield "stake. `assay submit` lets q and the stake grow with K, so that both together cost least: audit fees are"
    yield f"{_fees(short):.3f} budgets at K = {short} and {_fees(long):.3f} at K = {long}."
    yield ""


def _studies(kept: Kept, order: list[str]) -> Iterator[str]:
    yield "## What the studies found"
    yield ""
    for name in order:
        study = kept[name]
        yield f"### {name}: {study['question']}"
        yield ""
        claims = (
            f"; {study['held']:,} of {study['claims']:,} claims of theory hold within 4 standard errors with each of "
            f"two seeds, {study['weak']:,} of them weakly"
        )
        yield (
            f"`sim run {name}`: {study['points']:,} points, {study['runs']:,} runs of {study['rounds']:,} rounds each, "
            f"seed {study['seed']}{claims if study['claims'] else ''}."
        )
        yield ""
        yield from _widest(study["widest"])
        for finding in study["findings"]:
            yield f"**{finding['sentence']}.**" + (f" {finding['note']}" if finding["note"] else "")
            yield ""
            if finding["figure"]:
                yield f"![{name}](figures/{finding['figure']})"
                yield ""


def _widest(claims: list[Mapping[str, Any]]) -> Iterator[str]:
    """A folded section with the claims that have the widest tolerance."""
    if not claims:
        return
    yield "<details><summary>The claims with the widest tolerance</summary>"
    yield ""
    for claim in claims:
        mark = "" if claim["holds"] else " (does not hold)"
        yield f"- {'Weak: ' if claim['weak'] else ''}{claim['text']}: {claim['words']}{mark}"
    yield ""
    yield "</details>"
    yield ""


def _tokens(units: int) -> str:
    return f"{units / CHAIN_TOKEN:,.6g} tokens"


def write(kept: Kept, drawn: Drawn) -> None:
    """Compose the page, then replace the page, findings and figures, each atomically; delete old figures."""
    texts = {FIGURES / name: text for name, text in drawn.items()}
    texts[KEPT] = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
    texts[PAGE] = page(kept)
    for path, text in texts.items():
        write_atomically(path, text.encode())
        path.chmod(0o644)  # Temporary files are private to their writer; the page is public.
    for old in FIGURES.glob("economics-*.svg"):
        if old.name not in drawn:
            old.unlink()


def main() -> None:
    """Gather the findings, draw the figures, and write the page."""
    write(*gather(RESULTS))
    print(PAGE)


if __name__ == "__main__":
    main()
