"""The report of a folder: one self-contained HTML file with findings, figures, claims and the manifest."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from protocol.commitments.atomic import write_atomically
from sim.results.folder import REPORT
from sim.results.results import Results
from sim.studies.checks import WIDEST, Check, Verdict
from sim.studies.study import Finding
from sim.units import Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CLAIMS: Final = 500
"""Maximum number of rows in the table of claims. Failed claims come first, then weak ones."""

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a }
h1 { margin-bottom: 0 } h2 { font-size: 1.15rem; margin-top: 2.5rem }
figure { margin: 0 } svg { max-width: 100%; height: auto }
table { border-collapse: collapse; font-size: .85rem } td, th { padding: .15rem .7rem .15rem 0; text-align: left }
tr { border-bottom: 1px solid #ddd } .number { text-align: right; font-variant-numeric: tabular-nums }
.fails { background: #fde7e0 } .weak { background: #fdf6d8 } code { font-size: .85em; overflow-wrap: anywhere }
"""


def write_report(results: Results) -> Path:
    """Write the report into the folder and return its path. Raises ResultsError and errors of the study."""
    path = results.folder.path / REPORT
    write_atomically(path, page(results).encode())
    return path


def page(results: Results) -> str:
    """The report as text; the same rows give the same text."""
    about, answer = results.manifest, results.answer
    findings = "".join(_finding(number, finding) for number, finding in enumerate(answer.findings))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(results.study.name)}: {escape(about['title'])}</title><style>{_STYLE}</style></head><body>\n"
        f"<h1>{escape(results.study.name)}</h1><p>{escape(about['title'])}</p>\n"
        f"{findings}{_claims(answer)}{_manifest(about)}</body></html>\n"
    )


def svg(figure: Figure, salt: str) -> str:
    """A figure as an SVG element. Its identifiers are unique on the page, and its bytes are reproducible."""
    import matplotlib

    sink = io.StringIO()
    if figure.get_layout_engine() is not None:
        # Each drawing shifts a laid-out figure slightly; keep the positions of the first one.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    with matplotlib.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": None})
    text = sink.getvalue()
    drawn = text[text.index("<svg") :]
    # matplotlib numbers names from 1 in every figure, so they would clash on one page.
    return re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{salt}-", drawn)


def _finding(number: int, finding: Finding) -> str:
    drawn = f"<figure>{svg(finding.figure, f'figure{number}')}</figure>" if finding.figure is not None else ""
    note = f"<p>{escape(finding.note)}</p>" if finding.note else ""
    return f"<h2>{escape(finding.sentence)}</h2>{drawn}{note}\n"


def _claims(verdict: Verdict) -> str:
    """The claims in a folded section: failed ones, then weak ones, then the others."""
    claims = verdict.ordered
    if not claims:
        return ""
    rows = "".join(map(_claim, claims[:MOST_CLAIMS]))
    left = (
        f"<p>{len(claims) - MOST_CLAIMS:,} more claims are left out.</p>" if len(claims) > MOST_CLAIMS else ""
    )
    return (
        f"<h2>{verdict.held:,} of {len(claims):,} claims hold, {verdict.weak:,} of them weakly</h2>"
        f"<p>Every point is played with two seeds, each with a stream of its own random numbers. A claim holds when "
        f"each seed, and both together, are within 4 standard errors. Draws are tasks with their own random numbers, "
        f"of each seed; what is played with the same numbers counts once. A claim is weak when its tolerance is wider "
        f"than {WIDEST:.0%} of what is expected and than its bound, an absolute one that chances have.</p>"
        f"<details><summary>All claims, the widest tolerance first</summary>"
        f"<table><tr><th>Claim</th><th>Expected</th><th>±</th><th>of it</th><th>Bound</th><th>First seed</th>"
        f"<th>Second seed</th><th>Distinct draws</th><th>Holds</th></tr>{rows}</table>{left}</details>\n"
    )


def _claim(claim: Check) -> str:
    first, second = (*(_number(value) for value in claim.measured), "none", "none")[:2]
    bound = f"{claim.together.bound:.2g}" if claim.together.bound else ""
    texts = (
        _number(claim.expected),
        f"{claim.tolerance:.2g}",
        claim.share,
        bound,
        first,
        second,
        f"{claim.draws:,}",
    )
    numbers = "".join(f'<td class="number">{text}</td>' for text in texts)
    word, style = (
        (("weakly", ' class="weak"') if claim.weak else ("yes", ""))
        if claim.holds
        else ("no", ' class="fails"')
    )
    return f"<tr{style}><td>{escape(claim.text)}</td>{numbers}<td>{word}</td></tr>"


def _number(value: float) -> str:
    return f"{value:,.6g}" if math.isfinite(value) else str(value)


def _manifest(about: Mapping[str, Any]) -> str:
    question = about["question"]
    swept = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(_values(axis))}</td><td>{escape(axis['unit'])}</td></tr>"
        for name, axis in question["axes"].items()
    )
    fixed = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(_value(one['value'], one['unit']))}</td>"
        f"<td>{escape(one['unit'])}</td></tr>"
        for name, one in question["parameters"].items()
    )
    facts = {
        "runs of each point": question["runs"],
        "rounds of each run": question["rounds"],
        "seed": f"{question['seed']}, of which half of the runs have one child each",
        "points": about["points"],
        "commit": about["commit"] or "not known",
        "digest of the question": about["digest"],
        "versions": ", ".join(f"{name} {number}" for name, number in about["versions"].items()),
    }
    known = "".join(
        f"<tr><td>{name}</td><td><code>{escape(str(fact))}</code></td></tr>" for name, fact in facts.items()
    )
    return (
        f"<h2>What was asked</h2><table>{known}</table>"
        f"<h2>Swept</h2><table>{swept}</table>"
        f"<details><summary>All other parameters</summary><table>{fixed}</table></details>"
        f"<details><summary>Manifest</summary><pre><code>{escape(json.dumps(about, indent=1))}</code></pre></details>\n"
    )


def _values(axis: Mapping[str, Any]) -> str:
    shown = [_value(value, axis["unit"]) for value in axis["values"]]
    return ", ".join(shown if len(shown) <= 20 else [*shown[:10], "...", *shown[-3:]]) + f" ({len(shown)})"


def _value(value: float, unit: str) -> str:
    return Unit(unit).format(value)
