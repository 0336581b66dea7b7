"""The texts that sources of alerts name as `@likely@`."""

from collections.abc import Mapping
from typing import Final

from cephqos_alerts.rules.text import (
    COUNT,
    ON_SO_MANY,
    PLURAL_S,
    they_share,
    worst_first,
    worst_is,
    worst_of,
)
from cephqos_alerts.texts import blocked, forgotten, health_checks, known, limits, waiting
from cephqos_alerts.texts.replica_writes import WHAT_CAN_BE_KEPT
from cephqos_base.recorded import PerClass
from cephqos_base.series import OSD_CLASS

# As rendered, each begins with a space if it is a sentence, and is empty if it is not known.
TEXTS: Final[Mapping[str, str]] = {
    # The value of the alert, and the ending of what it counts: `@count@ OSD@s@`.
    "count": COUNT,
    "s": PLURAL_S,
    "on_so_many": ON_SO_MANY,
    # The cause of an OSD and class, and of a class of a cluster.
    "cause": known.OF_OSD.brief,
    "likely": known.OF_OSD.likely,
    "likely_and_also": known.LIKELY_AND_ALSO,
    "cause_of_cluster": known.OF_CLUSTER.brief,
    "likely_of_cluster": known.OF_CLUSTER.likely,
    "likely_of_slow_osd": known.LIKELY_OF_SLOW_OSD,
    "likely_of_silent_osd": known.LIKELY_OF_SILENT_OSD,
    # The tenant that has most of its work.
    "mostly": known.MOSTLY,
    "mostly_of_osd": known.MOSTLY_OF_OSD,
    # How much it lacks, and for how long.
    "gets": known.GETS,
    "violated_for": known.VIOLATED_FOR,
    "replica_write_takes": known.REPLICA_WRITE_TAKES,
    "reasons": known.REASONS,
    "store_shows": known.OF_STORE,
    "not_counted": known.NOT_COUNTED,
    "on_hosts": known.ON_HOSTS,
    "clients_wait": waiting.CLIENTS_WAIT,
    "others_wait": waiting.OTHERS_WAIT,
    "waiters": waiting.WAITERS,
    # What holds it back from outside.
    "limited_by": limits.LIMITED_BY,
    "others_take": limits.OTHERS_TAKE,
    "of_cpus": limits.OF_CPUS,
    "by_taker": limits.BY_TAKER,
    "what_can_be_kept": WHAT_CAN_BE_KEPT,
    # Why operations are blocked; what a forgotten flag or setting costs; what a health check means.
    "likely_of_blocked": blocked.LIKELY,
    "what_it_costs": forgotten.WHAT_IT_COSTS,
    "what_it_means": health_checks.WHAT_IT_MEANS,
}


def texts_of_count(counted: str) -> Mapping[str, str]:
    """The texts of an alert that counts OSDs and classes, those that this expression finds."""
    osds = f"{PerClass.SHORTFALL_OPS}{{SELECTOR}} and on ({OSD_CLASS}) ({counted})"
    worst = worst_of(osds, ("cluster", "class"))
    cause = known.of_many(counted)
    return {
        "worst_is": worst_is(worst),
        "worst_first": worst_first(worst, 'VALUE | printf "%.0f normalised ops/s"'),
        "cause_of_many": cause.brief,
        "likely_of_many": cause.likely,
        "also_of_many": known.also_of_many(counted),
        "all_share": they_share(osds, ("cluster", "class")),
    }
