"""Accounts: encrypted key files under the home folder (`keystores`), and the development keys of a
development chain.

A key is never an argument, an environment variable or a plain file. `dev:<index>` names a key of the
well-known mnemonic and is refused on any chain but 31337, because everybody has these keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eth_utils.address import is_checksum_address, is_hex_address, to_checksum_address

from protocol.chain.errors import AccountError
from protocol.chain.keystores import address_in, encrypted, key_file, open_key, read_key_file
from protocol.chain.passwords import PasswordSource
from protocol.commitments.atomic import write_atomically, write_new
from protocol.node.home import Home, HomeError

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

DEVELOPMENT_CHAIN: Final = 31337
DEVELOPMENT_ACCOUNTS: Final = 53
MNEMONIC: Final = "test test test test test test test test test test test junk"
"""The default mnemonic of anvil and hardhat. It is public, so never use it on a chain with real money."""

_DEVELOPMENT = re.compile(r"dev:(\d{1,3})")


@dataclass(frozen=True, slots=True)
class Listed:
    """An account under the home folder. `address` is None if the key file is damaged or names no address."""

    name: str
    address: str | None


def open_account(name: str, chain_id: int, password_file: Path | None = None) -> LocalAccount:
    """The account `name`: `dev:<index>` on the development chain, or the key file of that name under the
    home folder.

    The password comes from the first line of `password_file`, else from a prompt. Raises AccountError.
    """
    development = _DEVELOPMENT.fullmatch(name)
    if development is not None:
        return development_account(int(development[1]), chain_id)
    return open_named(name, PasswordSource(password_file))


def open_named(name: str, password: PasswordSource) -> LocalAccount:
    """The account of a key file under the home folder. Raises AccountError."""
    return _open(name, password)[0]


def _open(name: str, source: PasswordSource) -> tuple[LocalAccount, str]:
    """Open an account's key file with the password from `source`. Returns the account and the password."""
    path = key_file(name)
    if not path.exists():
        raise AccountError(
            f"account {name!r}",
            expected=f"a key file at {path}",
            got="none",
            remedy="create the account first (`assay account new`), or use dev:<index> on a development chain",
        )
    document = read_key_file(path)
    password = source.read(f"Password of account {name}: ")
    return open_key(document, password, f"account {name!r}"), password


def address_of(account: str, chain_id: int) -> str:
    """The address of `account`: an address in hexadecimal, `dev:<index>`, or the name of a key file, which is
    read without its password. Raises AccountError.
    """
    development = _DEVELOPMENT.fullmatch(account)
    if development is not None:
        return str(development_account(int(development[1]), chain_id).address)
    if account.startswith("0x"):
        return _checked_address(account)
    file = key_file(account)
    found = address_in(file)
    if found is None:
        raise AccountError(
            f"account {account!r}",
            expected=f"a key file that names its address at {file}",
            got="a damaged one" if file.exists() else "none",
            remedy="name an address, dev:<index>, or an account that `assay account list` shows",
        )
    return found


def _checked_address(text: str) -> str:
    digits = text[2:]
    if not is_hex_address(text):
        got = f"0x and {len(digits)} other characters"  # not the text: somebody may have pasted a key
        remedy = "an address has 40 hexadecimal digits"
    elif digits not in (digits.lower(), digits.upper()) and not is_checksum_address(text):
        got, remedy = text, "its checksum (EIP-55) does not fit: one of its characters is another"
    elif not int(digits, 16):
        got, remedy = text, "nobody has the key of the zero address"
    else:
        return str(to_checksum_address(text))
    raise AccountError("address", expected="0x and 40 hexadecimal digits", got=got, remedy=remedy)


def create_account(name: str, password_file: Path | None = None) -> LocalAccount:
    """Create an account with a new key, and save it encrypted as `name`. Raises AccountError, for example if
    the name is taken or the password is empty, and HomeError if this user may not write the file.
    """
    from eth_account import Account

    require_new(name)
    password = PasswordSource(password_file).choose(f"New password for account {name}: ")
    account: LocalAccount = Account.create()
    save_account(name, account, password)
    return account


