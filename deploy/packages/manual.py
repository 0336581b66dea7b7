"""Man pages and shell completion, made from the commands' own parsers when packages are built.

`python deploy/packages/manual.py DIRECTORY` writes them there.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cephqos_base.command import COMMANDS, CommandEntry, Parser, load
from cephqos_base.version import __version__
from cephqos_exporter import cli as exporter

# Not in the package, as the load generator does not belong on hosts of OSDs.
NOT_PACKAGED: Final = ("cephqos_loadgen", "cephqos_stack")


@dataclass(frozen=True, slots=True)
class ManualPage:
    """A command with its options, and the commands below it."""

    words: tuple[str, ...]  # such as ("cephqos", "rules", "build")
    help: str
    options: tuple[tuple[str, str], ...]  # as a user types it, and its help
    epilog: str = ""
    below: tuple["ManualPage", ...] = ()

    def with_all_below(self) -> Iterator["ManualPage"]:
        yield self
        for page in self.below:
            yield from page.with_all_below()


def packaged() -> list[CommandEntry]:
    return [command for command in COMMANDS if not command.function.startswith(NOT_PACKAGED)]


def pages() -> list[ManualPage]:
    """The pages of the package's two commands."""
    below = []
    for command in packaged():
        parser = Parser(prog=f"cephqos {command.name}", description=command.help)
        load(command)(parser)
        below.append(read(parser, ("cephqos", command.name), command.help))
    help_ = "rules, dashboards and doctor for the QoS of Ceph OSDs"
    options = (("--help", "Show help and exit."), ("--version", "Show the version and exit."))
    exporter_parser = exporter.build_parser(exporter.every_option())
    return [
        read(
            exporter_parser, ("cephqos-exporter",), "Prometheus exporter for the QoS of Ceph OSDs"
        ),
        ManualPage(("cephqos",), help_, options, below=tuple(below)),
    ]


def read(parser: argparse.ArgumentParser, words: tuple[str, ...], help_: str) -> ManualPage:
    """The page of a parser, with those of its subcommands below it."""
    options, below = [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            help_of = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, inner in action.choices.items():
                below.append(read(inner, (*words, name), help_of.get(name, "")))
        elif action.help is not argparse.SUPPRESS:
            options.append((_written(action), _help(action)))
    return ManualPage(words, help_, tuple(options), parser.epilog or "", tuple(below))


def _written(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    return f"{names} {action.metavar or action.dest.upper()}"


def _help(action: argparse.Action) -> str:
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    return text[:1].upper() + text[1:]


def troff(page: ManualPage) -> str:
    """The man page of a command and of all below it."""
    name = page.words[0]
    lines = [
        '.\\" Made by deploy/packages/manual.py.',
        f'.TH {name.upper()} 1 "" "cephqos {__version__}" "User Commands"',
        ".SH NAME",
        f"{_text(name)} \\- {_text(page.help)}",
        ".SH SYNOPSIS",
    ]
    for command in page.with_all_below():
        if not command.below:
            positional = [words for words, _ in command.options if not words.startswith("-")]
            lines += [f".B {_text(' '.join(command.words))}", "[OPTIONS]", *map(_text, positional)]
            lines.append(".br")
    for command in page.with_all_below():
        if command is page:
            lines.append(".SH OPTIONS")
        else:
            lines += [f".SH {_text(' '.join(command.words).upper())}", _text(command.help)]
        for words, text in command.options:
            lines += [".TP", f".B {_text(words)}", _text(text) or "\\&"]
    lines += [".SH NOTES", _text(page.epilog)] if page.epilog else []
    lines += [".SH SEE ALSO", _text(_SEE[name])]
    return "\n".join(lines) + "\n"


_SEE: Final = {"cephqos": "cephqos-exporter(1), promtool(1)", "cephqos-exporter": "cephqos(1)"}


def _text(text: str) -> str:
    """One line of running text that troff takes as it is."""
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line


def completion(all_pages: Sequence[ManualPage]) -> str:
    """Completion for bash: for each command its subcommands and options."""
    lines = ["# Made by deploy/packages/manual.py.", "_cephqos_words() {"]
    lines.append('  case "$1" in')
    for top in all_pages:
        for page in top.with_all_below():
            words = [inner.words[-1] for inner in page.below]
            words += _flags(page)
            lines.append(f'    "{" ".join(page.words)}") echo "{" ".join(words)}";;')
    lines += ["  esac", "}", _COMPLETE]
    return "\n".join(lines)


def _flags(page: ManualPage) -> Iterator[str]:
    for written, _ in page.options:
        for flag in written.split(", "):
            if flag.startswith("--"):
                yield flag.split()[0]


_COMPLETE: Final = """_cephqos() {
  local path="${COMP_WORDS[0]##*/}" word next
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    next="$path $word"
    [[ "$word" != -* && -n "$(_cephqos_words "$next")" ]] && path="$next"
  done
  if [[ "${COMP_WORDS[COMP_CWORD-1]}" == --*file || "${COMP_WORDS[COMP_CWORD-1]}" == "=" ]]; then
    COMPREPLY=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]#=}"))
    return
  fi
  COMPREPLY=($(compgen -W "$(_cephqos_words "$path")" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _cephqos cephqos cephqos-exporter
"""


def write(directory: Path) -> list[Path]:
    """A page of each command, and one completion for both."""
    both = pages()
    texts = {f"{page.words[0]}.1": troff(page) for page in both}
    texts["cephqos.bash"] = completion(both)
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    return [directory / name for name in texts]


if __name__ == "__main__":
    print(*write(Path(sys.argv[1])), sep="\n")
