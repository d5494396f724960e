"""docs/economics.md as a function of docs/economics.json and of the recommended file; no figure is written by hand.

`python -m sim.economics_page` takes the findings of all studies whose results lie in build/sim (`make studies` plays
them), keeps them in docs/economics.json, draws their figures, and writes the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from protocol.chain.parameters import RECOMMENDED
from protocol.chain.parameters import TOKEN as CHAIN_TOKEN
from protocol.chain.recommendation import RULES, most_segments, recommended_terms
from protocol.commitments.atomic import write_atomically
from protocol.tasks.task import MAX_DRAWS
from sim.parameters import MarketParameters
from sim.results.report import svg
from sim.results.results import Results
from sim.studies.catalogue import STUDIES
from sim.studies.margins import FORCED_MARGIN, Challenges, challenges, forced_lock, forced_rate, spans
from sim.studies.recommended import parameters_for
from sim.theory import stake_multiple

DOCS: Final = Path(__file__).parents[1] / "docs"
KEPT: Final = DOCS / "economics.json"
PAGE: Final = DOCS / "economics.md"
FIGURES: Final = DOCS / "figures"
RESULTS: Final = Path("build/sim")
BUDGET: Final = 100 * CHAIN_TOKEN
_SIZES: Final = (5, 10, 20, 30, 40, 50)

Kept = Mapping[str, Mapping[str, Any]]
Drawn = Mapping[str, str]
"""Files of figures by name."""


def gather(results: Path) -> tuple[Kept, Drawn]:
    """Findings of all studies by name, and their figures. Raises ResultsError for a study that is not played."""
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
        claims = found.answer.claims
        question = found.manifest["question"]
        kept[name] = {
            "question": found.study.question,
            "findings": findings,
            "claims": len(claims),
            "held": sum(bool(claim.holds) for claim in claims),
            "points": found.manifest["points"],
            "runs": question["runs"],
            "rounds": question["rounds"],
            "seed": question["seed"],
        }
    return kept, drawn


def _standing(element: str) -> str:
    """An SVG element as a file of its own."""
    return '<?xml version="1.0" encoding="utf-8"?>\n' + element.rstrip() + "\n"


def page(kept: Kept) -> str:
    """The whole page."""
    order = sorted(kept, key=lambda name: (name != "recommended", name))
    return "\n".join([*_head(), *_parameters(), *_by_segments(), *_long(), *_studies(kept, order)]) + "\n"


def _head() -> Iterator[str]:
    yield "# Economics: recommended defaults, and why"
    yield ""
    yield "Written by `make studies`, which plays what this code has not played yet (`sim run all --fresh`) and draws"
    yield "the figures; do not edit."
    yield "The values are those of `protocol/chain/presets/recommended.toml`, which the deployment, `assay submit` and"
    yield "the simulation read. What the simulation leaves out: `sim/ASSUMPTIONS.md`. The formulas: `sim/theory/`."
    yield ""


def _parameters() -> Iterator[str]:
    """One row for each recommended number."""
    chain, rules, k = RECOMMENDED, RULES, most_segments()
    draws, proof = MAX_DRAWS // rules.verifiers, challenges()
    rows = [
        (
            "stake S",
            f"{float(rules.stake):g} budgets + restitution + reward",
            "the first part deters; the rest is what a cheater that is its own challenger and submitter gets back",
        ),
        (
            "verifiers V",
            rules.verifiers,
            "any that is absent voids the task, and more of them detect no more at the same V q",
        ),
        (
            "segments per verifier q",
            "by K, below",
            f"least with S_min at most {float(rules.stake):g} budgets at any price",
        ),
        ("attestations a segment A", rules.matches, "most segments are drawn once: more cannot be had"),
        (
            "assumed",
            f"h = {float(rules.honest_share):g}, G = {float(rules.gain):g} budget, k = {rules.rerolls}",
            f"k = {rules.rerolls} re-rolls are {2**rules.rerolls} tries at a seed (dispute.md section 8)",
        ),
        (
            "audit fee",
            f"{float(rules.audit_fee):g} budget / K for a duty",
            "what training the segment may cost at most",
        ),
        (
            "restitution",
            f"{float(rules.restitution):g} budget",
            "the submitter's loss; at most the budget in the contracts",
        ),
        (
            "delay penalty",
            f"{float(rules.delay_penalty):g} budgets",
            "must stay below S less the reward, or convicting oneself is cheaper than missing the deadline",
        ),
        (
            "reward cap",
            _tokens(chain.reward_cap),
            f"once to twice the cost of a challenge at K = {spans(proof.fitting)}{_dearer(proof)}",
        ),
        (
            "challenge bond",
            _tokens(chain.challenge_bond),
            "makes a wrongly accused solver nearly whole; half of it burns",
        ),
        (
            "bond schedule",
            "the bond, doubled beyond four open challenges",
            "dispute.md section 6; the contracts ask for the bond each time",
        ),
        ("stake of a slot", _tokens(chain.stake_unit), "more than the replays of a seat cost"),
        (
            "forced errors e",
            "by K, below",
            f"takes {FORCED_MARGIN:g} times what skipping saves; not in the contracts",
        ),
        (
            "draw fee",
            _tokens(chain.draw_fee),
            "somebody must be paid to prove each draw: that keeps tries at one",
        ),
        (
            "longest task K_max",
            f"{k} segments",
            f"with V q = {rules.verifiers * draws}; longer runs are split (milestones)",
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
    most = most_segments()
    yield f"## Terms by the number of segments, for a budget of {_tokens(BUDGET)}"
    yield ""
    yield "| K | V | q | duties | stake | audit fee | all fees, budgets | forced errors e | slot's stake for e = 5 % |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for segments in (*_SIZES, most):
        terms, parameters = recommended_terms(segments, BUDGET), parameters_for(segments)
        yield (
            f"| {segments} | {terms.verifiers} | {terms.segments_per_verifier} | {_duties(segments)} "
            f"| {_tokens(terms.stake)} | {_tokens(terms.audit_fee)} | {_fees(segments):.2f} "
            f"| {forced_rate(parameters):.1%} | {forced_lock(parameters, 0.05):,.0f} tokens |"
        )
    yield ""
    yield "A rate of forced errors far above 5 % is no use: tasks of few segments need slots with more at stake."
    yield ""


def _duties(segments: int) -> int:
    """Of all verifiers, at most: segment K may be among those that are drawn."""
    terms = recommended_terms(segments, BUDGET)
    return terms.verifiers * min(terms.segments_per_verifier + 1, segments)


def _fees(segments: int) -> float:
    """For all duties, in budgets."""
    return _duties(segments) * recommended_terms(segments, BUDGET).audit_fee / BUDGET


def _dearer(proof: Challenges) -> str:
    """Tasks that are too short for the reward cap, in words."""
    if not proof.dearer:
        return ""
    costs = ", ".join(
        f"{proof.costs[size]:.0f} tokens at K = {size}" for size in _SIZES if size in proof.dearer
    )
    more = f" ({costs})" if costs else ""
    return (
        f"; at K = {spans(proof.dearer)} it costs more{more}, and attesting blind pays more than convicting"
    )


def _long() -> Iterator[str]:
    most, thin = most_segments(), MarketParameters()
    many, one = (
        stake_multiple(
            segments=thin.segments,
            segments_per_verifier=thin.segments_per_verifier,
            verifiers=thin.verifiers,
            honest=float(RULES.honest_share),
            gain_ratio=float(RULES.gain),
            rerolls=rerolls,
        )
        for rerolls in (RULES.rerolls, 0)
    )
    tries = 2**RULES.rerolls
    yield "## Where the least stake explodes, and what to do"
    yield ""
    yield f"At a fixed audit the least stake grows as K to the power of {tries}, for a cheat must be found at each of a"
    yield f"solver's {tries} tries at a seed. The simulation's default market (K = {thin.segments},"
    yield f"V = {thin.verifiers}, q = {thin.segments_per_verifier}) is such a thin audit: it takes {many:,.0f} prices"
    yield f"as stake against {tries} tries, and of {one:,.1f} against one. In this order:"
    yield ""
    short = _SIZES[0]
    yield f"1. Let q grow with K. `assay submit` does so up to K = {most}; audit fees are {_fees(short):.2f} budgets at"
    yield f"   K = {short} and {_fees(most):.2f} at K = {most}."
    yield f"2. Split longer runs into tasks of at most {most} segments, each beginning with the result of the one"
    yield "   before, each with the stake of the whole run: one false segment anywhere spoils the last result."
    yield "3. Lower the number of tries: draws that anybody proves at once, or randomness that nobody can wait out. It"
    yield "   is worth more than any stake: the figures below say how much cheaper an audit is against a single try."
    yield ""


def _studies(kept: Kept, order: list[str]) -> Iterator[str]:
    yield "## What the studies found"
    yield ""
    for name in order:
        study = kept[name]
        yield f"### {name}: {study['question']}"
        yield ""
        claims = f"; {study['held']:,} of {study['claims']:,} claims of theory hold within 4 standard errors"
        yield (
            f"`sim run {name}`: {study['points']:,} points, {study['runs']:,} runs of {study['rounds']:,} rounds each, "
            f"seed {study['seed']}{claims if study['claims'] else ''}."
        )
        yield ""
        for finding in study["findings"]:
            yield f"**{finding['sentence']}.**" + (f" {finding['note']}" if finding["note"] else "")
            yield ""
            if finding["figure"]:
                yield f"![{name}](figures/{finding['figure']})"
                yield ""


def _tokens(units: int) -> str:
    return f"{units / CHAIN_TOKEN:,.6g} tokens"


def write(kept: Kept, drawn: Drawn) -> None:
    """Replace page, findings and figures: each whole or not at all, and nothing before the page is composed."""
    texts = {FIGURES / name: text for name, text in drawn.items()}
    texts[KEPT] = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
    texts[PAGE] = page(kept)
    for path, text in texts.items():
        write_atomically(path, text.encode())
        path.chmod(0o644)  # What is being written is its writer's alone; the page is everybody's.
    for old in FIGURES.glob("economics-*.svg"):
        if old.name not in drawn:
            old.unlink()


def main() -> None:
    """Gather, draw, write."""
    write(*gather(RESULTS))
    print(PAGE)


if __name__ == "__main__":
    main()
