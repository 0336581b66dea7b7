"""The log collector on plain hosts: its unit, its settings, and what the package has of them.

tests/lab/test_collector_package.py installs the package and starts the real program.
"""

import re
from typing import Final

import yaml

from cephqos_stack.logs import COLLECTOR_CONFIG, COLLECTOR_GATES

from .programs import DEPLOY

UNIT: Final = (DEPLOY / "collector" / "cephqos-collector.service").read_text()
SETTINGS: Final = dict(re.findall(r"^(\w+)=(.*)$", UNIT, re.MULTILINE))
VARIABLES: Final = (DEPLOY / "collector" / "collector.env").read_text()
PACKAGE: Final = yaml.safe_load((DEPLOY / "packages" / "nfpm-collector.yaml").read_text())
INSTALLED: Final = {one["dst"]: one for one in PACKAGE["contents"]}


def test_what_the_unit_names_is_what_the_package_installs() -> None:
    command = SETTINGS["ExecStart"].split()
    config = command[1].removeprefix("--config=")
    assert command[2:] == [COLLECTOR_GATES]
    assert {command[0], config, SETTINGS["EnvironmentFile"]} <= INSTALLED.keys()
    assert DEPLOY.parent / INSTALLED[config]["src"] == COLLECTOR_CONFIG
    for file in (config, SETTINGS["EnvironmentFile"]):
        assert INSTALLED[file]["type"] == "config|noreplace"
    # A URL may hold a password.
    assert INSTALLED[SETTINGS["EnvironmentFile"]]["file_info"]["mode"] == 0o600


def test_its_state_is_where_the_configuration_looks_for_it() -> None:
    folder = f"/var/lib/{SETTINGS['StateDirectory']}"
    assert f"${{env:COLLECTOR_STATE:-{folder}}}" in COLLECTOR_CONFIG.read_text()
    assert folder in (DEPLOY / "packages" / "collector-scripts" / "postremove.sh").read_text()


def test_every_variable_is_one_of_the_configuration() -> None:
    set_here = set(re.findall(r"^#?([A-Z_]+)=", VARIABLES, re.MULTILINE))
    assert {"LOKI_URL", "CEPH_CLUSTER"} <= set_here
    known = set(re.findall(r"\$\{env:(\w+)", COLLECTOR_CONFIG.read_text()))
    assert set_here | {SETTINGS["Environment"].partition("=")[0]} <= known


def test_as_cephs_user_it_reaches_neither_admin_sockets_nor_keys() -> None:
    """They belong to the same user, who has full control of the OSDs with them."""
    assert SETTINGS["User"] == "ceph"
    hidden = {path.removeprefix("-") for path in SETTINGS["InaccessiblePaths"].split()}
    assert hidden == {"/run/ceph", "/var/lib/ceph", "/etc/ceph"}
    assert SETTINGS["RestrictAddressFamilies"].split() == ["AF_INET", "AF_INET6"]
    assert SETTINGS["PrivateDevices"] == "yes"
