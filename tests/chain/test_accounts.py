"""Accounts: key files that only their password opens, development keys that work only on their chain."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from protocol.chain.accounts import (
    DEVELOPMENT_ACCOUNTS,
    Listed,
    create_account,
    development_account,
    list_accounts,
    open_account,
)
from protocol.chain.errors import AccountError
from protocol.chain.keystores import key_file


@pytest.fixture
def password(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text("correct horse\nanother line\n")
    return path


def test_a_key_file_is_encrypted_and_opens_with_its_password(password: Path) -> None:
    made = create_account("alice", password)
    path = key_file("alice")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert made.key.hex() not in text
    assert json.loads(text)["crypto"]["kdf"] == "scrypt"
    assert open_account("alice", 1, password).address == made.address
    assert list_accounts() == [Listed("alice", str(made.address))]
    with pytest.raises(AccountError, match="a new name"):
        create_account("alice", password)
    wrong = password.with_name("wrong")
    wrong.write_text("incorrect horse")
    with pytest.raises(AccountError, match="this password opens"):
        open_account("alice", 1, wrong)
    path.write_text("{}")
    with pytest.raises(AccountError, match="Web3 Secret Storage"):
        open_account("alice", 1, password)
    assert list_accounts() == [Listed("alice", None)]


def test_a_missing_account_or_password_is_one_clear_error(password: Path, tmp_path: Path) -> None:
    with pytest.raises(AccountError, match="create the account first"):
        open_account("bob", 1, password)
    empty = tmp_path / "empty"
    empty.write_text("")
    with pytest.raises(AccountError, match="at least one character"):
        create_account("bob", empty)
    with pytest.raises(AccountError, match="readable text file"):
        create_account("bob", tmp_path / "none")
    assert list_accounts() == []


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", "", "0x" + "11" * 32 + "!", "dev:", "dev:x", "a" * 49, "ab" * 32]
)
def test_a_name_that_is_none_is_refused_and_not_repeated(name: str, password: Path) -> None:
    with pytest.raises(AccountError, match="account name") as error:
        open_account(name, 31337, password)
    assert not name or name not in str(error.value).replace("dev:<index>", "")


def test_development_keys_are_those_that_everybody_knows() -> None:
    # The first two accounts that anvil and hardhat print.
    assert development_account(0, 31337).address == "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    assert open_account("dev:1", 31337).address == "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"


def test_development_keys_are_refused_on_every_other_chain() -> None:
    with pytest.raises(AccountError, match="everybody has the development keys"):
        open_account("dev:0", 1)
    with pytest.raises(AccountError, match=f"index below {DEVELOPMENT_ACCOUNTS}"):
        open_account(f"dev:{DEVELOPMENT_ACCOUNTS}", 31337)
