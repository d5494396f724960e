"""Being in the draw: each account's registration, made once, and taken up again after a silence or an informer."""

from __future__ import annotations

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.chain.parameters import TOKEN
from protocol.node import logs
from protocol.node.party.funds import require_free
from verifier.settings import VerifierSettings


def ensure_registered(client: Client, settings: VerifierSettings) -> None:
    """Lock the stake and make the offer of the settings, unless the account is registered. A suspended account is made
    whole: whoever starts the process says that it can attest again. Raises NotEnoughTokens, SettingsError, ChainError.
    """
    log = logs.get("verifier").bind(account=client.address)
    unit = client.deployment.parameters.stake_unit
    registration = client.audit.registration(client.address)
    if registration is None:
        if not settings.stake:
            return
        level = settings.level(unit)
        stake = unit << level
        require_free(client, stake, "for the stake")
        least, why = _least_seat_fee(client, settings, stake)
        offer = settings.offer(stake, least)
        client.audit.register(level, offer)
        log.info("registered", level=level, seat_fee=least, made_of=why, period=offer.period)
    elif registration.resigned_at:
        log.warning("resigned: it is in no draw that is asked for from now on")
    elif registration.suspended:
        missing = (unit << registration.level) - client.vault.lock_of(registration.lock).remaining
        require_free(client, missing, "to make the stake whole")
        client.audit.resume()
        log.warning("resumed: the stake is whole again", units=missing)


def _least_seat_fee(client: Client, settings: VerifierSettings, stake: int) -> tuple[int, str]:
    """Token units that a seat has to pay at least, and what they follow from."""
    if settings.seat_fee is not None:
        return int(settings.seat_fee * TOKEN), "the setting seat_fee"
    if client.connection.chain_id == DEVELOPMENT_CHAIN:
        return 0, "a development chain"
    counted = settings.least_seat_fee(stake, client.connection.gas_price)
    return counted.units, str(counted)


def leave(client: Client) -> bool:
    """Free the stake of a resigned account, if its unbonding is over and it has no seat; whether that was so."""
    registration = client.audit.registration(client.address)
    if registration is None or not registration.resigned_at:
        return False
    over = registration.resigned_at + client.deployment.parameters.unbonding_period
    if client.now() <= over or (registration.is_bound and not registration.suspended):
        return False
    client.audit.leave()
    return True
