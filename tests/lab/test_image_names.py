"""What `cephqos who` asks a real cluster: how images are called."""

from cephqos_base.tenant_shares import TenantKey
from cephqos_exporter.ceph.monclient import ClusterAccess
from cephqos_insight.image_names import image_names
from cephqos_loadgen.lab.lab import RunningLab


async def test_images_have_their_names_and_those_that_are_gone_have_none(
    shared_lab: RunningLab,
) -> None:
    lab = shared_lab
    await lab.exec(["ceph", "osd", "pool", "create", "named", "8"])
    try:
        await lab.exec(["rbd", "create", "named/vm-17", "--size", "8M"])
        info = (await lab.exec(["rbd", "info", "named/vm-17"])).stdout
        (id_,) = [line.split()[-1] for line in info.splitlines() if line.strip().startswith("id:")]
        python = tuple(lab.enter_argv(["python3"]))
        async with lab.client() as client:
            fsid = (await client.command("fsid"))["fsid"]
            pools = await client.command("osd pool ls", detail="detail")
        (pool,) = [str(it["pool_id"]) for it in pools if it["pool_name"] == "named"]
        known, gone = TenantKey("image", pool, id_), TenantKey("image", pool, "ffff")
        elsewhere = TenantKey("image", "1", id_)  # the manager's pool has no images
        removed = TenantKey("image", "987654", id_)
        access = ClusterAccess(conf=str(lab.paths.conf), python=python)
        wanted = [(fsid, key) for key in (known, gone, elsewhere, removed)]
        assert await image_names(access, [*wanted, ("another", known)]) == {(fsid, known): "vm-17"}
    finally:
        argv = ["ceph", "osd", "pool", "delete", "named", "named", "--yes-i-really-really-mean-it"]
        await lab.exec(argv)
