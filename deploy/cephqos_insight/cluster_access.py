"""Options of commands that ask a cluster itself, besides a Prometheus."""

import argparse
import shlex
from pathlib import Path

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_exporter.ceph.monclient import ClusterAccess


def add_access(parser: Parser, wanted: str) -> None:
    parser.option("--conf PATH", f"Ceph's configuration file: also ask the cluster for {wanted}")
    parser.option(
        "--name USER",
        "Ceph user to connect as (default: client.admin)",
        default="client.admin",
    )
    parser.option("--keyring PATH", "keyring of that user", default="")
    parser.option(
        "--python COMMAND",
        "Python with Ceph's rados module (default: /usr/bin/python3)",
        default="/usr/bin/python3",
    )


def access_of(arguments: argparse.Namespace) -> ClusterAccess:
    if not Path(arguments.conf).is_file():
        raise UsageError(f"--conf {arguments.conf}: expected Ceph's configuration file")
    return ClusterAccess(
        conf=arguments.conf,
        python=tuple(shlex.split(arguments.python)),
        name=arguments.name,
        keyring=arguments.keyring,
    )
