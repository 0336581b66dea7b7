"""Settings: declared options, resolved from flags, environment, file and defaults.

A flag beats the environment, the environment beats the file, the file beats the default. An unknown
name or a value that is not allowed is refused, in one line that says where it was found.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, overload

from cephqos_base.errors import UNKNOWN_KEY, ConfigError, Described, UsageError
from cephqos_base.hints import nearest

if TYPE_CHECKING:
    from cephqos_base.yamlfile import Value

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

ENVIRONMENT_PREFIX: Final = "CEPHQOS_EXPORTER_"


class HasSettings(Protocol):
    settings: "Settings"


@dataclass(frozen=True, kw_only=True, slots=True)
class Option(Generic[T_co]):
    """One setting. As an attribute of a class whose instances have `settings`, it reads as its
    value there: see collectors/base.py."""

    name: str  # such as web.listen-address
    default: T_co
    help: str
    parse: Callable[[Any], T_co]  # of text (flags, environment) or YAML; ValueError: not allowed
    allowed: str  # values, for errors
    repeatable: bool = False  # a list
    boolean: bool = False

    @overload
    def __get__(self, instance: None, owner: type) -> "Option[T_co]": ...
    @overload
    def __get__(self, instance: HasSettings, owner: type) -> T_co: ...
    def __get__(self, instance: HasSettings | None, owner: type) -> "Option[T_co] | T_co":
        return self if instance is None else instance.settings[self]

    @property
    def environment(self) -> str:
        name = "".join(c if c.isalnum() else "_" for c in self.name).upper()
        return ENVIRONMENT_PREFIX + name

    @property
    def default_text(self) -> str:
        """The default as a file or a flag would have it; lists with spaces between."""
        if isinstance(self.default, tuple):
            return " ".join(self.default)
        return str(self.default).lower() if self.boolean else str(self.default)

    def read(self, value: object, where: str, key: str) -> T_co:
        """The parsed value, or a ConfigError that names where it stands."""
        try:
            return self.parse(value)
        except (ValueError, TypeError, UsageError) as exc:
            raise ConfigError(where=where, key=key, found=value, allowed=self.allowed) from exc


def text(name: str, default: str, help: str, *, allowed: str = "text") -> Option[str]:
    return Option(name=name, default=default, help=help, parse=_text, allowed=allowed)


def texts(
    name: str, default: tuple[str, ...], help: str, *, allowed: str = "a list of texts"
) -> Option[tuple[str, ...]]:
    """A list: a repeated flag, a comma-separated variable, a list in the file."""
    return Option(
        name=name, default=default, help=help, parse=_texts, allowed=allowed, repeatable=True
    )


def flag(name: str, default: bool, help: str) -> Option[bool]:
    return Option(
        name=name, default=default, help=help, parse=_flag, allowed="true or false", boolean=True
    )


def number(
    name: str, default: float, help: str, *, least: float, most: float, unit: str = ""
) -> Option[float]:
    def parse(value: Any) -> float:
        result = float(_not_bool(value))
        if not least <= result <= most:
            raise ValueError(value)
        return result

    allowed = f"{unit or 'a number'}, {least:g} to {most:g}"
    return Option(name=name, default=default, help=help, parse=parse, allowed=allowed)


def seconds(
    name: str, default: float, help: str, *, least: float = 0, most: float = 3600
) -> Option[float]:
    return number(name, default, help, least=least, most=most, unit="seconds")


def integer(name: str, default: int, help: str, *, least: int, most: int) -> Option[int]:
    def parse(value: Any) -> int:
        result = int(_not_bool(value))
        if result != float(value) or not least <= result <= most:
            raise ValueError(value)
        return result

    allowed = f"a whole number from {least} to {most}"
    return Option(name=name, default=default, help=help, parse=parse, allowed=allowed)


def choice(name: str, default: str, help: str, choices: Sequence[str]) -> Option[str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(value)
        return str(value)

    return Option(name=name, default=default, help=help, parse=parse, allowed=", ".join(choices))


def choices(
    name: str, default: tuple[str, ...], help: str, among: Sequence[str]
) -> Option[tuple[str, ...]]:
    def parse(value: Any) -> tuple[str, ...]:
        result = _texts(value)
        if not result or not set(result) <= set(among):
            raise ValueError(value)
        return result

    allowed = f"one or more of {', '.join(among)}"
    return Option(
        name=name, default=default, help=help, parse=parse, allowed=allowed, repeatable=True
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, list | tuple):
        raise TypeError(value)
    return tuple(_text(item) for item in value)


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if not isinstance(value, str) or value.lower() not in words:
        raise ValueError(value)
    return words[value.lower()]


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError(value)
    return value


_WHOLE: Final = object()  # for Settings.error: all of the option's value is wrong


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved options: `settings[options.TELEMETRY_PATH]` is typed as the option is."""

    _values: Mapping[str, Any] = field(default_factory=dict)
    # Where each value that is not a default was found, for errors that only show later.
    _origins: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, option: Option[T]) -> T:
        value: T = self._values.get(option.name, option.default)
        return value

    def given(self, values: Mapping[str, Any]) -> "Settings":
        """These settings with other values, by name."""
        return Settings({**self._values, **values}, self._origins)

    def origin(self, option: Option[Any]) -> str:
        return self._origins.get(option.name, "default")

    def error(self, option: Option[Any], allowed: str, *, found: object = _WHOLE) -> ConfigError:
        """A ConfigError about an option whose value turned out wrong when it was used.

        `found`: the part of the value that is wrong, if it is not the whole value.
        """
        origin = self.origin(option)
        return ConfigError(
            where=origin,
            key=_key_at(origin, option),
            found=self[option] if found is _WHOLE else found,
            allowed=allowed,
        )


