"""`python -m tests.vectors`: replay the vectors against an implementation. See `conformance`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from tests.vectors.conformance import sections
from tests.vectors.readings import FILES

MOST = 5
"""Maximum number of differences that are printed for a section."""


def main(arguments: list[str] | None = None) -> int:
    """Print the outcome of each section. The exit status is 1 if anything differs, or if a method is missing
    and `--partial` is not given; otherwise it is 0.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.vectors", description=main.__doc__)
    parser.add_argument("--implementation", default="tests.vectors.package:Package", metavar="MODULE:NAME")
    parser.add_argument("--file", action="append", choices=FILES, help="only this file; may be repeated")
    parser.add_argument("--partial", action="store_true", help="accept an implementation of a part")
    options = parser.parse_args(arguments)
    module, _, name = options.implementation.partition(":")
    if not name:
        parser.error(f"--implementation: expected MODULE:NAME, got {options.implementation!r}")
    try:
        implementation = getattr(import_module(module), name)()
    except (ImportError, AttributeError) as error:
        parser.error(f"--implementation: expected a class in a module that can be imported: {error}")
    failed = False
    for section in sections(implementation, options.file or tuple(FILES)):
        print(section, flush=True)
        for difference in section.differences[:MOST]:
            print(f"  {difference}")
        failed |= bool(section.differences) or (bool(section.missing) and not options.partial)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
