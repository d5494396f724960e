"""Loads `eth_keyfile` only when a key is encrypted or decrypted, and not when web3 imports eth_account.

`eth_keyfile` can also read validators' keys, so it imports BLS12-381 pairings, which nothing here uses. That
import takes 0.4 s, and every command that uses a chain would have to wait for it. eth_account needs only two
functions of `eth_keyfile`.
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
    """Replace `eth_keyfile` by a stub, unless it is already loaded. Call this before importing web3 or
    eth_account.
    """
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
