"""Accounts: encrypted key files (the Web3 secret storage of eth-account), and the development keys of a
development chain.

A key is never an argument, an environment variable or a plain file. `dev:<index>` names a key of the
well-known mnemonic and is refused on any chain but 31337, for everybody has these keys.
"""

from __future__ import annotations

import json
import re
from functools import cache
from getpass import getpass
from pathlib import Path
from typing import Final

from eth_account import Account
from eth_account.hdaccount import key_from_seed, seed_from_mnemonic
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address

from protocol.chain.errors import AccountError
from protocol.commitments.atomic import write_atomically
from protocol.node.home import Home

DEVELOPMENT_CHAIN: Final = 31337
DEVELOPMENT_ACCOUNTS: Final = 53
MNEMONIC: Final = "test test test test test test test test test test test junk"
"""Of anvil and hardhat alike; published, so worth nothing on any other chain."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}")  # shorter than a private key in hexadecimal
_DEVELOPMENT = re.compile(r"dev:(\d{1,3})")


def open_account(name: str, chain_id: int, password_file: Path | None = None) -> LocalAccount:
    """The account `name`: `dev:<index>` on the development chain, or a key file made by `create_account`.

    The password comes from the first line of `password_file`, else from a prompt. Raises AccountError.
    """
    development = _DEVELOPMENT.fullmatch(name)
    if development is not None:
        return development_account(int(development[1]), chain_id)
    path = key_file(name)
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise AccountError(
            f"account {name!r}",
            expected=f"a key file at {path}",
            got=type(error).__name__,
            remedy="create the account first, or use dev:<index> on a development chain",
        ) from error
    password = _password(password_file, f"Password of account {name}: ")
    try:
        account: LocalAccount = Account.from_key(Account.decrypt(text, password))
    except (ValueError, TypeError, KeyError) as error:
        raise AccountError(
            f"account {name!r}",
            expected="a key file that this password opens",
            got=str(error),
            remedy="check the password file, or the key file's backup",
        ) from error
    return account


def address_of(name: str, chain_id: int) -> str:
    """The address of the account `name`, without its password. Raises AccountError."""
    development = _DEVELOPMENT.fullmatch(name)
    if development is not None:
        return str(development_account(int(development[1]), chain_id).address)
    path = key_file(name)
    try:
        return to_checksum_address(f"0x{json.loads(path.read_bytes())['address'].removeprefix('0x')}")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise AccountError(
            f"account {name!r}",
            expected=f"a key file with an address at {path}",
            got=type(error).__name__,
            remedy="create the account first, or use dev:<index> on a development chain",
        ) from error


def create_account(name: str, password_file: Path | None = None) -> LocalAccount:
    """A new key, encrypted under `name` with scrypt. Raises AccountError if the name is taken or the password
    is empty.
    """
    path = key_file(name)
    if path.exists():
        raise AccountError(
            f"account {name!r}",
            expected="a new name",
            got=f"a key file at {path}",
            remedy="choose another name",
        )
    password = _password(password_file, f"New password for account {name}: ")
    if password_file is None and getpass("Again: ") != password:
        raise AccountError(
            f"account {name!r}", expected="the same password twice", got="two", remedy="try again"
        )
    account: LocalAccount = Account.create()
    # The temporary file of an atomic write is made with mode 0600.
    write_atomically(path, json.dumps(account.encrypt(password)).encode())
    return account


def list_accounts() -> list[str]:
    """Names of the key files under ASSAY_HOME."""
    return sorted(path.stem for path in Home.find().accounts.glob("*.json"))


def key_file(name: str) -> Path:
    """Where the key of an account lies. Raises AccountError for a name that is none."""
    if not _NAME.fullmatch(name):
        raise AccountError(
            "account name",
            expected="1 to 48 letters, digits, - and _, or dev:<index>",
            got=f"{len(name)} characters",  # not the name: somebody may have pasted a key
            remedy="keys are never given on the command line: create an account and name it",
        )
    return Home.find().accounts / f"{name}.json"


def development_account(index: int, chain_id: int) -> LocalAccount:
    """Account `index` of the development mnemonic. Raises AccountError on any chain but 31337."""
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
    seed = seed_from_mnemonic(MNEMONIC, "")
    account: LocalAccount = Account.from_key(key_from_seed(seed, f"m/44'/60'/0'/0/{index}"))
    return account


def _password(file: Path | None, prompt: str) -> str:
    if file is None:
        password = getpass(prompt)
    else:
        try:
            lines = file.read_text("utf-8").splitlines()
        except OSError as error:
            raise AccountError(
                "password file",
                expected=f"a readable file at {file}",
                got=type(error).__name__,
                remedy="name a file whose first line is the password",
            ) from error
        password = lines[0] if lines else ""
    if not password:
        raise AccountError(
            "password",
            expected="at least one character",
            got="none",
            remedy="put the password into the first line of the file",
        )
    return password
