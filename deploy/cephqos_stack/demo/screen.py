"""The demo's screen: `cephqos top` with the story above it. A pipe gets lines (printout.py)."""

import argparse
import asyncio
import time
from collections.abc import Sequence
from functools import partial

from psutil import Process

from cephqos_base.servers import Address, HttpServer
from cephqos_base.terminal import can_draw, printable, say, say_text
from cephqos_exporter.ceph.monclient import ClusterUnreachable, CommandFailed, MonClient
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.progress import folded
from cephqos_loadgen.top.screen.app import Top
from cephqos_loadgen.top.screen.layout import Line, Span, line
from cephqos_loadgen.top.screen.view import View
from cephqos_loadgen.top.sources.prometheus import PrometheusSource
from cephqos_loadgen.top.watch import Watch
from cephqos_stack.demo.beside import Beside
from cephqos_stack.demo.load import DemoLoad
from cephqos_stack.demo.printout import COLUMNS, Printout
from cephqos_stack.demo.provoke import PROVOCATIONS, Provoker, listen
from cephqos_stack.demo.remote import listening
from cephqos_stack.demo.story import STORY_POOL, AlertWatch, addresses, calibrate, tell_story
from cephqos_stack.demo.tour import Tour
from cephqos_stack.stack import Stack

_RATE_SECONDS = 10.0  # the rules' rate window, at the demo's pace
# Seconds after its start in which a Prometheus without OSDs only has not scraped yet.
_FIRST_SCRAPE = 30.0
_EVENTS = 3  # the last ones, above the cluster's state


