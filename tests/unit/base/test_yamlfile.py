"""The one YAML reader: what is harmful or wrong costs one line, wherever it stands."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cpu import cost

from cephqos_base.errors import ConfigError
from cephqos_base.yamlfile import MAX_BYTES, MAX_DEPTH, MAX_VALUES, Value, parse, read

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 20)
)


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f.yml").plain()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "f.yml:5: found more than 20000 values; allowed: valid YAML"),
        ("[" * 5000, f"f.yml:1: found more than {MAX_DEPTH} levels"),
        ("\n".join("  " * i + "a:" for i in range(200)), f"found more than {MAX_DEPTH} levels"),
        ("- " * 2000 + "x", f"found more than {MAX_DEPTH} levels"),
        (
            "a0: &a0 x\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 2000)),
            f"found more than {MAX_DEPTH} levels",
        ),
        ("a: &a [*a]", "f.yml:1: found an alias inside of what it stands for"),
        ("a: &a {b: *a}", "f.yml:1: found an alias inside of what it stands for"),
        ("x" * (MAX_BYTES + 1), "f.yml: found more than 1024 KiB"),
        ("a: *nothing", "f.yml:1: found undefined alias 'nothing'"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]", "f.yml:2: found the tag"),
        ("a: 1\nb: !mine x", "f.yml:2: found the tag '!mine'"),
        ("a: 1\nb: \x07", "f.yml:2: found the character U+0007"),
        ("a: 1\n---\nb: 1", "f.yml:2: found another document"),
        ("a: [1,\nb: 2", "f.yml:2: found"),
        ("[a, b]: 1", "f.yml:1: found ['a', 'b']; allowed: a key that is one word"),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_a_harmful_or_broken_text_is_refused_in_one_line(text: str, said: str) -> None:
    assert said in refused(text)


# Up to a megabyte each. What is no more than text takes the time that its bytes take.
HUGE = [
    BOMB,
    "a: [" + "1," * 99_000 + "1]",
    "a:\n" + "- 1\n" * 99_000,
    "".join(f"k{i}: 1\n" for i in range(49_000)),
    "[" + ",".join(f"&a{i} x" for i in range(99_000)) + "]",
    "[&a x" + ", *a" * 200_000 + "]",
    "&a [" * 200_000,
    "{a: " * 200_000,
    "[" * 1_000_000,
    "? " * 500_000,
    "- " * 500_000,
    "---\n" * 250_000,
    "%TAG ! x\n" * 100_000,
    "? " + "k" * 500_000 + "\n: [" + "1," * 10_000 + "]",
    "a: " + "x " * 500_000 + "\nb: [",
    'a: "' + "\\x41" * 250_000,
    "#\n" * 500_000 + "]",
]


@pytest.mark.parametrize("text", HUGE, ids=lambda text: f"{text[:10]!r}")
def test_a_harmful_text_is_refused_at_once(text: str) -> None:
    """4.5 at most where it was measured; to take one of them in without limits costs up to 240."""
    assert cost(lambda: refused(text), 15) < 15


def read_all(text: str) -> None:
    parse(text, "f.yml").plain()


def test_as_much_as_is_allowed_is_read_at_once() -> None:
    many = "a: [" + "1," * (MAX_VALUES - 10) + "]"
    for text in (many, "a: " + "x " * 500_000, "\n" * 1_000_000 + "a: 1"):
        assert cost(functools.partial(read_all, text), 15) < 15


def test_without_libyaml_the_limits_are_the_same() -> None:
    program = """
import sys
sys.modules["yaml._yaml"] = None
from cephqos_base import yamlfile
assert not yamlfile.yaml.__with_libyaml__
assert yamlfile.parse("a: {b: [1, x]}", "f").plain() == {"a": {"b": [1, "x"]}}
for text in ("[" * 5000, "a: [1,", "[" + "1," * 99_000 + "]", "a: *b"):
    try:
        yamlfile.parse(text, "f.yml")
    except yamlfile.ConfigError as error:
        print(error)
"""
    argv = [sys.executable, "-c", program]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 4
    assert "more than 32 levels" in lines[0]
    assert "more than 20000 values" in lines[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", "f.yml:2: a: found the key twice; allowed: it once"),
        ("a:\n- b: 1\n- c: 1\n  d: 2\n  c: 3\n", "f.yml:5: a[1].c: found the key twice"),
        ("a: &x {b: 1, b: 2}\nc: *x\n", "f.yml:1: a.b: found the key twice"),
    ],
)
def test_a_key_given_twice_is_refused_also_where_nobody_reads(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f.yml")
    assert str(caught.value).startswith(said)


def test_anchors_and_merged_mappings_are_understood() -> None:
    document = parse("base: &b {x: 1, y: 2}\nmine: {<<: *b, y: 3}\nsame: *b\n", "f.yml")
    assert document.plain()["mine"] == {"x": 1, "y": 3}
    assert document.entries()["same"].entries()["y"].integer() == 2


def test_values_are_what_yaml_sees_in_them() -> None:
    text = "a: 1\nb: 1.5\nc: yes\nd: text\ne:\nf: '1'\ng: 22:22\nh: 2026-13-45\n"
    assert parse(text, "f.yml").plain() == {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": "text",
        "e": None,
        "f": "1",
        "g": "22:22",
        "h": "2026-13-45",
    }


def test_an_empty_file_is_an_empty_value(tmp_path: Path) -> None:
    empty = tmp_path / "empty.yml"
    empty.write_text("# nothing\n")
    assert read(empty).is_null


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"a: 1\nb: \xff\n", ":2: found a byte that is no UTF-8, 0xff; allowed: YAML in UTF-8"),
        (b"\xff" * (MAX_BYTES + 2), ": found more than 1024 KiB; allowed: a smaller file"),
    ],
)
def test_a_file_that_is_no_text_or_too_large_is_refused(
    raw: bytes, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.yml"
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert str(caught.value) == f"{path}{said}"


@pytest.mark.timeout(20)
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.yml")
    for path in (tmp_path / "fifo.yml", Path("/dev/zero")):
        with pytest.raises(ConfigError) as caught:
            read(path)
        assert str(caught.value) == f"{path}: found not a regular file; allowed: a readable file"
    assert read(Path("/dev/null")).is_null


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="found a directory; allowed: a readable file"):
        read(tmp_path)
    with pytest.raises(ConfigError, match="no such file: "):
        read(tmp_path / "none.yml")


def walk(value: Value) -> None:
    """Read everything in every way."""
    value.plain()
    for child in value.entries().values() if value.is_mapping else value.items()[:3]:
        if child is not value and child.raw is not value.raw:
            walk(child)


@given(st.text(alphabet="ab[]{}:,-&*!|>'\"%@`#?$<~=. \n\t01\x00\ufeffé", max_size=80))
def test_any_text_gives_a_value_or_one_line(text: str) -> None:
    try:
        walk(parse(text, "f.yml"))
    except ConfigError as error:
        assert "\n" not in str(error)
