"""The library `eth_keyfile` reads and writes key files. Commands that need no key file do not load this library."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ROUND_TRIP = """
import json, sys
from protocol.chain import transport
from eth_account import Account
early = "py_ecc.bls" in sys.modules
key = bytes(range(1, 33))
written = Account.encrypt(key, "word", kdf="pbkdf2", iterations=2)
again = Account.decrypt(written, "word")
import eth_keyfile
print(json.dumps([early, again == key, eth_keyfile.decode_keyfile_json(written, b"word") == key, written["version"]]))
"""


def test_keys_are_opened_by_the_library_and_nothing_loads_it_before() -> None:
    done = subprocess.run([sys.executable, "-c", ROUND_TRIP], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [False, True, True, 3]


def test_where_the_library_is_loaded_nothing_stands_in_for_it() -> None:
    code = "import eth_keyfile as real; import protocol.chain, sys; assert sys.modules['eth_keyfile'] is real"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["create_keyfile_json", "decode_keyfile_json"])
def test_the_library_still_has_what_stands_in_for_it(name: str) -> None:
    code = f"import eth_keyfile, eth_keyfile.keyfile as k; eth_keyfile.{name}; print(k.KDFType.__args__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "('pbkdf2', 'scrypt')"
