"""`python -m tests.models`: run all entries, continue where an earlier run stopped, and write the table.

`make coverage-suite` calls it. If words are given, only the entries whose names contain all of the words are
run, and no table is written.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from tests.models import page
from tests.models.families import modules
from tests.models.running import ROOT, kept, play, run
from tests.resuming import clean_commit


def main() -> int:
    """The exit status: 1 if an entry that was run now, or kept from before, has failed, otherwise 0. It is
    always 0 with `--list` and `--one`.
    """
    options = _options()
    if options.one:
        failure, figures = play(*options.one)
        print(json.dumps([failure, None if figures is None else asdict(figures)]))
        return 0
    known = modules()
    if options.list:
        print("\n".join(known))
        return 0
    commit = clean_commit(ROOT)
    done = kept(commit=None if options.any_commit else commit) if commit or options.any_commit else {}
    left = {
        name: module
        for name, module in known.items()
        if (name not in done or done[name].failure) and all(word in name for word in options.words)
    }
    print(f"{len(left)} of {len(known)} entries are left", flush=True)
    found = {**done, **{result.entry: result for result in run(left, options.jobs, commit)}}
    if not options.words:
        page.record([found[name] for name in known])
        print(f"the table is in {page.PAGE}")
    return 1 if any(result.failure for result in found.values()) else 0


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m tests.models", description=__doc__)
    parser.add_argument("words", nargs="*", help="of the entries to be played")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--any-commit", action="store_true", help="count what was played on other commits")
    parser.add_argument("--list", action="store_true", help="say which entries there are")
    parser.add_argument(
        "--one", nargs=2, metavar=("ENTRY", "MODULE"), help="play it here, print a line of JSON"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
