"""Settings of a command: flags over environment over the settings file over defaults, each with its source.

A command describes its settings as a pydantic model; `load` fills it. The file is TOML with one table per
command; in an environment variable the items of a list stand between commas. Fields whose
`json_schema_extra` says `{"secret": True}` are masked when shown, and `rpc`, which every command has, is cut
to the node's host.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_origin

from protocol.errors import AssayError
from protocol.node.addresses import public_part

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    Model = TypeVar("Model", bound=BaseModel)
else:
    Model = TypeVar("Model")

MASK = "********"


class SettingsError(AssayError):
    """A setting that is unknown, or whose value does not fit."""


@dataclass(frozen=True, slots=True)
class Loaded(Generic[Model]):
    """The settings and where each came from: flag, environment, file or default."""

    values: Model
    sources: Mapping[str, str]

    def rows(self) -> list[tuple[str, str, str]]:
        """(name, value, source) of every setting, secrets masked: what `config show` prints."""
        fields = type(self.values).model_fields
        return [
            (name, _shown(name, field, getattr(self.values, name)), self.sources[name])
            for name, field in fields.items()
        ]


def load(
    model: type[Model],
    section: str,
    file: Path,
    flags: Mapping[str, object | None],
    environment: Mapping[str, str] | None = None,
) -> Loaded[Model]:
    """Settings of command `section`. A flag that is None was not given; environment variables are ASSAY_<NAME>.

    Raises SettingsError naming the setting, its source and the valid names.
    """
    from pydantic import ValidationError

    environment = os.environ if environment is None else environment
    in_file = _table(file, section)
    names = list(model.model_fields)
    for place, given in ((f"[{section}] of {file}", in_file), ("flags", flags)):
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise SettingsError(f"{place}: expected settings {', '.join(names)}; got {', '.join(unknown)}")
    values: dict[str, Any] = {}
    sources = {}
    for name in names:
        variable = f"ASSAY_{name.upper()}"
        if flags.get(name) is not None:
            values[name], sources[name] = flags[name], "flag"
        elif variable in environment:
            values[name] = _from_text(model.model_fields[name], environment[variable])
            sources[name] = f"environment {variable}"
        elif name in in_file:
            values[name], sources[name] = in_file[name], f"file {file}"
        else:
            sources[name] = "default"
    try:
        return Loaded(model.model_validate(values), sources)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else section
        source = sources.get(name, "default")
        secret = name in model.model_fields and _is_secret(model.model_fields[name])
        got = MASK if secret else repr(first.get("input"))
        raise SettingsError(
            f"setting {name} from {source}: {first['msg']}, got {got}; correct it there"
        ) from error


def _from_text(field: FieldInfo, text: str) -> object:
    """An environment variable's value as the model takes it."""
    if get_origin(field.annotation) is not tuple:
        return text
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()


def _shown(name: str, field: FieldInfo, value: object) -> str:
    if value is not None and _is_secret(field):
        return MASK
    if name == "rpc":
        return ", ".join(map(public_part, (value,) if isinstance(value, str) else value))  # type: ignore[call-overload]
    return str(value)


def _is_secret(field: FieldInfo) -> bool:
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("secret"))


def _table(file: Path, section: str) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        table = tomllib.loads(file.read_text()).get(section, {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {file}: expected TOML; {error}; correct or remove it") from error
    if not isinstance(table, dict):
        raise SettingsError(
            f"settings file {file}",
            expected=f"a table [{section}]",
            got=repr(table),
        )
    return table
