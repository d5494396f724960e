"""`assay init`: a folder with a working task to start from."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final

from assay.errors import NotMade

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
"""A name that is valid for a folder, a file and a task (`description.TaskTable`)."""


def write_example(folder: Path) -> tuple[Path, Path]:
    """Write the example task of `assay.example`, a model file and a task file, to a new folder, and return
    the paths of these files. The task gets the folder's name. Raises NotMade if the folder was not made.
    """
    folder = folder.absolute()
    name = folder.name
    if NAME.fullmatch(name) is None:
        raise NotMade(
            f"name {name!r}",
            expected="a letter or _, then letters, digits, - and _, at most 63 characters in all",
            got=f"{len(name)} characters, {name[:63]!a}",
            remedy="choose another name",
        )
    if os.path.lexists(folder):
        raise NotMade(
            f"folder {folder}",
            expected="none of this name",
            got="one that is there, or a file",
            remedy="choose another name, or move it away; nothing was overwritten",
        )
    module = name.replace("-", "_") + ".py"
    words = {"NAME": name, "MODEL": module, "FILE": f"{name}.toml"}
    texts = {module: _filled("model.py", words), f"{name}.toml": _filled("task.toml", words)}
    try:
        _write(folder, texts)
    except OSError as error:
        raise NotMade(
            f"folder {folder}",
            expected="a place that can be written to",
            got=f"{type(error).__name__}: {error.strerror}",
            remedy="choose another place",
        ) from error
    return folder / module, folder / f"{name}.toml"


def _write(folder: Path, texts: dict[str, str]) -> None:
    """Write all files or none: they are written to a temporary folder, which is then renamed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, text in texts.items():
            (made / name).write_text(text)
        made.chmod(0o777 & ~_umask())
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _filled(file: str, words: Mapping[str, str]) -> str:
    """A file of the example with its placeholders replaced."""
    text = resources.files("assay.example").joinpath(file).read_text("utf-8")
    return re.sub(rf"\b({'|'.join(words)})\b", lambda found: words[found[0]], text)
