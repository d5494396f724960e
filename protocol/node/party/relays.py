"""Chooses the beacon's relays: those in a command's settings, otherwise the network's default relays."""

from __future__ import annotations

from protocol.beacon.networks import default_relays
from protocol.beacon.relays import IsSigned, Relays
from protocol.beacon.rounds import Network
from protocol.node.party.settings import ConnectionSettings
from protocol.node.settings import SettingsError


def relays_by(settings: ConnectionSettings, network: Network, is_signed: IsSigned) -> Relays:
    """The relays in the settings, otherwise the network's default relays. Raises SettingsError if there are
    none.
    """
    addresses = settings.relays or default_relays(network)
    if not addresses:
        raise SettingsError(
            "setting relays",
            expected=f"addresses of HTTP relays of the beacon network {network.beacon_id}",
            got="none, and the package knows none",
            remedy="name them, such as http://127.0.0.1:8702",
        )
    return Relays(network, addresses, is_signed)
