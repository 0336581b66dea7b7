"""CPU, hosts and placement: which threads are at their ceiling, and where OSDs run."""

from grafana_foundation_sdk.models.common import BigValueTextMode

from cephqos_base import dashboards
from cephqos_base.thresholds import THRESHOLDS
from cephqos_dashboards import frame, theme
from cephqos_dashboards.frame import Board, BoardRow
from cephqos_dashboards.panels import PanelColumn, figure, lines, matrix, rows, thirds
from cephqos_dashboards.queries import cpu
from cephqos_dashboards.queries.common import NO_RULES, TOO_LARGE
from cephqos_dashboards.theme import Unit

_NO_THREADS = f"The collector threads is off, or the exporter may not read /proc. {TOO_LARGE}"
_NO_CRIMSON = "This cluster has no Crimson OSD."
_OSD_LINK = frame.OSD_OF_SERIES

_TIME = (
    lines(
        cpu.GROUPS,
        title="CPU by thread group, all OSDs",
        reads="CPUs that the threads of a group use together, over all OSDs.",
        empty=_NO_THREADS,
        unit=Unit.CPUS,
        overrides=theme.thread_overrides(),
    ),
    lines(
        cpu.BUSIEST,
        title="Busiest threads",
        reads="At 100 % a thread is at its ceiling, however many CPUs idle.",
        blind="bursts shorter than a scrape interval; reactors, which poll (see below).",
        empty=_NO_THREADS,
        unit=Unit.RATIO,
        link=_OSD_LINK,
    ),
    lines(
        cpu.CEILING,
        title="OSDs nearest to a thread's ceiling",
        reads=f"""The OSD's busiest thread or reactor. Above
            {100 * THRESHOLDS.reached:g} % the cause is cpu.""",
        empty=f"No OSD has a figure. {NO_RULES}",
        unit=Unit.RATIO,
        link=_OSD_LINK,
    ),
    lines(
        cpu.WAITING,
        title="Waiting for a CPU",
        reads=f"""Threads of an OSD that are ready to run and have no CPU, on average. Above
            {THRESHOLDS.twice:g} the cause of a violation is cpu.""",
        empty=f"No OSD has a figure. {NO_RULES}",
        unit=Unit.THREADS,
        link=_OSD_LINK,
    ),
    lines(
        cpu.PER_OP,
        title="CPU time per normalised operation",
        reads="What an OSD spends on a unit of work. One that costs more than others is placed "
        "badly, or does something else.",
        empty=f"No OSD does more than 1 normalised op/s. {NO_RULES}",
        unit=Unit.SECONDS,
        link=_OSD_LINK,
    ),
    lines(
        cpu.SWITCHES,
        title="Context switches per second",
        reads="""Involuntary: a thread was moved off its CPU while it had work. Voluntary: it
            waited for something.""",
        empty=_NO_THREADS,
    ),
)

_PLACES = (
    matrix(
        cpu.NODES,
        title="Threads of OSDs by NUMA node",
        reads="""One column per NUMA node: threads that last ran there. An OSD pinned to one
            node has all of them in one column.""",
        empty=f"The collector placement is off. {TOO_LARGE}",
        width=8,
        height=6,
        row="ceph_daemon",
        column="node",
    ),
    rows(
        *cpu.CPUS,
        title="CPUs that OSDs may use and use",
        reads="""Allowed: by affinity and cgroup. Used: CPUs on which a thread last ran. Many
            used and few allowed: threads compete.""",
        empty=f"The collector placement is off. {TOO_LARGE}",
        width=10,
        height=6,
        columns=(
            PanelColumn(source="ceph_daemon", title="OSD", link=frame.OSD_OF_ROW, width=90),
            PanelColumn(source="used", title="Used", width=70),
            PanelColumn(source="allowed", title="Allowed", width=80),
            PanelColumn(source="nodes", title="NUMA nodes", width=115),
            PanelColumn(source="cpus", title="CPUs"),
        ),
        sort="Used",
    ),
    figure(
        cpu.STRATEGY,
        title="Hosts by placement strategy",
        reads="Hosts by how their OSDs look placed. Hosts of one cluster should agree.",
        empty="collector is off",
        width=6,
        height=6,
        text=BigValueTextMode.VALUE_AND_NAME,
    ),
)

