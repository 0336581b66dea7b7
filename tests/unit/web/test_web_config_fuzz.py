"""Mutated web configuration: each is taken, or refused in one line. Anything else answers 500."""

import copy
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cephqos_base.errors import ConfigError
from cephqos_exporter.web.server import Server

from .test_web_server import Scrapes

FULL = Path(__file__).parent / "webconfig" / "full.good.yml"
FILES = 150  # 10 ms of CPU each

VALUES: tuple[Any, ...] = (
    *(None, True, "", "x", 0, -1, 1.5, float("inf"), float("nan"), 10**40, "9" * 50, "٣s", "1ns"),
    *("a\nb", "\t", "é", "\0", "a" * 300, [], {}, [[]], [None], [{}], ["x"], {"a": 1}),
    *("server.crt", "server.key", "ca.crt", ".", "/dev/null", "TLS13", "CurveP521"),
    *("NoClientCert", "VerifyClientCertIfGiven", "-----BEGIN CERTIFICATE-----\n"),
)
PIECES = ("\x01", "\t", ":", "{", "&a", "*a", "!x ", "'", '"', "%", "\n", "- ", "\\", "#")


def places(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if above:
        yield above
    if isinstance(node, dict | list):
        for key in node if isinstance(node, dict) else range(len(node)):
            yield from places(node[key], (*above, key))


def mutated(good: Any, rng: random.Random) -> str:
    found = copy.deepcopy(good)
    for _ in range(rng.choice((1, 1, 2, 4))):
        *above, key = rng.choice(list(places(found)))
        holder = found
        for step in above:
            holder = holder[step]
        match rng.randrange(5):
            case 0 if len(found) > 1:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[rng.choice(("cert", "key", "client_ca", "burst", "a"))] = rng.choice(VALUES)
            case _:
                holder[key] = copy.deepcopy(rng.choice(VALUES))
    text = yaml.safe_dump(found)
    if rng.random() < 0.2:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(PIECES) + text[at + rng.choice((0, 1, 9)) :]
    return text


def test_whatever_is_in_the_file_it_is_taken_or_refused_in_one_line(
    tmp_path: Path, certificates: Path
) -> None:
    shutil.copytree(certificates, tmp_path, dirs_exist_ok=True)
    seed = random.SystemRandom().randrange(1 << 32)
    rng = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    good = yaml.safe_load(FULL.read_text())
    path = tmp_path / "web.yml"
    refused = 0
    for _ in range(FILES):
        path.write_text(mutated(good, rng))
        try:
            Server(Scrapes().service(), web_config=path, drain_seconds=1)
        except ConfigError as exc:
            refused += 1
            assert "\n" not in str(exc)
        except Exception as exc:
            pytest.fail(f"seed {seed}: {type(exc).__name__}: {exc}\n{path.read_text()}")
    assert refused > 0
