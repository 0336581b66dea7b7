"""Scrub and recovery: progress, rate, time left, schedule, and what clients pay for them."""

from grafana_foundation_sdk.models.common import BigValueTextMode

from cephqos_base import dashboards
from cephqos_dashboards import frame, theme
from cephqos_dashboards.frame import Board, BoardRow
from cephqos_dashboards.panels import AnyPanel, PanelColumn, figure, lines, right_axis, rows
from cephqos_dashboards.queries import background
from cephqos_dashboards.queries.common import NO_RULES, TOO_LARGE
from cephqos_dashboards.theme import Unit

_OR_NO_CLUSTER = "Or the cluster role of the exporter does not run."
_NO_CLUSTER = "The cluster role of the exporter does not run (--role=cluster)."

# The next three are on the home page, too (overview.py).


def copies_to_recover(width: int) -> AnyPanel:
    return figure(
        background.COPIES_LEFT,
        title="Left to recover",
        reads="Object copies that are missing (degraded) or not where they belong (misplaced).",
        empty="no cluster role",
        width=width,
        thresholds=theme.ZERO_IS_USUAL,
        mappings=theme.NONE,
    )


def recovery_done_in(width: int) -> AnyPanel:
    return figure(
        background.RECOVERY_ETA,
        title="Recovery is done in",
        reads="The slowest OSD, at the rates of the last minute: likely, and a 90 % interval.",
        blind="what clients will do, and OSDs that go or come.",
        empty="not known",
        width=width,
        unit=Unit.SECONDS,
        decimals=0,
        mappings=theme.DONE,
    )


def overdue_for_a_scrub(width: int) -> AnyPanel:
    return figure(
        background.OVERDUE,
        title="Overdue for a scrub",
        reads="Placement groups whose last scrub is so old that Ceph warns.",
        empty="no cluster role",
        width=width,
        thresholds=theme.ZERO_IS_USUAL,
        mappings=theme.NONE,
    )


