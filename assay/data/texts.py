"""Text as rows of tokens: files one after the other, cut into rows of one length."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from assay.data.checks import Array, Arrays, require_count, require_file
from assay.errors import DataError

LOG = logging.getLogger("assay.data")


def text(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    length: int,
    tokenizer: Callable[[str], Any] | None = None,
) -> Arrays:
    """Cut the tokens of text files, concatenated in the order given, into rows: `x` [n, length]. An
    incomplete last row is dropped, and a warning in the log `assay.data` says how long it was.

    By default a token is a byte (u8), and a single file is mapped, not read. Otherwise `tokenizer` turns a
    file's UTF-8 text into integers from 0 to 2^31 - 1, and `x` is int32. For a Hugging Face tokenizer, pass
    `tokenizer.encode`. Raises DataError.
    """
    files = [Path(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    require_count("length", length)
    if not files:
        raise DataError("text", expected="at least one file", got="none", remedy="name some")
    for file in files:
        require_file(file)
    parts = [_bytes(file) if tokenizer is None else _tokens(file, tokenizer) for file in files]
    tokens = parts[0] if len(parts) == 1 else np.concatenate(parts)
    rows, rest = divmod(len(tokens), length)
    if not rows:
        raise DataError(
            "text",
            expected=f"{length} tokens, to fill a row",
            got=len(tokens),
            remedy="give more text, or a smaller length",
        )
    if rest:
        LOG.warning(
            "text: the last %d of %d tokens do not fill a row of %d and are left out",
            rest,
            len(tokens),
            length,
        )
    return {"x": tokens[: rows * length].reshape(rows, length)}


def _bytes(file: Path) -> Array:
    return np.memmap(file, np.uint8, "r")


def _tokens(file: Path, tokenizer: Callable[[str], Any]) -> Array:
    try:
        words = file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"text {file}, byte {error.start}",
            expected="UTF-8",
            got=error.reason,
            remedy="convert the file, or take bytes as tokens",
        ) from error
    try:
        found = tokenizer(words)
        array = np.asarray(getattr(found, "ids", found))
    except Exception as error:
        got = f"{type(error).__name__}: {str(error)[:200]}"
        raise DataError(f"text {file}", expected="tokens", got=got, remedy="mend the tokenizer") from error
    if not array.size:
        return np.empty(0, np.int32)
    got = ""
    if array.ndim != 1 or array.dtype.kind not in "iu":
        got = f"{array.dtype} {array.shape}"
    elif int(array.min()) < 0 or int(array.max()) >= 2**31:
        got = f"from {array.min()} to {array.max()}"
    if got:
        raise DataError(
            f"text {file}",
            expected="a list of integers from 0 to 2147483647 from the tokenizer",
            got=got,
            remedy="pass a function of a text that returns its tokens, such as tokenizer.encode",
        )
    return array.astype(np.int32)
