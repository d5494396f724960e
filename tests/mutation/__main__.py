"""`python -m tests.mutation`: run the samples, continue where an earlier run stopped, write docs/mutation.md.

`make mutation` calls it. It mutates a scratch clone of HEAD; uncommitted changes are not in it.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from tests.mutation import page
from tests.mutation.mutants import ROOT
from tests.mutation.running import FOLDER, run
from tests.mutation.scope import LANGUAGES
from tests.resuming import clean_commit


def say(text: str) -> None:
    """Print a line and flush it, so that it appears at once even in a file."""
    print(text, flush=True)


def main() -> int:
    """The exit status: 0 if every survivor is argued, 1 if one is not, 2 if the checkout has changes."""
    parser = ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("languages", nargs="*", help="default: all")
    parser.add_argument("--found", action="store_true", help="run nothing, write what has been found so far")
    options = parser.parse_args()
    if unknown := set(options.languages) - set(LANGUAGES):
        parser.error(f"expected some of {', '.join(LANGUAGES)}, got {', '.join(sorted(unknown))}")
    commit = clean_commit(ROOT)
    if not commit:
        print(
            "expected a checkout without changes, because a clone of HEAD is mutated; commit them",
            file=sys.stderr,
        )
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = {name: [one for one in page.recorded() if one.language == name] for name in LANGUAGES}
    argued = page.arguments()
    for name in options.languages or LANGUAGES:
        kept[name] = run(LANGUAGES[name], commit, kept[name], argued, say, not options.found)
    outcomes = [outcome for name in LANGUAGES for outcome in kept[name]]
    page.record(outcomes)
    print(f"the table is in {page.PAGE}")
    unargued = page.unargued(outcomes)
    for outcome in unargued:
        print(f"not argued: {outcome.id} {outcome.file}:{outcome.line} {outcome.change}")
    return 1 if unargued else 0


if __name__ == "__main__":
    sys.exit(main())
