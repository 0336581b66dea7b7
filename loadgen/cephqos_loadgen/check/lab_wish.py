"""The lab that a scenario wants when it has to make its own."""

import secrets

from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.spec import LabSpec, Setting
from cephqos_loadgen.plan.model import LabWish


def lab_spec(wish: LabWish, release: str) -> LabSpec:
    """The lab that a scenario wants, of the release that the command line names; UsageError where
    that release cannot have it."""
    spec = LabSpec(
        name=f"run-{secrets.token_hex(3)}",
        release=find_release(release).name,
        osds=wish.osds,
        osd_size=wish.osd_size,
        backing=wish.backing,
        rotational=wish.rotational,
        io_scheduler=wish.io_scheduler,
        db_size=wish.db_size,
        device_iops=wish.device_iops,
        objectstore=wish.objectstore,
        fs=wish.fs,
        mkfs=wish.mkfs,
        mount=wish.mount,
        settings=tuple(Setting(o.section, o.name, o.value) for o in wish.settings),
    )
    spec.validate()
    return spec
