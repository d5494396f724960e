"""Settings of a command. Each comes from the first source that sets it: a flag, an environment variable, the
settings file, or the default.

A command describes its settings as a pydantic model, and `load` fills it. The file is TOML. It contains at
most one table per command, and nothing else. In an environment variable, the items of a list are separated by
commas. Fields with `{"secret": True}` in `json_schema_extra` are masked when shown. If a URL in `rpc` is
shown, only its scheme, host and port appear.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
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
TABLES = ("assay", "lane", "solver", "verifier")
"""Tables of the settings file: one for each command."""


class SettingsError(AssayError):
    """The settings file cannot be used, a setting is unknown, or its value does not fit."""


@dataclass(frozen=True, slots=True)
class Loaded(Generic[Model]):
    """The settings, and the source of each: flag, environment, file or default."""

    values: Model
    sources: Mapping[str, str]

    def rows(self) -> list[tuple[str, str, str]]:
        """(name, value, source) of every setting, with secrets masked, as `config show` prints them."""
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
    """Load the settings of command `section`. A flag that is None was not given; environment variables are
    ASSAY_<NAME>.

    Raises SettingsError, which names the setting at fault and its source.
    """
    from pydantic import ValidationError

    environment = os.environ if environment is None else environment
    in_file = _table(file, section)
    names = list(model.model_fields)
    for place, given in ((f"[{section}] of {file}", in_file), ("flags", flags)):
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise SettingsError(
                place,
                expected=f"settings {', '.join(names)}",
                got=", ".join(unknown),
                remedy=_meant(unknown[0], names),
            )
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
        field = model.model_fields.get(name)
        got = repr(first.get("input")) if field is None else _given(name, field, first.get("input"))
        reason = first["msg"].removeprefix("Value error, ")
        raise SettingsError(f"setting {name} from {source}: {reason}, got {got}; correct it there") from error


def _from_text(field: FieldInfo, text: str) -> object:
    """Convert an environment variable's value for the model."""
    if get_origin(field.annotation) is not tuple:
        return text
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()


def _shown(name: str, field: FieldInfo, value: object) -> str:
    if value is not None and _is_secret(field):
        return MASK
    return ", ".join(_public_urls(value)) if name == "rpc" else str(value)


def _given(name: str, field: FieldInfo, value: object) -> str:
    """An invalid value in the form that an error may show, without secrets."""
    if _is_secret(field):
        return MASK
    return ", ".join(_public_urls(value)) if name == "rpc" else repr(value)


def _public_urls(value: object) -> list[str]:
    urls = value.split(",") if isinstance(value, str) else value
    return [public_part(str(url)) for url in urls] if isinstance(urls, (tuple, list)) else [MASK]


def _is_secret(field: FieldInfo) -> bool:
    extra = field.json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("secret"))


def _meant(word: str, known: Iterable[str]) -> str:
    """The remedy for an unknown name: use the most similar known name or, if there is none, remove the
    unknown one.
    """
    close = get_close_matches(word, list(known), 1)
    return f"did you mean {close[0]}?" if close else "remove it"


def _table(file: Path, section: str) -> dict[str, Any]:
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingsError(
            f"settings file {file}",
            expected="a readable file, or none",
            got=type(error).__name__,
            remedy="give this user the right to read it, or name another --home",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"settings file {file}: expected TOML; {error}; correct or remove it") from error
    unknown = sorted(set(document) - {*TABLES, section})
    if unknown:
        raise SettingsError(
            f"settings file {file}",
            expected=f"tables {', '.join(f'[{name}]' for name in TABLES)}",
            got=", ".join(f"[{name}]" if isinstance(document[name], dict) else name for name in unknown),
            remedy=_meant(unknown[0], TABLES),
        )
    table = document.get(section, {})
    if not isinstance(table, dict):
        raise SettingsError(
            f"settings file {file}",
            expected=f"a table [{section}]",
            got=repr(table),
        )
    return table
