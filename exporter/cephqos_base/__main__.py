"""`python -m cephqos_base` is the `cephqos` command."""

import sys

from cephqos_base.entry import cephqos

sys.exit(cephqos())
