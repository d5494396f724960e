"""The output of code that runs inside somebody's Python: prose on stdout, or nothing."""

from __future__ import annotations

from protocol.node.output import Output


class Silent(Output):
    """Says nothing."""

    def say(self, text: str) -> None:
        """Nothing."""


def output_of(what: str, quiet: bool) -> Output:
    """The output of a call."""
    return Silent(what, as_json=False) if quiet else Output(what, as_json=False)