def _key_at(origin: str, option: Option[Any]) -> str:
    """An option's name in the place of its value: `--role`, CEPHQOS_EXPORTER_ROLE, `role`."""
    return {"flags": f"--{option.name}", "environment": option.environment}.get(origin, option.name)


def resolve(
    options: Sequence[Option[Any]],
    *,
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    file: Path | None,
) -> Settings:
    """Settings from all sources; `flags` maps option names to their raw values."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    known = {option.name: option for option in options}
    for origin, name, raw in _raw_values(known, flags, environment, file):
        if name not in values:  # the sources come in order of precedence
            values[name] = known[name].read(raw, origin, _key_at(origin, known[name]))
            origins[name] = origin
    return Settings(values, origins)


def _raw_values(
    known: Mapping[str, Option[Any]],
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    file: Path | None,
) -> Iterator[tuple[str, str, object]]:
    for name, raw in flags.items():
        yield "flags", name, raw
    variables = {option.environment: name for name, option in known.items()}
    for variable, raw in environment.items():
        if variable.startswith(ENVIRONMENT_PREFIX):
            if variable not in variables:
                raise ConfigError(
                    where="environment",
                    key=variable,
                    found=Described("an unknown variable"),
                    allowed=_hint(variable, variables),
                )
            yield "environment", variables[variable], raw
    if file is not None:
        from cephqos_base import yamlfile

        document = yamlfile.read(file)
        if not document.is_null:
            for name, value in _flatten(document, "", known):
                yield f"{file}:{value.line}", name, value.plain()


def _flatten(
    node: "Value", prefix: str, known: Mapping[str, Option[Any]]
) -> Iterator[tuple[str, "Value"]]:
    """`{web: {telemetry-path: /m}}` as `web.telemetry-path`; `enabled` stands for the key above."""
    for key, value in node.entries("a mapping of keys").items():
        name = f"{prefix}{key}"
        if value.is_mapping:
            if not any(option == name or option.startswith(f"{name}.") for option in known):
                raise value.error(UNKNOWN_KEY, _hint(name, known))
            yield from _flatten(value, f"{name}.", known)
        elif key == "enabled" and prefix[:-1] in known:
            yield prefix[:-1], value
        elif name in known:
            yield name, value
        else:
            raise value.error(UNKNOWN_KEY, _hint(name, known))


def _hint(name: str, known: Mapping[str, Any]) -> str:
    """The name that may have been meant, or where to find all of them."""
    near = nearest(name, known)
    return f"such as {near}" if near else "the names that --help lists"


def environment() -> Mapping[str, str]:
    return os.environ
