"""Key files are written, exported and re-encrypted completely, and never with a readable key. Key files from
elsewhere are checked.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount

from protocol.chain import accounts, keystores
from protocol.chain.accounts import (
    Listed,
    address_of,
    change_password,
    export_account,
    list_accounts,
    open_account,
    save_account,
)
from protocol.chain.errors import AccountError, NoTerminal
from protocol.chain.keystores import MAX_BYTES, key_file, open_key, read_key_file
from protocol.chain.passwords import PasswordSource

KEY = "0x" + "12" * 32
ADDRESS = str(Account.from_key(KEY).address)


@pytest.fixture(autouse=True)
def cheap_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make key files with a cheap key derivation: the real one is slow, and these tests do not check it."""
    monkeypatch.setattr(LocalAccount, "encrypt", lambda account, password: quick(account.key, password))


@pytest.fixture
def password(tmp_path: Path) -> Callable[[str], PasswordSource]:
    def source(text: str) -> PasswordSource:
        file = tmp_path / text
        file.write_text(text + "\n")
        return PasswordSource(file)

    return source


def quick(key: Any, password: str) -> dict[str, Any]:
    made: dict[str, Any] = Account.encrypt(key, password, kdf="pbkdf2", iterations=2)
    return made


Source = Callable[[str], PasswordSource]


def saved(name: str = "me") -> None:
    save_account(name, Account.from_key(KEY), "old")


def test_a_password_is_changed_in_one_step_and_a_wrong_one_changes_nothing(password: Source) -> None:
    saved()
    before = key_file("me").read_bytes()
    with pytest.raises(AccountError, match="got another password"):
        change_password("me", password("wrong"), password("new"))
    with pytest.raises(AccountError, match="at least one character"):
        change_password("me", password("old"), PasswordSource(Path("/dev/null")))
    with pytest.raises(NoTerminal, match="--new-password-file"):
        change_password("me", password("old"), PasswordSource(None, "--new-password-file"))
    assert key_file("me").read_bytes() == before
    assert change_password("me", password("old"), password("new")) == ADDRESS
    assert open_account("me", 1, password("new").file).address == ADDRESS
    with pytest.raises(AccountError, match="another password"):
        open_account("me", 1, password("old").file)
    assert stat.S_IMODE(key_file("me").stat().st_mode) == 0o600


