"""`assay account` and `assay config`. Only Typer is imported here; see `cli`."""

from __future__ import annotations

from typing import Annotated

import typer

from protocol.node.exits import reported
from protocol.node.options import HomeOption, JsonOption, PasswordOption, at_home

account = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Encrypted key files under the home folder."
)
config = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Settings and where they come from.")


@account.command("new")
def account_new(
    name: Annotated[str, typer.Argument(help="Letters, digits, - and _.")],
    password_file: PasswordOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make an account; its key is encrypted with a password that is asked for."""
    from protocol.chain.accounts import create_account
    from protocol.node.output import Output

    with reported():
        at_home(home)
        address = create_account(name, password_file).address
        printed = Output("account new", as_json)
        printed.say(f"{name} {address}")
        printed.result({"name": name, "address": address})


@account.command("list")
def account_list(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Names of the accounts under the home folder."""
    from protocol.chain.accounts import list_accounts
    from protocol.node.output import Output

    with reported():
        at_home(home)
        names = list_accounts()
        printed = Output("account list", as_json)
        for name in names:
            printed.say(name)
        printed.result(names)


@config.command("show")
def config_show(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Every setting of `assay`, its value and its source."""
    from assay.settings import AssaySettings
    from protocol.node.output import Output
    from protocol.node.settings import load

    with reported():
        rows = load(AssaySettings, "assay", at_home(home).config, {}).rows()
        printed = Output("config show", as_json)
        for name, value, source in rows:
            printed.say(f"{name:15} {value:30} {source}")
        printed.result([{"name": name, "value": value, "source": source} for name, value, source in rows])
