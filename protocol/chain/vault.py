"""The vault: free balances and locks (contracts/src/interfaces/IStakeVault.sol)."""

from __future__ import annotations

from protocol.chain.blocks import BlockId
from protocol.chain.bound_contract import BoundContract
from protocol.chain.receipts import Receipt
from protocol.chain.views import Lock


class Vault(BoundContract):
    """The vault contract. Amounts are token units."""

    def deposit(self, amount: int) -> Receipt:
        """Move tokens into the vault, which must be approved for them."""
        return self.write("deposit", amount)

    def withdraw(self, amount: int) -> Receipt:
        """Withdraw free tokens to the account."""
        return self.write("withdraw", amount)

    def free(self, account: str, block: BlockId = "latest") -> int:
        """Tokens that an account may lock or withdraw."""
        return int(self.read("free", account, block=block))

    def burned(self) -> int:
        """Tokens burned so far."""
        return int(self.read("burned"))

    def locks(self) -> int:
        """Number of locks ever made. Ids run from 1 to this number."""
        return int(self.read("locks"))

    def lock_of(self, lock: int) -> Lock:
        """A lock by its number."""
        return Lock.from_abi(self.read_all("lockOf", lock))
