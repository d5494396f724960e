"""A beacon network's HTTP server, with the paths, answers and statuses of drand's relays
(github.com/drand/http-relay).

The server signs a round only on request, and only if the round is due. It caches a few thousand signatures.
Answers of version 2 omit the round's word, which is the signature's hash.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final

from fastapi import FastAPI, HTTPException
from fastapi import Path as PathParameter

from protocol.beacon.bn254 import round_message, sign, word
from protocol.beacon.rounds import LAST_ROUND, Network
from protocol.errors import AssayError

KEPT: Final = 4_096
"""Maximum number of cached signatures. Caching helps because all parties ask for the same rounds. A signature
has 64 bytes and takes 8 ms to make.
"""
NEWEST: Final = 0
"""drand's number for the newest round."""

ChainHash = Annotated[str, PathParameter(pattern=r"^[0-9a-fA-F]{64}$")]
Number = Annotated[str, PathParameter(pattern=r"^([0-9]{1,20}|latest)$")]


def application(network: Network, secret: int, now: Callable[[], int]) -> FastAPI:
    """An app that serves the rounds that `secret` signs. `now` returns the network's time in seconds; if it
    raises AssayError, the answer to a request for a round is 503.

    Version 1: GET /chains, /info and /public/<round or latest>; the last two also below /<chain hash>.
    Version 2: GET /v2/chains, and below /v2/chains/<chain hash>: /info and /rounds/<round or latest>. In both
    versions, the answer is 425 for a future round, and 400 for another network or a number of 2^64 or more.
    It is 422 for a malformed chain hash or number, and for a number of more than 20 digits.
    """
    api = FastAPI(title="Assay beacon", openapi_url=None, docs_url=None, redoc_url=None)
    known = network.chain_hash
    signature = lru_cache(KEPT)(lambda number: sign(secret, round_message(number)))

    def answer(number: str, chain: str = known) -> dict[str, Any]:
        _require_same(chain, known)
        wanted = NEWEST if number == "latest" else int(number)
        if wanted > LAST_ROUND:
            raise HTTPException(400, f"expected a round below 2^64, got {wanted}")
        newest = _newest(network, now)
        if not newest or wanted > newest:
            raise HTTPException(425, "Requested future beacon")
        signed = signature(wanted or newest)
        return {"round": wanted or newest, "signature": signed.hex()}

    def with_word(number: str, chain: str = known) -> dict[str, Any]:
        found = answer(number, chain)
        return found | {"randomness": word(bytes.fromhex(found["signature"])).hex()}

    @api.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @api.get("/chains")
    @api.get("/v2/chains")
    async def chains() -> list[str]:
        return [known]

    @api.get("/info")
    async def info() -> dict[str, Any]:
        return _info(network)

    @api.get("/public/{number}")
    def public(number: Number) -> dict[str, Any]:
        return with_word(number)

    @api.get("/{chain}/info")
    async def info_of(chain: ChainHash) -> dict[str, Any]:
        _require_same(chain, known)
        return _info(network)

    @api.get("/{chain}/public/{number}")
    def public_of(chain: ChainHash, number: Number) -> dict[str, Any]:
        return with_word(number, chain)

    @api.get("/v2/chains/{chain}/info")
    async def info_v2(chain: ChainHash) -> dict[str, Any]:
        _require_same(chain, known)
        return network.model_dump() | {"chain_hash": known}

    @api.get("/v2/chains/{chain}/rounds/{number}")
    def rounds(chain: ChainHash, number: Number) -> dict[str, Any]:
        return answer(number, chain)

    return api


def _info(network: Network) -> dict[str, Any]:
    """The description of a network in the form that version 1 of the API returns."""
    return {
        "public_key": network.public_key,
        "period": network.period,
        "genesis_time": network.genesis_time,
        "hash": network.chain_hash,
        "groupHash": network.genesis_seed,
        "schemeID": network.scheme,
        "metadata": {"beaconID": network.beacon_id},
    }


def _require_same(chain: str, known: str) -> None:
    if chain.lower() != known:
        raise HTTPException(400, "unknown chain hash")


def _newest(network: Network, now: Callable[[], int]) -> int:
    """Number of the newest round; 0 before the first round."""
    try:
        time = now()
    except AssayError as error:
        raise HTTPException(503, "the chain, by whose time rounds are signed, does not answer") from error
    return network.round_at(time) if time >= network.genesis_time else 0
