"""`python -m cephqos_base` is the `cephqos` command."""

import sys

from cephqos_base.command import main

sys.exit(main())