_NOW = (
    copies_to_recover(width=3),
    recovery_done_in(width=6),
    figure(
        background.UNFOUND,
        title="Unfound objects",
        reads="""Objects of which no OSD that is up has the newest version. `ceph health detail`
            lists them.""",
        empty="no cluster role",
        width=3,
        thresholds=theme.ZERO_IS_GOOD,
        mappings=theme.NONE,
    ),
    figure(
        background.SCRUBBING,
        title="Scrubs that run",
        reads="Placement groups that are scrubbed now, by level.",
        empty="no cluster role",
        width=4,
        mappings=theme.NONE,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
    overdue_for_a_scrub(width=4),
    figure(
        background.FLAGS,
        title="Flags that are set",
        reads="Cluster flags that are set, such as noscrub or norecover.",
        empty="no cluster role",
        width=4,
        thresholds=theme.steps((None, theme.WARN)),
        mappings=theme.mapped({"0": ("none", theme.GOOD), "1": ("set", theme.WARN)}),
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
)

_PAYS = (
    lines(
        *background.WHO_PAYS,
        title="Client latency, and the work of recovery and scrub under it",
        reads="""Right: mean latency of client operations. Left: normalised operations per
            second of clients, recovery and best effort (scrub and others). If latency rises with
            background work, clients pay for it.""",
        blind=f"""which clients: see the OSDs. Scrub work where the release does not count it.
            {TOO_LARGE}""",
        empty=f"No work of any class is recorded. {NO_RULES}",
        width=24,
        height=9,
        unit=Unit.OPS,
        overrides=(right_axis("/latency/", Unit.SECONDS, theme.BAD),),
        classes=True,
    ),
)

_RECOVERY = (
    lines(
        *background.REMAINING,
        title="Copies left to recover, by pool",
        reads="Should fall. Degraded copies are at risk; misplaced ones are not.",
        empty=f"Nothing is degraded or misplaced. {_OR_NO_CLUSTER}",
    ),
    lines(
        background.RECOVERY_RATE,
        title="Copies recovered per second, by pool",
        reads="The rate of the last minute. 0 while copies are left: recovery stands still.",
        empty=_NO_CLUSTER,
        unit="suffix:copies/s",
    ),
    lines(
        background.RECOVERY_STATES,
        title="Placement groups in a state of recovery",
        reads="Many waiting and few active: slots (osd_max_backfills) are what they wait for.",
        blind="how many groups there are in all: one in several states counts in each.",
        empty=f"No placement group recovers. {_OR_NO_CLUSTER}",
    ),
    lines(
        *background.RECOVERY_SLOTS,
        title="Recovery slots of all OSDs",
        reads="""In progress against the limit. Local: an OSD recovers its own groups; remote:
            it takes part in another's.""",
        empty=f"No OSD reports slots. {TOO_LARGE}",
        classes=True,
    ),
)

_SCRUB = (
    lines(
        *background.SCRUB_PROGRESS,
        title="Scrubs that run: objects done and left",
        reads="Done rises and left falls until a scrub ends; then both restart from zero.",
        empty=f"No scrub is running. {_OR_NO_CLUSTER}",
    ),
    lines(
        background.SCRUB_RATE,
        title="Objects scrubbed per second, by pool",
        reads="The rate of the last minute, by pool and level.",
        blind="on 16.2, a scrub before it ends.",
        empty=_NO_CLUSTER,
        unit="suffix:objects/s",
    ),
    lines(
        background.SCHEDULE,
        title="Schedule: placement groups on time, due and overdue",
        reads="Due: the interval is over. Overdue: so old that Ceph warns. Overdue must fall.",
        empty=_NO_CLUSTER,
        overrides=theme.urgency_overrides(),
        stacked=True,
    ),
    lines(
        *background.SCRUB_SLOTS,
        title="Scrub slots of all OSDs",
        reads="""Scrubs that OSDs take part in, as primary (local) or replica (remote), and
            how many they may (osd_max_scrubs).""",
        empty=f"No OSD reports slots. {TOO_LARGE}",
        classes=True,
    ),
    rows(
        *background.OLDEST,
        title="Schedule by pool",
        reads="""How long ago the oldest scrub of a pool was, the pool's interval, the age at
            which Ceph warns, objects that are due, and whether scrubs may begin.""",
        empty=_NO_CLUSTER,
        width=16,
        columns=(
            PanelColumn(source="pool", title="Pool"),
            PanelColumn(source="level", title="Level", width=90),
            PanelColumn(source="oldest", title="Oldest scrub", unit=Unit.SECONDS),
            PanelColumn(source="interval", title="Interval", unit=Unit.SECONDS),
            PanelColumn(source="overdue", title="Overdue after", unit=Unit.SECONDS),
            PanelColumn(source="backlog", title="Objects due"),
            PanelColumn(source="allowed", title="Allowed", width=80, words=theme.PLAIN_YES_NO),
        ),
        sort="Oldest scrub",
    ),
    lines(
        *background.SCRUB_TROUBLE,
        title="What goes wrong, per second",
        reads="""Scrubs put off because no replica had a slot, client writes that waited for a
            scrub, chunks that a scrub gave up for a client.""",
        empty=f"Counted from 20.2 on, once a scrub has run. {TOO_LARGE}",
        width=8,
        unit="suffix:/s",
        usual=1,
    ),
)

_SPACE = (
    rows(
        *background.SPACE,
        title="The fullest OSDs, and their placement groups",
        reads="""Used: writes stop at the ratio full (0.95 unless it was changed). Full in: at the
            growth of a day. Of its share: 1 is even, by weight in its CRUSH root and device class.
            Primaries serve all operations of clients.""",
        blind=f"data that waits to be moved. {TOO_LARGE}",
        empty=_NO_CLUSTER,
        width=24,
        columns=(
            PanelColumn(source="ceph_daemon", title="OSD", link=frame.OSD_OF_ROW),
            PanelColumn(source="reason", title="Reason"),
            PanelColumn(source="used", title="Used", unit=Unit.RATIO),
            PanelColumn(source="left", title="Full in", unit=Unit.SECONDS),
            PanelColumn(source="pgs", title="Placement groups"),
            PanelColumn(source="share", title="Times its share"),
            PanelColumn(source="primaries", title="Primaries"),
        ),
        sort="Used",
    ),
    lines(
        background.READ_SCORES,
        title="How unevenly primaries lie, by pool",
        reads="""read_balance_score. 1: as evenly as possible. 2: one OSD leads twice its share, and
            is full when the others are at half.""",
        blind="pools with fewer placement groups than OSDs, and erasure-coded ones.",
        empty=f"Ceph has it from 18.2 on. {_OR_NO_CLUSTER}",
        usual=2,
    ),
    lines(
        background.SNAPSHOTS,
        title="Deleted snapshots left to trim, by pool",
        reads="Should fall to none. A snapshot counts once in each placement group.",
        blind="how large they are.",
        empty=f"Nothing is to be trimmed. {_OR_NO_CLUSTER}",
    ),
)

BOARD = Board(
    uid=dashboards.BACKGROUND,
    title="Scrub & recovery",
    about="How far are recovery and scrub, when are they done, and what do clients pay for them?",
    rows=(
        BoardRow("Now", _NOW),
        BoardRow("Who pays", _PAYS),
        BoardRow("Recovery", _RECOVERY),
        BoardRow("Scrub", _SCRUB),
        BoardRow("Space, balance and snapshots", _SPACE),
    ),
    annotations=(frame.critical_alerts(),),
)
