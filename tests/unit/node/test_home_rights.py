"""A home folder in which another user, such as root after a forgotten `sudo -u`, owns some files or folders.

Every command names the file or folder and ends with exit code 2, so that no supervisor starts it again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.errors import ExitCode
from tests.unit.node.rights import mode, run_without_rights

NOWHERE = ("--rpc", "http://127.0.0.1:1")
RUN = ("solver", "run", "--dev-account", "1", *NOWHERE)
NEW = ("assay", "account", "new", "a", "--password-file", "word")
PASSWD = ("assay", "account", "passwd", "a", "--password-file", "word", "--new-password-file", "word")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with some folders and a lock file. The working directory has a password file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "word").write_text("a word\n")
    for folder in ("accounts", "solver/7-market"):
        (tmp_path / "home" / folder).mkdir(parents=True)
    (tmp_path / "home/solver/control.lock").touch()
    (tmp_path / "home/solver/7-market/solver.sqlite").write_text("no database")
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("path", "bits", "command"),
    [
        ("solver", 0, RUN),
        ("solver", 0, ("solver", "earnings")),
        ("solver", 0, ("solver", "status")),
        ("solver/control.lock", 0, RUN),
        ("solver/control.lock", 0o444, RUN),
        ("solver/7-market", 0, ("solver", "earnings")),
        ("accounts", 0, NEW),
        ("accounts", 0o555, NEW),
        ("accounts", 0, PASSWD),
        ("accounts", 0, ("assay", "account", "list", "--offline")),
    ],
)
def test_a_right_that_lacks_is_named_and_hopeless(
    home: Path, path: str, bits: int, command: tuple[str, ...]
) -> None:
    with mode(home / path, bits):
        done = run_without_rights(*command, home=home)
    assert done.returncode == ExitCode.HOPELESS, done.stdout + done.stderr
    assert str(home / path) in done.stderr
    assert "give this user the right to it" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_password_is_not_changed_where_the_folder_takes_no_file(home: Path) -> None:
    assert run_without_rights(*NEW, home=home).returncode == 0
    before = (home / "accounts/a.json").read_bytes()
    with mode(home / "accounts", 0o555):
        done = run_without_rights(*PASSWD, home=home)
    assert done.returncode == ExitCode.HOPELESS, done.stderr
    assert (home / "accounts/a.json").read_bytes() == before


def test_a_database_that_is_not_read_is_named(home: Path) -> None:
    """The status names the database and still succeeds, because other accounts of the home folder have their
    own databases.
    """
    done = run_without_rights("solver", "status", home=home)
    assert done.returncode == 0, done.stderr
    assert f"not read: database {home}/solver/7-market/solver.sqlite" in done.stdout
