"""`eth_keyfile` is loaded when a key file is read or written, not with eth_account, which web3 imports.

It reads keys of validators too, so it brings the pairings of BLS12-381: 0.4 s of every command that asks a chain,
for something that nothing here uses. eth_account needs two functions of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import Any, Final, Literal

PACKAGE: Final = "eth_keyfile"
FUNCTIONS: Final = ("create_keyfile_json", "decode_keyfile_json")
_lock = Lock()


def put_off() -> None:
    """Stand in for the package, unless it is loaded. To be called before web3 or eth_account is imported."""
    if PACKAGE in sys.modules:
        return
    package, keyfile = ModuleType(PACKAGE), ModuleType(f"{PACKAGE}.keyfile")
    vars(package).update({name: _later(name) for name in FUNCTIONS}, __path__=[], keyfile=keyfile)
    vars(keyfile)["KDFType"] = Literal["pbkdf2", "scrypt"]
    sys.modules.update({PACKAGE: package, f"{PACKAGE}.keyfile": keyfile})


def _later(name: str) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        with _lock:
            real = _real()
        return getattr(real, name)(*given, **named)

    return call


@cache
def _real() -> ModuleType:
    for name in (f"{PACKAGE}.keyfile", PACKAGE):
        del sys.modules[name]
    return import_module(PACKAGE)
