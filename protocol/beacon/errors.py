"""Errors of the beacon and its relays. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.errors import AssayError, ExitCode


class BeaconError(AssayError):
    """An invalid secret or round. Base of the other errors here."""


class NetworkError(BeaconError):
    """No network has the given name; or a network's file is missing, is unreadable or does not have the form
    of networks.toml; or the network's public key does not belong to the account that is to sign for the
    network.
    """


class NoSuchRound(BeaconError):
    """The given time is before the network's first round, or the given number is not the number of a round."""


class NoRelay(BeaconError):
    """No relay has given a valid signature of the round. `failures` pairs each relay with the fault of its
    answer.
    """

    exit_code = ExitCode.RETRY

    def __init__(self, number: int, failures: Sequence[tuple[str, str]]) -> None:
        self.number = number
        self.failures = tuple(failures)
        super().__init__(
            f"beacon's round {number}",
            expected="a valid signature from one of the relays",
            got="; ".join(f"{relay}: {failure}" for relay, failure in failures) or "no relay",
            remedy="wait, or name other relays with the setting `relays`",
        )
