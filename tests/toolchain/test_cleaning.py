"""`make clean` removes all that make has built, including the compiled libraries among the sources."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.toolchain.project import REPOSITORY, make

EXTENSION = re.compile(r'Extension\(\s*"([\w.]+)"')


def test_compiled_libraries_go_with_the_environment_that_they_were_made_for(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    names = EXTENSION.findall((REPOSITORY / "setup.py").read_text())
    assert len(names) == 2
    libraries = [tmp_path / f"{name.replace('.', '/')}.cpython-311-x86_64-linux-gnu.so" for name in names]
    data = tmp_path / "protocol" / "chain" / "contracts" / "Arbiter.json"
    for file in (*libraries, data, tmp_path / ".venv" / ".installed", tmp_path / "protocol" / "source.py"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    done = make(tmp_path, "clean")
    assert done.returncode == 0, done.stdout
    assert not any(file.exists() for file in (*libraries, data, tmp_path / ".venv"))
    assert (tmp_path / "protocol" / "source.py").is_file()
