"""Options of commands that ask a cluster itself, besides a Prometheus."""

import argparse
import shlex
from pathlib import Path

from cephqos_base.command import Parser
from cephqos_base.errors import UsageError
from cephqos_exporter.ceph.monclient import ClusterAccess


def add_access(parser: Parser, wanted: str) -> None:
    parser.add_argument(
        "--conf",
        metavar="PATH",
        help=f"Ceph's configuration file: also ask the cluster for {wanted}",
    )
    parser.add_argument(
        "--name",
        default="client.admin",
        metavar="USER",
        help="Ceph user to connect as (default: client.admin)",
    )
    parser.add_argument("--keyring", default="", metavar="PATH", help="keyring of that user")
    parser.add_argument(
        "--python",
        default="/usr/bin/python3",
        metavar="COMMAND",
        help="Python with Ceph's rados module (default: /usr/bin/python3)",
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
