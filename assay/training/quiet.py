"""The output of code that is called from a user's Python: prose on stdout, or nothing."""

from __future__ import annotations

from protocol.node.output import Output


class Silent(Output):
    """An output that prints nothing."""

    def say(self, text: str) -> None:
        """Print nothing."""


def output_of(what: str, quiet: bool) -> Output:
    """The output for a call: silent if `quiet`."""
    return Silent(what, as_json=False) if quiet else Output(what, as_json=False)
