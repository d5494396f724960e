"""Schemas for a node's answers, by JSON-RPC method. They cover only the fields that are read.

An overloaded gateway may answer null, and a broken gateway may answer anything. Each answer is checked on
arrival, and an invalid answer counts as no answer, so that later code need not handle it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from protocol.chain.transport import NotAnAnswer

Quantity = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{1,64}$")]
Data = Annotated[str, Field(pattern=r"^0x([0-9a-fA-F]{2})*$")]
Hash = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{64}$")]
AddressText = Annotated[str, Field(pattern=r"^0x[0-9a-fA-F]{40}$")]


class _Form(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class _Transaction(_Form):
    sender: Annotated[AddressText, Field(alias="from")]
    nonce: Quantity


class _Block(_Form):
    number: Quantity
    hash: Hash
    parentHash: Hash
    timestamp: Quantity
    gasLimit: Quantity
    baseFeePerGas: Quantity | None = None
    transactions: list[Hash | _Transaction]


class _Log(_Form):
    address: AddressText
    topics: Annotated[list[Hash], Field(max_length=4)]
    data: Data
    blockNumber: Quantity
    blockHash: Hash
    transactionHash: Hash
    logIndex: Quantity


class _Receipt(_Form):
    transactionHash: Hash
    blockNumber: Quantity
    blockHash: Hash
    status: Quantity
    gasUsed: Quantity
    contractAddress: AddressText | None = None
    logs: list[_Log]


class _Sent(_Form):
    hash: Hash


_QUANTITY: Final = TypeAdapter[Any](Quantity)
_DATA: Final = TypeAdapter[Any](Data)
_BLOCK: Final = TypeAdapter[Any](_Block | None)
FORMS: Final[dict[str, TypeAdapter[Any]]] = {
    "eth_blockNumber": _QUANTITY,
    "eth_call": _DATA,
    "eth_chainId": _QUANTITY,
    "eth_estimateGas": _QUANTITY,
    "eth_gasPrice": _QUANTITY,
    "eth_getBalance": _QUANTITY,
    "eth_getBlockByHash": _BLOCK,
    "eth_getBlockByNumber": _BLOCK,
    "eth_getCode": _DATA,
    "eth_getLogs": TypeAdapter[Any](list[_Log]),
    "eth_getTransactionByHash": TypeAdapter[Any](_Sent | None),
    "eth_getTransactionCount": _QUANTITY,
    "eth_getTransactionReceipt": TypeAdapter[Any](_Receipt | None),
    "eth_maxPriorityFeePerGas": _QUANTITY,
    "eth_sendRawTransaction": TypeAdapter[Any](Hash),
}


def require_form(method: str, result: Any) -> None:
    """Raise NotAnAnswer unless a result fits the method's schema. A method without a schema accepts any
    result.
    """
    form = FORMS.get(method)
    if form is None:
        return
    try:
        form.validate_python(result)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise NotAnAnswer(f"{method}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
