"""What a run switches off before it measures, and what it says of it."""

from typing import Any

from cephqos_loadgen.cluster import background_work
from cephqos_loadgen.cluster.undo import Journal


class Cluster:
    """A balancer that runs, and two pools, one of which the autoscaler looks after."""

    def __init__(self, *, balancer: bool = True) -> None:
        self.balancer = balancer
        self.told: list[str] = []

    async def command(self, prefix: str, **arguments: Any) -> Any:
        replies: dict[str, Any] = {
            "balancer status": {"active": self.balancer},
            "config dump": [],
            "osd dump": {"flags": "sortbitwise", "pools": [{"pool": 1, "pool_name": "a"}]},
            "osd pool ls": [
                {"pool_name": "a", "pg_autoscale_mode": "on"},
                {"pool_name": "b", "pg_autoscale_mode": "off"},
                {"pool_name": "of an old release"},
            ],
            "osd pool get": {"pg_autoscale_mode": "on"},
        }
        if prefix not in replies:
            words = [
                str(value) for key, value in arguments.items() if key not in ("target", "detail")
            ]
            self.told.append(" ".join([prefix, *words]))
        return replies.get(prefix)


async def applied(cluster: Any, *wanted: str) -> dict[str, Any]:
    async def save(entries: object) -> None: ...

    return await background_work.apply(cluster, Journal(save), wanted)


async def test_all_is_switched_off_and_the_archive_says_what_was() -> None:
    cluster = Cluster()
    assert await applied(cluster, "balancer", "autoscaler", "scrubs") == {
        "balancer": "switched off",
        "autoscaler": ["a"],
        "flags": ["noscrub", "nodeep-scrub"],
    }
    assert cluster.told == [
        "balancer off",
        "osd pool set a pg_autoscale_mode off",
        "osd set noscrub",
        "osd set nodeep-scrub",
    ]


async def test_what_is_off_already_and_what_nobody_asked_for_is_left_alone() -> None:
    cluster = Cluster(balancer=False)
    assert await applied(cluster, "balancer") == {}
    assert await applied(cluster) == {}
    assert cluster.told == []
