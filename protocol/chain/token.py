"""The ERC-20 that tasks are paid in. `mint` is only for the test token of a development chain."""

from __future__ import annotations

from functools import cached_property

from protocol.chain.abi import contract
from protocol.chain.blocks import BlockId
from protocol.chain.bound_contract import BoundContract
from protocol.chain.receipts import Receipt


class Token(BoundContract):
    """The token contract. Amounts are token units."""

    def balance_of(self, account: str, block: BlockId = "latest") -> int:
        """Tokens of an account outside the vault."""
        return int(self.read("balanceOf", account, block=block))

    def allowance(self, owner: str, spender: str) -> int:
        """The amount that `spender` may still take from `owner`."""
        return int(self.read("allowance", owner, spender))

    def approve(self, spender: str, amount: int) -> Receipt:
        """Let `spender` take up to `amount` of the account's tokens."""
        return self.write("approve", spender, amount)

    def mint(self, account: str, amount: int) -> Receipt:
        """Mint tokens. Only the test token can be minted, and anyone may mint it."""
        return self._test_token.write("mint", account, amount)

    @cached_property
    def _test_token(self) -> BoundContract:
        return BoundContract(contract("TestToken"), self.address, self.connection, self.sender)