_NO_LIMIT = "No OSD has such a limit, or the collector cgroup is off."

_LIMITS = thirds(
    lines(
        cpu.HOSTS,
        title="Hosts: CPU used",
        reads="Time of all CPUs that programs used or other virtual machines took.",
        empty="The collector host is off.",
        unit=Unit.RATIO,
    ),
    lines(
        cpu.TAKEN,
        title="Hosts: CPUs taken from OSDs",
        reads="CPUs that other programs or virtual machines use while no CPU is idle.",
        empty=f"No host is short of CPU for other programs. {NO_RULES}",
        unit=Unit.CPUS,
    ),
    lines(
        cpu.HOST_PRESSURE,
        title="Hosts: pressure",
        reads="Time in which a thread of the host waited for CPU, memory or I/O.",
        empty="The kernel does not count pressure (PSI), or the collector host is off.",
        unit=Unit.RATIO,
    ),
    lines(
        cpu.THROTTLED,
        title="OSDs stopped by a CPU limit",
        reads=f"""Periods in which the CPU limit of a container or unit was used up. Above
            {100 * THRESHOLDS.part:g} % the cause of a violation is cpu.""",
        empty=_NO_LIMIT,
        unit=Unit.RATIO,
        link=_OSD_LINK,
    ),
    lines(
        cpu.MEMORY,
        title="Memory used of the limit",
        reads="At 100 % memory is reclaimed, or a process is killed.",
        blind="file cache counts as used.",
        empty=_NO_LIMIT,
        unit=Unit.RATIO,
        link=_OSD_LINK,
    ),
    lines(
        cpu.PRESSURE,
        title="OSDs: pressure",
        reads="Time in which a thread of the OSD's container waited for CPU, memory or I/O.",
        empty="Needs cgroup version 2 with PSI, and the collector cgroup.",
        unit=Unit.RATIO,
        link=_OSD_LINK,
    ),
)

_NO_NETWORK = "The collector host is off."

_NETWORK = thirds(
    lines(
        cpu.LINKS,
        title="Hosts: use of links",
        reads=f"""What an interface receives or transmits, of its speed. Above
            {100 * THRESHOLDS.link_full:g} % what crosses it waits.""",
        empty=f"No interface says its speed, as those of virtual machines. {_NO_NETWORK}",
        unit=Unit.RATIO,
    ),
    lines(
        cpu.LINKS_LOST,
        title="Hosts: packets lost by links",
        reads="Errors come from a cable, optic or port. Drops had no room, or belong to a protocol "
        "that the host does not use.",
        empty=f"No interface with hardware. {_NO_NETWORK}",
    ),
    lines(
        cpu.SENT_AGAIN,
        title="Hosts: TCP segments sent again",
        reads=f"""Lost on the way, or by the other side. Above {100 * THRESHOLDS.lost:g} % the cause
            of a violation is network.""",
        empty=_NO_NETWORK,
        unit=Unit.RATIO,
    ),
)

_CRIMSON = thirds(
    lines(
        cpu.REACTORS,
        title="Reactor utilisation",
        reads="A reactor's own account of being busy. At 100 % it is at its ceiling.",
        empty=_NO_CRIMSON,
        unit=Unit.RATIO,
        maximum=1,
        link=_OSD_LINK,
    ),
    lines(
        cpu.STOLEN,
        title="Reactors: time stolen",
        reads="The reactor wanted to run and something else had its CPU.",
        empty=_NO_CRIMSON,
        unit=Unit.RATIO,
        link=_OSD_LINK,
    ),
    lines(
        cpu.SHARED,
        title="Reactors that share a CPU",
        reads="With another reactor, its hardware sibling, or a thread that is no reactor.",
        empty="No reactor shares its CPU, or there is no Crimson OSD.",
        link=_OSD_LINK,
    ),
)

BOARD = Board(
    uid=dashboards.CPU,
    title="CPU & placement",
    about="Which threads are at their ceiling, who waits for a CPU, and where do OSDs run?",
    rows=(
        BoardRow("CPU time", _TIME),
        BoardRow("Hosts and limits of containers", _LIMITS),
        BoardRow("Network of hosts", _NETWORK),
        BoardRow("Placement", _PLACES),
        BoardRow("Reactors of Crimson OSDs", _CRIMSON, collapsed=True),
    ),
)
