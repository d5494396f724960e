"""Parts that the command lines share: an app, commands that report an error in one line, connection options,
`config show`.

Apart from Typer, only light modules are imported here. A command imports what it needs when it runs, so that
`--help` is quick.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from protocol.errors import ExitCode
from protocol.node.exits import reported
from protocol.node.options import (
    AccountOption,
    DeploymentOption,
    DevAccountOption,
    HomeOption,
    JsonOption,
    PasswordOption,
    RpcOption,
    at_home,
    chosen_account,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

Flags = dict[str, object | None]
"""Settings by name, from options; None for an option that was not given."""
Function = Callable[..., ExitCode | None]

_OPTIONS = {
    "rpc": RpcOption,
    "account": AccountOption,
    "dev_account": DevAccountOption,
    "password_file": PasswordOption,
    "deployment": DeploymentOption,
}
READS = ("rpc", "deployment")
"""Options of a command that only reads contracts."""
SENDS = ("rpc", "account", "dev_account", "password_file", "deployment")
"""Options of a command that sends transactions."""


class _Command(TyperCommand):
    """A command that rejects negative numbers among its arguments. Without this check, the parser would take
    a negative number for an option.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raises BadParameter, a usage error, for a negative number that is not the
        value of an option. Arguments after "--" are not checked.
        """
        valued = {
            name for option in self.params for name in option.opts if not getattr(option, "is_flag", True)
        }
        for before, argument in zip(["", *args], args, strict=False):
            if before == "--":
                break
            if _NEGATIVE.fullmatch(argument) and before not in valued:
                raise typer.BadParameter(f"{argument}: expected no negative number here", ctx=ctx)
        return super().parse_args(ctx, args)


_NEGATIVE = re.compile(r"-[0-9][0-9_.,]*")


def app_of(description: str) -> typer.Typer:
    """An app with subcommands, which `command` adds."""
    return typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,  # rich takes half of the time of --help
        pretty_exceptions_enable=False,
        help=description,
    )


def command(
    app: typer.Typer, name: str | None = None, *, connection: Sequence[str] = ()
) -> Callable[[Function], Function]:
    """Add a function to `app` as a command. Its errors are reported (`exits.reported`); if it returns an exit
    code, the process ends with that code.

    `connection` names additional options of the command, which set the chain and the sender. The function
    gets their values as settings in its argument `connection: Flags`.
    """

    def add(function: Function) -> Function:
        own = inspect.signature(function, eval_str=True)
        kept = [parameter for parameter in own.parameters.values() if parameter.name != "connection"]
        options = [
            inspect.Parameter(
                option, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=_OPTIONS[option]
            )
            for option in connection
        ]

        @wraps(function)
        def run(**given: Any) -> None:
            with reported():
                if connection:
                    given["connection"] = _flags({option: given.pop(option) for option in connection})
                code = function(**given)
            if code is not None:
                raise typer.Exit(int(code))

        parameters = [
            *(p for p in kept if p.default is p.empty),
            *(p for p in kept if p.default is not p.empty),
        ]
        parameters += options
        run.__signature__ = own.replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        app.command(name, cls=_Command)(run)
        return function

    return add


def add_config(app: typer.Typer, model: Callable[[], type[BaseModel]], party: str, title: str) -> None:
    """Add the command `config show`, which prints every setting with its value and its source.

    `party` is the name of the settings' table in config.toml. `model` imports the settings' class. `title`
    names the command in the JSON envelope.
    """
    config = typer.Typer(
        no_args_is_help=True, rich_markup_mode=None, help="Settings and where they come from."
    )

    def show(home: HomeOption = None, as_json: JsonOption = False) -> None:
        """Every setting, its value and its source."""
        from protocol.node.output import Output
        from protocol.node.settings import load

        rows = load(model(), party, at_home(home).config, {}).rows()
        output = Output(title, as_json)
        for name, value, source in rows:
            output.say(f"{name:15} {value:30} {source}")
        output.result([{"name": name, "value": value, "source": source} for name, value, source in rows])

    command(config, "show")(show)
    app.add_typer(config, name="config")


def _flags(given: Flags) -> Flags:
    """Convert options to settings: `--account` and `--dev-account` become the setting `account`."""
    if "account" in given:
        account, index = given.pop("account"), given.pop("dev_account")
        assert account is None or isinstance(account, str)
        assert index is None or isinstance(index, int)
        given["account"] = chosen_account(account, index)
    return given
