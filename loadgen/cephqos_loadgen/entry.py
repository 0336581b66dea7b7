"""Where the `cephqos` command begins: one of its commands needs more than the rest."""

import importlib.util
import sys

from cephqos_loadgen import cli


def main() -> int:
    """Run the command, or say in one line which extra is not installed."""
    if sys.argv[1:2] == ["demo"] and importlib.util.find_spec("rich") is None:
        print(
            "cephqos: installed without what the demo's screen needs:"
            " pip install 'cephqos[loadgen]' (from a checkout: pip install '.[loadgen]')",
            file=sys.stderr,
        )
        return 2
    return cli.main()
