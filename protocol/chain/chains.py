"""Properties of a chain by its id: block time, fee market, depth of re-organisations, finality
(`chains.toml`).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protocol.chain.errors import ChainTableError
from protocol.node.home import Home

TABLE: Final = Path(__file__).with_name("chains.toml")

Finality = Literal["latest", "safe", "finalized"] | Annotated[int, Field(ge=0)]
"""Which block counts as final: a tag of the node, or a number of blocks behind its head."""


class Chain(BaseModel):
    """One entry of the table. `block_time` is in seconds, None if it must be measured; `reorg_depth` is in
    blocks.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str
    block_time: Annotated[int | float, Field(gt=0)] | None = None
    fees: Literal["eip1559", "legacy"]
    reorg_depth: Annotated[int, Field(ge=1)]
    finality: Finality


def chain_of(chain_id: int) -> Chain:
    """The chain's entry in the home folder's table, else in the package's, else the default. Raises
    ChainTableError.
    """
    own = Home.find().root / TABLE.name
    entries = _read(TABLE) | (_read(own) if own.is_file() else {})
    try:
        return Chain.model_validate(entries.get(str(chain_id), entries["default"]))
    except ValidationError as error:
        first = error.errors()[0]
        raise ChainTableError(
            f"chain {chain_id} in {own if own.is_file() else TABLE}",
            expected=", ".join(Chain.model_fields),
            got=f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
            remedy="correct the entry; protocol/chain/chains.toml shows the form",
        ) from error


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ChainTableError(
            f"chain table {file}", expected="TOML", got=error, remedy="correct or remove it"
        ) from error
