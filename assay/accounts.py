"""The commands of `assay account`. Typer is the only third-party package imported at the top; see `cli`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.options import context_of
from protocol.node.commands import READS, Flags, command
from protocol.node.options import HomeOption, JsonOption, at_home

account = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Encrypted key files under the home folder."
)

NewNameArgument = Annotated[str, typer.Argument(help="Letters, digits, - and _.")]
NameArgument = Annotated[str, typer.Argument(help="An account that `assay account list` shows.")]
PasswordOption = Annotated[
    Path | None, typer.Option(help="File whose first line is the account's password, else it is asked for.")
]
NewPasswordOption = Annotated[Path | None, typer.Option(help="File whose first line is the new password.")]


@command(account, "new")
def account_new(
    name: NewNameArgument,
    password_file: PasswordOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an account, and encrypt its key with a new password."""
    from assay import keys
    from protocol.node.output import Output

    at_home(home)
    keys.new(Output("account new", as_json), name, password_file)


@command(account, "import")
def account_import(
    name: NewNameArgument,
    file: Annotated[
        Path | None,
        typer.Option(help="Key file (Web3 Secret Storage, as geth's), else a raw key is asked for."),
    ] = None,
    source_password_file: Annotated[
        Path | None, typer.Option(help="File whose first line opens --file, if another than --password-file.")
    ] = None,
    password_file: PasswordOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import a key from a key file, or a raw key from standard input, and encrypt it with a new password."""
    from assay import keys
    from protocol.node.output import Output

    at_home(home)
    keys.bring_in(Output("account import", as_json), name, file, source_password_file, password_file)


@command(account, "export")
def account_export(
    name: NameArgument,
    file: Annotated[Path, typer.Argument(help="Key file to write; nothing may be there.")],
    password_file: PasswordOption = None,
    new_password_file: NewPasswordOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write an account's encrypted key to another file. The copy keeps the account's password unless a new
    one is given.
    """
    from assay import keys
    from protocol.node.output import Output

    at_home(home)
    keys.take_out(Output("account export", as_json), name, file, password_file, new_password_file)


@command(account, "passwd")
def account_passwd(
    name: NameArgument,
    password_file: PasswordOption = None,
    new_password_file: NewPasswordOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the password that encrypts an account's key. If the old password is wrong, nothing changes."""
    from assay import keys
    from protocol.node.output import Output

    at_home(home)
    keys.encrypt_anew(Output("account passwd", as_json), name, password_file, new_password_file)


@command(account, "list", connection=READS)
def account_list(
    connection: Flags,
    offline: Annotated[bool, typer.Option("--offline", help="Ask no chain.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the accounts under the home folder: their addresses and, if a chain is reachable, coin, tokens and
    stakes.
    """
    from assay.balances import show_accounts

    show_accounts(context_of("account list", home, as_json, **connection), offline=offline)
