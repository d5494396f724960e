"""`assay account`. Only Typer is imported here; see `cli`."""

from __future__ import annotations

from typing import Annotated

import typer

from protocol.node.commands import command
from protocol.node.options import HomeOption, JsonOption, PasswordOption, at_home

account = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Encrypted key files under the home folder."
)


@command(account, "new")
def account_new(
    name: Annotated[str, typer.Argument(help="Letters, digits, - and _.")],
    password_file: PasswordOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an account; its key is encrypted with a password that is asked for."""
    from protocol.chain.accounts import create_account
    from protocol.node.output import Output

    at_home(home)
    address = create_account(name, password_file).address
    printed = Output("account new", as_json)
    printed.say(f"{name} {address}")
    printed.result({"name": name, "address": address})


@command(account, "list")
def account_list(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Names of the accounts under the home folder."""
    from protocol.chain.accounts import list_accounts
    from protocol.node.output import Output

    at_home(home)
    names = list_accounts()
    printed = Output("account list", as_json)
    for name in names:
        printed.say(name)
    printed.result(names)
