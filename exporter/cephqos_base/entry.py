"""Where both commands begin. Ctrl-C while their modules are loaded ends them without a traceback:
that is why nothing is imported above that takes time.
"""

import importlib


def cephqos() -> int:
    return _main_of("cephqos_base.command")


def exporter() -> int:
    return _main_of("cephqos_exporter.cli")


def _main_of(module: str) -> int:
    try:
        return int(importlib.import_module(module).main())
    except KeyboardInterrupt:
        return 130
