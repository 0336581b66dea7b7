"""The model as JSON for scripts. docs/operate/top.md documents it.

VERSION changes when a field goes or changes its meaning, not when one is added.
"""

from dataclasses import asdict
from typing import Any, Final

from cephqos_loadgen.top.model import Model

VERSION: Final = 1


def to_json(model: Model, source: str) -> dict[str, Any]:
    """Plain data; what is not known is null."""
    data = asdict(model)
    del data["detail"], data["tenants"]  # only the live view has them; `cephqos who` has more
    for total, fields in zip(model.classes, data["classes"], strict=True):
        fields["attainment"] = total.attainment
    for osd, written in zip(model.osds, data["osds"], strict=True):
        for part, fields in zip(osd.classes, written["classes"], strict=True):
            fields["attainment"] = part.attainment
    return {"version": VERSION, "source": source, **data}
