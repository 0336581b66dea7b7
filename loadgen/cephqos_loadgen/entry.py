"""Where the `cephqos` command begins: what it needs beyond the exporter's dependencies is there."""

import importlib.util
import sys


def main() -> int:
    """Run the command, or say in one line which extra is not installed."""
    if importlib.util.find_spec("rich") is None:
        if sys.argv[1:2] == ["rules"]:  # which those need who watch a cluster and load none
            from cephqos_alerts import cli as rules

            return rules.main(sys.argv[1:])
        print(
            "cephqos: installed without the load generator's dependencies:"
            " pip install 'cephqos[loadgen]' (from a checkout: pip install '.[loadgen]')",
            file=sys.stderr,
        )
        return 2
    from cephqos_loadgen import cli

    return cli.main()
