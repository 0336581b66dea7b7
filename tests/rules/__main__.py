"""`python -m tests.rules DIR`: write the cases into files for `promtool test rules DIR/*.yml`."""

import sys
from pathlib import Path

from tests.rules.files import GROUPS, write

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    sys.exit("usage: python -m tests.rules DIR")
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for group in GROUPS:
    print(write(group, folder))
