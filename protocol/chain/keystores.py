"""Key files in version 3 of Web3 Secret Storage, as geth and eth-account write them, and the paths of the
accounts' key files.

A file may come from a stranger, so its size and the cost of its key derivation are bounded before it is
opened.

eth_account is imported inside functions: it would double the loading time of a command that only reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eth_utils.address import is_hex_address, to_checksum_address

from protocol.chain.errors import AccountError
from protocol.node.documents import parse_json
from protocol.node.home import Home

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

MAX_BYTES: Final = 1 << 16
MAX_MEMORY: Final = 1 << 29
"""Maximum bytes of memory that scrypt may take. It takes 128 times the product of its parameters n and r.
geth's own files take 256 MiB.
"""
MAX_PARALLEL: Final = 16
MAX_ITERATIONS: Final = 10_000_000
"""Maximum number of iterations of PBKDF2; eth-account's own files have 1,000,000."""
MAX_LENGTH: Final = 64
"""Maximum bytes of a derived key; 32 are used."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}")  # shorter than a private key in hexadecimal


def key_file(name: str) -> Path:
    """Path of the key file of an account. Raises AccountError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise AccountError(
            "account name",
            expected="1 to 48 letters, digits, - and _, or dev:<index>",
            got=f"{len(name)} characters",  # not the name: somebody may have pasted a key
            remedy="keys are never given on the command line: create an account and name it",
        )
    return Home.find().accounts / f"{name}.json"


def read_key_file(file: Path) -> dict[str, Any]:
    """The JSON object in a key file, with all field names in lower case. Raises AccountError."""
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        found = parse_json(data) if len(data) <= MAX_BYTES else None
    except OSError as error:
        raise AccountError(
            f"key file {file}",
            expected="a readable file",
            got=type(error).__name__,
            remedy="name a file that is there",
        ) from error
    except ValueError as error:
        raise _malformed(file, "no JSON") from error
    if not isinstance(found, dict):
        raise _malformed(file, "no JSON object" if len(data) <= MAX_BYTES else f"more than {MAX_BYTES} bytes")
    document: dict[str, Any] = _lower(found)
    if document.get("version") != 3:
        raise _malformed(file, f"version {str(document.get('version'))[:20]}")
    _require_affordable(file, document)
    return document


def open_key(document: Mapping[str, Any], password: str, what: str) -> LocalAccount:
    """The account in a key file's document. Raises AccountError, whose message calls the file `what`."""
    from eth_account import Account

    try:
        account: LocalAccount = Account.from_key(Account.decrypt(dict(document), password))
    except Exception as error:  # the document may be a stranger's: any part may have any type
        raise AccountError(
            what,
            expected="a key file that this password opens",
            got="another password" if "MAC mismatch" in str(error) else f"{type(error).__name__}: {error}",
            remedy="check the password, or the key file's backup",
        ) from error
    stated = document.get("address")
    if isinstance(stated, str) and is_hex_address(stated) and to_checksum_address(stated) != account.address:
        raise AccountError(
            what,
            expected=f"the key of {to_checksum_address(stated)}, which the file names",
            got=f"that of {account.address}",
            remedy="this file was changed or put together: use the original",
        )
    return account


def encrypted(account: LocalAccount, password: str) -> bytes:
    """The bytes of a key file for this account (scrypt). The file is decrypted once with the password as a
    check. Raises AccountError.
    """
    document = account.encrypt(password)
    if open_key(document, password, f"key file of {account.address}").address != account.address:
        raise AccountError(f"key file of {account.address}", expected="its key", got="another")
    return json.dumps(document).encode()


def address_in(file: Path) -> str | None:
    """The address that a key file names, read without the password; None if it names none or is damaged."""
    try:
        stated = read_key_file(file).get("address")
    except AccountError:
        return None
    return to_checksum_address(stated) if isinstance(stated, str) and is_hex_address(stated) else None


def _require_affordable(file: Path, document: Mapping[str, Any]) -> None:
    crypto = document.get("crypto")
    given = crypto.get("kdfparams") if isinstance(crypto, dict) else None
    if not isinstance(given, dict):
        raise _malformed(file, "no crypto.kdfparams")
    n, r, p, c, length = (given.get(name, 1) for name in ("n", "r", "p", "c", "dklen"))
    if not all(isinstance(value, int) and value > 0 for value in (n, r, p, c, length)):
        raise _malformed(file, "kdfparams that are not positive numbers")
    if 128 * n * r > MAX_MEMORY or p > MAX_PARALLEL or c > MAX_ITERATIONS or length > MAX_LENGTH:
        raise AccountError(
            f"key file {file}",
            expected=f"a key derivation of at most {MAX_MEMORY >> 20} MiB and {MAX_ITERATIONS:,} iterations",
            got="a dearer one",
            remedy="write it again with the program that it is from, with usual costs",
        )


def _malformed(file: Path, got: str) -> AccountError:
    return AccountError(
        f"key file {file}",
        expected="Web3 Secret Storage of version 3 (JSON)",
        got=got,
        remedy="name a key file of geth, of eth-account or of another home folder",
    )


def _lower(value: Any) -> Any:
    """Convert the field names of all objects to lower case, because some programs write `Crypto`."""
    if not isinstance(value, dict):
        return value
    return {str(name).lower(): _lower(item) for name, item in value.items()}
