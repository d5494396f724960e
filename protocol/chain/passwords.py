"""Passwords of key files: the first line of a file, otherwise input at a terminal. Without a terminal, asking
fails at once.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from getpass import getpass
from pathlib import Path

from protocol.chain.errors import AccountError, NoTerminal

MAX_BYTES = 1 << 16
"""Maximum bytes of a password file."""


@dataclass(frozen=True, slots=True)
class PasswordSource:
    """The source of one password: `file` if given, otherwise a prompt. `option` names the command-line option
    for the file.
    """

    file: Path | None
    option: str = "--password-file"

    def read(self, prompt: str) -> str:
        """An existing password. Raises AccountError, NoTerminal."""
        return _first_line(self.file) if self.file is not None else ask(prompt, self.option)

    def choose(self, prompt: str) -> str:
        """A new password. A prompt asks for it twice. Raises AccountError, NoTerminal."""
        if self.file is not None:
            return _first_line(self.file)
        password = ask(prompt, self.option)
        if ask("Again: ", self.option) != password:
            raise AccountError("password", expected="the same one twice", got="two", remedy="try again")
        return password


def ask(prompt: str, option: str) -> str:
    """Read hidden input at a terminal. Raises NoTerminal if there is no terminal, AccountError if the input
    is empty.
    """
    if not sys.stdin.isatty():
        raise NoTerminal(
            prompt.strip().rstrip(":"),
            expected=f"a terminal to ask at, or {option}",
            got="standard input that is not a terminal",
            remedy=f"name a file with {option}" if option.startswith("--") else "run it at a terminal",
        )
    try:
        typed = getpass(prompt)
    except EOFError:
        typed = ""
    return _not_empty(typed, "type it at the prompt")


def _first_line(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise AccountError(
            "password file",
            expected=f"a readable text file at {file}",
            got=type(error).__name__,
            remedy="name a file whose first line is the password",
        ) from error
    if len(data) > MAX_BYTES:
        raise AccountError(
            f"password file {file}",
            expected=f"at most {MAX_BYTES} bytes",
            got="more",
            remedy="name a file whose first line is the password",
        )
    lines = text.splitlines()
    return _not_empty(lines[0] if lines else "", "put the password into the first line of the file")


def _not_empty(password: str, remedy: str) -> str:
    if not password:
        raise AccountError("password", expected="at least one character", got="none", remedy=remedy)
    return password