class Screen:
    """Shows the cluster, and tells the story."""

    def __init__(
        self,
        lab: RunningLab,
        client: MonClient,
        load: DemoLoad,
        stack: Stack,
        beside: Sequence[Beside],
        arguments: argparse.Namespace,
    ) -> None:
        self._lab = lab
        self._client = client
        self._load = load
        self._stack = stack
        self._beside = beside
        self._arguments = arguments
        self._begin = time.monotonic()
        self._events: list[str] = []  # lines with their times
        self._health = ""
        self._live = can_draw()
        self._provoker = Provoker(lab, self._measure, self._tell)
        self._alerts = AlertWatch(stack.alertmanager_url, self._tell)

    async def run(self) -> None:
        """Run until --duration has passed, the story is over (with --once), `q` or Ctrl-C."""
        states = {part.name: part.state for part in self._beside} | addresses(self._stack)
        states["ceph"] = f"cephqos lab exec --name {self._lab.paths.name} -- ceph -s"
        addresses_text = [f"{name + ':':13} {text}" for name, text in states.items()]
        say(*addresses_text)
        address = Address.parse(self._stack.prometheus_url, "--url")
        async with HttpServer(address) as connection:
            source = PrometheusSource(connection, _RATE_SECONDS)
            watch = Watch(source, self._arguments.interval, patience=_FIRST_SCRAPE)
            printout = None if self._live else Printout(watch, self._tell, self._above)
            try:
                async with listening(self._lab.paths.sockets, self._provoker.toggle):
                    await self._run_tasks(watch, printout)
            finally:
                if self._live:  # the screen is gone: what happened stays
                    say(*addresses_text, *self._events)
                if card := self._provoker.card:
                    say("", "What you provoked, and what the alerts said:", *card)

    async def _run_tasks(self, watch: Watch, printout: Printout | None) -> None:
        """Run all parts of the demo, until the first that ends it, or --duration."""
        try:
            async with asyncio.TaskGroup() as group:
                shown = group.create_task(self._show(watch, printout))
                story = group.create_task(self._story(printout))
                tasks = [
                    shown,
                    story,
                    group.create_task(self._watch_cluster()),
                    group.create_task(self._first_data(watch, printout)),
                    group.create_task(self._listen(story)),
                ]
                ended, _ = await asyncio.wait(
                    {shown, story} if self._arguments.once else {shown},
                    timeout=self._arguments.duration,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if printout and not ended:
                    await printout.refresh(picture=True)
                for task in tasks:
                    task.cancel()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    def _tell(self, words: str) -> None:
        event = f"{time.monotonic() - self._begin:5.0f} s  {words}"
        self._events.append(event)
        if not self._live:
            say_text(folded(printable(event), COLUMNS))

    async def _story(self, printout: Printout | None) -> None:
        if not self._arguments.calm:
            try:
                self._provoker.delivered = await self._measure()
            except LabError as error:
                raise LabError(f"{error}, or start with --calm, which tells no story") from None
        if self._arguments.tour:
            self._provoker.closed = "the tour goes on: wait until it is over"
            await self._tour()
        elif not self._arguments.calm:
            await tell_story(self._lab, self._alerts, STORY_POOL, self._tell, self._load.phase)
        self._provoker.closed = ""
        if printout and not self._arguments.calm:
            await printout.refresh(picture=True)

    async def _tour(self) -> None:
        tour = Tour(
            self._lab,
            self._provoker,
            self._stack.query,
            self._tell,
            self._load.phase,
            self._stack.prometheus_url,
        )
        await tour.walk()

    async def _measure(self) -> int:
        with self._load.phase("measure capacity"):
            return await calibrate(self._lab, self._stack, self._alerts, STORY_POOL, self._tell)

    async def _listen(self, story: asyncio.Task[None]) -> None:
        """Pass alerts on to the provoker. The story reads them itself, so only after it."""
        if not self._arguments.tour:
            await asyncio.wait([story])
        await listen(self._provoker, self._alerts, self._stack.query)

    async def _first_data(self, watch: Watch, printout: Printout | None) -> None:
        """Tell when the clients' work is on the screen for the first time, and what follows."""
        while True:
            if watch.picture and any(work.attained for work in watch.picture.classes):
                break
            await asyncio.sleep(0.1)
        seconds = time.time() - Process().create_time()
        self._tell(f"FIRST DATA: on the screen {seconds:.0f} s after the start of the command")
        if printout:
            await printout.refresh(picture=True)
        for part in self._beside:
            if not part.ready.is_set():
                await part.ready.wait()
                self._tell(f"{part.name}: {part.state}")

    async def _watch_cluster(self) -> None:
        """The cluster's health, and an error if the load ends."""
        while True:
            if (status := self._load.process.returncode) is not None:
                output = self._load.last_output.decode(errors="replace")
                raise LabError(f"fio ended with status {status}: {output}")
            try:
                ceph = await self._client.command("status", within=2.0)
                states = ceph["pgmap"].get("pgs_by_state", [])
                pgs = ", ".join(f"{state['count']} PGs {state['state_name']}" for state in states)
                self._health = f"{ceph['health']['status']}, {pgs}"
            except (ClusterUnreachable, CommandFailed) as error:
                self._health = f"no answer from the monitor: {error}"
            await asyncio.sleep(self._arguments.interval)

    async def _show(self, watch: Watch, printout: Printout | None) -> None:
        if printout is None:
            press = self._provoker.press
            keys = {known.key: partial(press, known.name) for known in PROVOCATIONS}
            await Top(watch, View(), above=self._headline, also=keys).run()
            return
        while True:
            await printout.refresh()
            await asyncio.sleep(self._arguments.interval)

    def _above(self) -> list[Line]:
        """The title, where Grafana is, what is not ready yet and how far it is."""
        parts = [part for part in self._beside if part.stays or not part.ready.is_set()]
        states = (printable(f"{part.name + ':':9}{part.state}") for part in parts)
        return [self._title(), *(line(Span(state, "dim")) for state in states)]

    def _title(self) -> Line:
        ceph = self._lab.spec.ceph
        seconds = time.monotonic() - self._begin
        return line(
            Span(f"Ceph {ceph.version} ({ceph.name})", "title"),
            f"  {printable(self._health)}  {seconds:.0f} s",
        )

    def _headline(self) -> list[Line]:
        """What happened last, above the cluster's state."""
        events = self._events[-_EVENTS:]
        lines = [line(Span(printable(event), "dim")) for event in events[:-1]]
        lines += [line(Span(printable(event), "warn")) for event in events[-1:]]
        lines += [()] * (_EVENTS - len(lines))
        return [*self._above(), *lines, self._keys(), ()]

    def _keys(self) -> Line:
        """What can be provoked."""
        if self._provoker.closed:
            return ()
        going_on = self._provoker.going_on
        spans = [Span("provoke: ", "dim")]
        for known in PROVOCATIONS:
            text = f"{known.key} {known.name}  "
            spans.append(Span(text, "warn" if known.name == going_on else ""))
        return line(*spans)
