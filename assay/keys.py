"""Implements the commands of `assay account` that create, import, export and re-encrypt keys. Imported only
when such a command runs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from eth_account import Account
from eth_account.signers.local import LocalAccount

from protocol.chain.accounts import (
    DEVELOPMENT_ACCOUNTS,
    DEVELOPMENT_CHAIN,
    change_password,
    create_account,
    development_account,
    export_account,
    require_new,
    save_account,
)
from protocol.chain.errors import AccountError
from protocol.chain.keystores import open_key, read_key_file
from protocol.chain.passwords import PasswordSource, ask
from protocol.node.output import Output

MOST: Final = 200
"""Limit on the characters that are read from standard input for a raw key. A raw key has 64 characters and an
optional prefix of 2.
"""
_KEY = re.compile(r"(?:0x)?([0-9a-fA-F]{64})")
_SOURCE_OPTION: Final = "--source-password-file"


def new(output: Output, name: str, password_file: Path | None) -> None:
    """Make an account."""
    _tell(output, name, create_account(name, password_file))


def bring_in(
    output: Output,
    name: str,
    file: Path | None,
    source_password_file: Path | None,
    password_file: Path | None,
) -> None:
    """Import the key of a key file, or a raw key from standard input, as account `name`."""
    require_new(name)
    if file is None:
        account = _raw_key()
    else:
        document = read_key_file(file)
        source = PasswordSource(source_password_file or password_file, _SOURCE_OPTION)
        account = open_key(document, source.read(f"Password of {file}: "), f"key file {file}")
    _refuse_published(account)
    password = PasswordSource(password_file).choose(f"New password for account {name}: ")
    save_account(name, account, password)
    _tell(output, name, account)


def take_out(
    output: Output, name: str, file: Path, password_file: Path | None, new_password_file: Path | None
) -> None:
    """Write an account's key file to another place. The copy keeps the account's password unless a new one is
    given.
    """
    wanted = None if new_password_file is None else PasswordSource(new_password_file)
    address = export_account(name, file, PasswordSource(password_file), wanted)
    output.say(f"the encrypted key of {name} ({address}) is in {file}")
    output.result({"name": name, "address": address, "file": str(file)})


def encrypt_anew(
    output: Output, name: str, password_file: Path | None, new_password_file: Path | None
) -> None:
    """Change an account's password."""
    wanted = PasswordSource(new_password_file, "--new-password-file")
    address = change_password(name, PasswordSource(password_file), wanted)
    output.say(f"account {name} ({address}) opens with its new password alone; older copies keep the old one")
    output.result({"name": name, "address": address})


def _raw_key() -> LocalAccount:
    """The account of a private key. The key is hexadecimal; it is typed at a terminal with hidden input, or
    read from standard input.
    """
    if sys.stdin.isatty():
        text = ask("Private key, 64 hexadecimal digits: ", "--file")
    else:
        text = sys.stdin.read(MOST)
    found = _KEY.fullmatch(text.strip())
    try:
        account: LocalAccount | None = Account.from_key("0x" + found[1]) if found is not None else None
    except ValueError:  # zero, or beyond the curve's order
        account = None
    if account is None:
        given = len(text.strip())  # not the text: it may be a key with a typing error
        raise AccountError(
            "private key",
            expected="64 hexadecimal digits of a key of secp256k1 on standard input",
            got=f"{given} other characters" if given else "nothing",
            remedy="or name a key file with --file",
        )
    return account


def _refuse_published(account: LocalAccount) -> None:
    for index in range(DEVELOPMENT_ACCOUNTS):
        if development_account(index, DEVELOPMENT_CHAIN).address == account.address:
            raise AccountError(
                "private key",
                expected="one that nobody else has",
                got=f"development key {index}, which is published",
                remedy=f"on a development chain say --dev-account {index}",
            )


def _tell(output: Output, name: str, account: LocalAccount) -> None:
    output.say(f"{name} {account.address}")
    output.result({"name": name, "address": account.address})