def test_a_full_disk_leaves_the_old_password(password: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    saved()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            change_password("me", password("old"), password("new"))
    assert open_account("me", 1, password("old").file).address == ADDRESS
    assert [file.name for file in key_file("me").parent.iterdir()] == ["me.json"]


@pytest.mark.parametrize("links", [True, False])
def test_an_export_is_private_opens_and_overwrites_nothing(
    password: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    saved()
    if not links:  # as on a memory stick

        def refused(_source: object, _target: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", refused)
    same, other = tmp_path / "same.json", tmp_path / "deep" / "other.json"
    assert export_account("me", same, password("old"), None) == ADDRESS
    export_account("me", other, password("old"), password("new"))
    for file, word in ((same, "old"), (other, "new")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert KEY[2:] not in file.read_text()
        assert open_key(read_key_file(file), word, "it").address == ADDRESS
    before = same.read_bytes()
    with pytest.raises(AccountError, match="expected a new file, got one that is there"):
        export_account("me", same, password("old"), None)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(AccountError, match="one that is there"):
        export_account("me", tmp_path / "link", password("old"), None)
    with pytest.raises(AccountError, match="a place that can be written"):
        export_account("me", Path("/dev/null/x.json"), password("old"), None)
    assert same.read_bytes() == before


def test_a_name_is_taken_once_whoever_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    saved()
    before = key_file("me").read_bytes()
    monkeypatch.setattr(accounts, "require_new", key_file)  # as if another process came first
    with pytest.raises(AccountError, match="expected a new name"):
        saved()
    assert key_file("me").read_bytes() == before


def geth() -> dict[str, Any]:
    """A key file as some programs write it: with the field `Crypto`, and with the address without 0x."""
    made = quick(KEY, "old")
    return {"Crypto": made["crypto"], "address": ADDRESS[2:].lower(), "version": 3, "id": made["id"]}


def test_a_key_file_of_another_program_opens(tmp_path: Path) -> None:
    file = tmp_path / "UTC--2026"
    file.write_text(json.dumps(geth()))
    assert open_key(read_key_file(file), "old", "it").address == ADDRESS


def changed(crypto: dict[str, Any], **top: Any) -> str:
    document = geth() | top
    document["Crypto"] = document["Crypto"] | crypto
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "more than 65536 bytes"),
        ("[" * 60_000, "no JSON"),
        ("[]", "no JSON object"),
        ("{}", "version None"),
        (json.dumps({"version": 3}), "no crypto.kdfparams"),
        (json.dumps({"version": 3, "crypto": {"kdfparams": []}}), "no crypto.kdfparams"),
        (json.dumps({"version": 4, "crypto": {}}), "version 4"),
        ("x" * (MAX_BYTES + 1), "more than 65536 bytes"),
        (json.dumps({"version": 3, "crypto": {"kdfparams": {"n": 1 << 40, "r": 8}}}), "a dearer one"),
        (json.dumps({"version": 3, "crypto": {"kdfparams": {"c": 1 << 40}}}), "a dearer one"),
        (json.dumps({"version": 3, "crypto": {"kdfparams": {"dklen": 1 << 40}}}), "a dearer one"),
        (json.dumps({"version": 3, "crypto": {"kdfparams": {"n": "8"}}}), "not positive numbers"),
    ],
)
def test_a_file_that_is_none_is_refused_before_it_costs_anything(
    tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "key"
    file.write_text(text)
    with pytest.raises(AccountError, match=words):
        read_key_file(file)


@pytest.mark.parametrize(
    ("crypto", "top", "words"),
    [
        ({}, {"address": "00" * 20}, "which the file names"),
        ({"mac": "00" * 32}, {}, "another password"),
        ({"mac": 7}, {}, "this password opens"),
        ({"ciphertext": "zz"}, {}, "this password opens"),
        ({"kdf": "argon2"}, {}, "this password opens"),
        ({"cipherparams": None}, {}, "this password opens"),
    ],
)
def test_a_file_that_was_tampered_with_does_not_open(
    tmp_path: Path, crypto: dict[str, Any], top: dict[str, Any], words: str
) -> None:
    file = tmp_path / "key"
    file.write_text(changed(crypto, **top))
    document = read_key_file(file)
    with pytest.raises(AccountError, match=words):
        open_key(document, "old", "it")


def test_an_account_is_named_by_address_index_or_name() -> None:
    saved()
    assert address_of("me", 1) == ADDRESS
    assert address_of(ADDRESS.lower(), 1) == ADDRESS
    assert address_of("dev:0", 31337) == "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    with pytest.raises(AccountError, match="everybody has the development keys"):
        address_of("dev:0", 1)
    key_file("broken").write_text("{}")
    assert list_accounts() == [Listed("broken", None), Listed("me", ADDRESS)]
    with pytest.raises(AccountError, match="got a damaged one"):
        address_of("broken", 1)


def test_a_password_of_two_terminals_is_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(["one", "two", "same", "same", ""])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("protocol.chain.passwords.getpass", lambda _prompt: next(typed))
    with pytest.raises(AccountError, match="the same one twice"):
        PasswordSource(None).choose("Password: ")
    assert PasswordSource(None).choose("Password: ") == "same"
    with pytest.raises(AccountError, match="at least one character"):
        PasswordSource(None).read("Password: ")


def test_what_is_written_has_been_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contents of a key file are decrypted once before they are written, and are refused if this fails. A
    file that cannot be opened later would cost the account its tokens.
    """
    monkeypatch.setattr(LocalAccount, "encrypt", lambda _account, _password: geth() | {"Crypto": {}})
    with pytest.raises(AccountError, match="this password opens"):
        keystores.encrypted(Account.from_key(KEY), "old")