def require_new(name: str) -> Path:
    """Path for the key file of a new account. Raises AccountError if the name is taken."""
    path = key_file(name)
    if path.exists():
        raise _taken(name, path)
    return path


def save_account(name: str, account: LocalAccount, password: str) -> None:
    """Save a key, encrypted, as the account `name`. Raises AccountError if the name is taken, and HomeError
    if this user may not write the file.
    """
    path = require_new(name)
    try:
        # The temporary file of an atomic write is made with mode 0600.
        write_new(path, encrypted(account, password))
    except FileExistsError as error:
        raise _taken(name, path) from error
    except PermissionError as error:
        raise _not_written(path, error) from error


def export_account(name: str, file: Path, password: PasswordSource, new: PasswordSource | None) -> str:
    """Write an account's key to a new key file, encrypted with the password from `new`, or with the account's
    current password if `new` is None. Returns the address. Raises AccountError, for example if the file
    exists.
    """
    if file.exists() or file.is_symlink():
        raise _not_overwritten(file)
    account, used = _open(name, password)
    chosen = used if new is None else new.choose(f"Password of {file}: ")
    try:
        write_new(file, encrypted(account, chosen))
    except OSError as error:
        if file.exists():  # another process was faster
            raise _not_overwritten(file) from error
        raise AccountError(
            f"key file {file}",
            expected="a place that can be written",
            got=type(error).__name__,
            remedy="name another file",
        ) from error
    return str(account.address)


def change_password(name: str, password: PasswordSource, new: PasswordSource) -> str:
    """Encrypt an account's key with a new password, and return its address. A wrong old password changes
    nothing. Raises AccountError, and HomeError if this user may not write the file.
    """
    account, _ = _open(name, password)
    chosen = new.choose(f"New password for account {name}: ")
    path = key_file(name)
    try:
        write_atomically(path, encrypted(account, chosen))
    except PermissionError as error:
        raise _not_written(path, error) from error
    return str(account.address)


def list_accounts() -> list[Listed]:
    """The accounts under ASSAY_HOME, in order of their names. Raises HomeError."""
    files = sorted(Home.find().accounts.glob("*.json"))
    return [Listed(file.stem, address_in(file)) for file in files]


def _taken(name: str, path: Path) -> AccountError:
    return AccountError(
        f"account {name!r}",
        expected="a new name",
        got=f"a key file at {path}",
        remedy="choose another name",
    )


def _not_written(path: Path, error: PermissionError) -> HomeError:
    return HomeError(path.parent, f"{error.strerror}, when {path.name} was written")


def _not_overwritten(file: Path) -> AccountError:
    return AccountError(
        f"key file {file}",
        expected="a new file",
        got="one that is there",
        remedy="name another, or move it away",
    )


def development_account(index: int, chain_id: int) -> LocalAccount:
    """Account `index` of the development mnemonic. Raises AccountError on any chain but 31337, and for an
    index of 53 or more.
    """
    if chain_id != DEVELOPMENT_CHAIN:
        raise AccountError(
            f"account dev:{index}",
            expected=f"chain id {DEVELOPMENT_CHAIN}",
            got=chain_id,
            remedy="everybody has the development keys: create an account for a real chain",
        )
    if index >= DEVELOPMENT_ACCOUNTS:
        raise AccountError(
            f"account dev:{index}",
            expected=f"an index below {DEVELOPMENT_ACCOUNTS}",
            got=index,
            remedy="the development chain funds only these",
        )
    return _derive(index)


@cache
def _derive(index: int) -> LocalAccount:
    from eth_account import Account
    from eth_account.hdaccount import key_from_seed, seed_from_mnemonic

    seed = seed_from_mnemonic(MNEMONIC, "")
    account: LocalAccount = Account.from_key(key_from_seed(seed, f"m/44'/60'/0'/0/{index}"))
    return account
