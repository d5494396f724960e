"""`python -m tests.campaign` plays all cases, two at a time, resumes where it was stopped, and writes the
table.

`make campaign` calls it. If words are given, it plays only the cases whose names contain all of them, and
writes no table.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from tests.campaign import page
from tests.campaign.cases import cases, covering, impossible
from tests.campaign.disks import ROOT
from tests.campaign.results import Results
from tests.campaign.running import FILE, FOLDER, run
from tests.resuming import clean_commit


def main() -> int:
    """Play or list the cases that the options choose; returns 1 if a played case went wrong, else 0."""
    options = _options()
    if options.impossible:
        for case, why in impossible():
            print(f"{case}: {why}")
        return 0
    commit = clean_commit(ROOT)
    FOLDER.mkdir(parents=True, exist_ok=True)
    results = Results(FILE, commit, options.any_commit)
    chosen = covering() if options.covering else cases()
    left = [
        case for case in results.left() if case in chosen and all(word in str(case) for word in options.words)
    ]
    if options.list:
        for case in left:
            print(case)
        return 0
    print(f"{len(left)} of {len(cases())} cases are left", flush=True)
    wrong = run(left, options.jobs, results, commit)
    if not (options.words or options.covering):
        page.record(results.found.values())
        print(f"the table is in {page.PAGE}")
    return 1 if wrong else 0


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("words", nargs="*", help="of the cases to be played")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--any-commit", action="store_true", help="count what was played on other commits")
    parser.add_argument("--covering", action="store_true", help="only those of the heavy tests; no table")
    parser.add_argument("--list", action="store_true", help="say which cases are left")
    parser.add_argument("--impossible", action="store_true", help="say which cases cannot be, and why")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
