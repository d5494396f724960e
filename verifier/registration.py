"""Registration for draws: each account is registered once. An account that was suspended, either for silence
or because of an informer, is reinstated.
"""

from __future__ import annotations

from collections.abc import Mapping

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.chain.parameters import TOKEN
from protocol.node import logs
from protocol.node.party.funds import require_free
from protocol.node.settings import SettingsError
from protocol.node.words import amount, duration, tokens
from protocol.tasks.admission import Clocks, Rates, Standing, admission, seconds_beside
from protocol.tasks.task import MAX_SEAT_SEGMENTS
from verifier.settings import VerifierSettings

TRANSACTIONS = 10
"""Every seat's period is assumed to be at least this many times as long as a seat's transaction and its waits
for the machine take together. The deployment may allow shorter periods. They are not taken into account,
because an offer cannot exclude them: it limits only the operations a second, and no such limit, however low,
excludes a short period.
"""
STEPS_SHARE = 0.1
"""Share of a seat's shortest period that admission reserves for waiting. A seat's replay waits while steps of
other work, which have already begun, run to their end. The share is fixed because an offer cannot limit the
length of a step. Only a third of the machine is promised; if the waits are longer than this share, they take
time from the other two thirds.
"""


def standing(account: str, speed: float, least_period: float, clocks: Clocks) -> Standing:
    """The work that an account's offer may bring at any time, if every seat's period has at least
    `least_period` seconds and is as long as `TRANSACTIONS` assumes.
    """
    looks = seconds_beside(clocks, waits=MAX_SEAT_SEGMENTS + 1)
    shortest = max(least_period, TRANSACTIONS * looks)
    return Standing(f"seats of account {account}", speed, shortest, looks + STEPS_SHARE * shortest)


def speed_of(client: Client, settings: VerifierSettings, accounts: int) -> float:
    """The operations a second that an account's registered offer accepts. If the account is not registered:
    the operations a second that its offer will accept when the process has `accounts` accounts, or 0 without
    a stake. Raises ChainError.
    """
    registration = client.audit.registration(client.address)
    if registration is not None:
        return registration.offer.speed
    if not settings.stake:
        return 0.0
    clocks = Clocks(client.inclusion, settings.pace)
    seats = standing(client.address, 0.0, client.deployment.parameters.min_period, clocks)
    return settings.speed_of_seats(seats, accounts)


def ensure_registered(
    client: Client, settings: VerifierSettings, others: Mapping[str, float] | None = None, full: bool = False
) -> None:
    """Register the account unless it is registered: lock the stake and make the offer from the settings. If
    the settings have no stake, no account is registered. A suspended account is reinstated, because by
    starting the process the operator says that it can attest again. `others` are the speeds that further
    accounts of the process offer, by address. If the disk limit is exceeded (`full`), an account that is not
    in the draw stays out. Raises NotEnoughTokens, SettingsError, ChainError.
    """
    log = logs.get("verifier").bind(account=client.address)
    unit = client.deployment.parameters.stake_unit
    registration = client.audit.registration(client.address)
    if full and settings.stake and (registration is None or registration.suspended):
        log.error(
            "no new seats", reason=f"more is on the disk than disk_limit_gib = {settings.disk_limit_gib:g}"
        )
    elif registration is None:
        if not settings.stake:
            return
        level = settings.level(unit)
        stake = unit << level
        require_free(client, stake, "for the stake")
        others = {account: speed for account, speed in (others or {}).items() if account != client.address}
        speed = speed_of(client, settings, 1 + len(others))
        _require_admission(client, settings, {**others, client.address: speed})
        least, why = _least_seat_fee(client, settings, stake)
        offer = settings.offer(stake, least, speed)
        client.audit.register(level, offer)
        log.info(
            "registered",
            stake=tokens(stake),
            seat_fee=amount(least),
            made_of=why,
            period=duration(offer.period),
        )
    elif registration.resigned_at:
        log.warning("resigned: it is in no draw that is asked for from now on")
    elif registration.suspended:
        missing = (unit << registration.level) - client.vault.lock_of(registration.lock).remaining
        require_free(client, missing, "to make the stake whole")
        client.audit.resume()
        log.warning("resumed: the stake is whole again", tokens=missing / TOKEN)


def _require_admission(client: Client, settings: VerifierSettings, speeds: Mapping[str, float]) -> None:
    """Check that the work can be done in time even if all accounts of the process are drawn. Raises
    SettingsError, ChainError.
    """
    clocks = Clocks(client.inclusion, settings.pace)
    least = client.deployment.parameters.min_period
    owed = [standing(account, speed, least, clocks) for account, speed in speeds.items()]
    refused = admission(owed, clocks, Rates(settings.speed))
    if refused is not None:
        raise SettingsError(
            "setting seat_speed",
            expected="what this machine does in time for all its accounts at once, by a third of `speed`",
            got=str(refused),
            remedy="lower it, or leave it out; accounts that are registered keep their offers until they have left",
        )


def _least_seat_fee(client: Client, settings: VerifierSettings, stake: int) -> tuple[int, str]:
    """The minimum fee of a seat in token units, and where it comes from, in words."""
    if settings.seat_fee is not None:
        return int(settings.seat_fee * TOKEN), "the setting seat_fee"
    if client.connection.chain_id == DEVELOPMENT_CHAIN:
        return 0, "a development chain"
    counted = settings.least_seat_fee(stake, client.connection.gas_price)
    return counted.units, str(counted)


def leave(client: Client) -> bool:
    """Free the stake of a resigned account, if its unbonding is over and it has no seat. Returns whether
    that was done.
    """
    registration = client.audit.registration(client.address)
    if registration is None or not registration.resigned_at:
        return False
    over = registration.resigned_at + client.deployment.parameters.unbonding_period
    if client.now() <= over or (registration.is_bound and not registration.suspended):
        return False
    client.audit.leave()
    return True
