"""What `cephqos capacity` asks a Prometheus, in pieces of a day at most, and how it reads that."""

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cephqos_base.recorded import PerOsd
from cephqos_base.series import OSD, OSD_CLASS, DaemonSeries, QosSeries
from cephqos_base.units import duration
from cephqos_doctor.capacity.estimate import OsdRecord, Piece
from cephqos_doctor.json_api import ApiFailed, JsonApi, Sample

# A week in hours, and as many pieces of any other time.
PIECES: Final = 168
SHORTEST: Final = 60.0  # rates look back that far
_AT_ONCE: Final = 24  # pieces of one question: an engine limits the samples of an answer
_RAW_SECONDS: Final = 300.0  # survives scrapes a minute apart

Osd = tuple[str, str]
