"""The log of an OSD in a dashboard, which another collector than ours may send to Loki."""

import json
from typing import Final

from cephqos_base.other_logs import OtherLogs

OSD_LOG: Final = '{cluster="$cluster", log="osd"} | ceph_daemon="$osd"'


def of_logs(text: str, logs: OtherLogs | None) -> str:
    """The JSON of a dashboard, which reads these streams."""
    if logs is None:
        return text
    return text.replace(_in_json(OSD_LOG), _in_json(logs.of_osd_in_dashboard()))


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
