"""Programs of deploy/, which are in no package, as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DEPLOY = Path(__file__).parents[3] / "deploy"


def program(path: str) -> ModuleType:
    """A new one each time: `program("compose/webhook.py")`."""
    file = DEPLOY / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec and spec.loader
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
