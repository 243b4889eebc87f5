"""The waiting loop, under a clock that no test waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gates import message
from gates.session import Session, pause_for
from gates.verdict import Failed, Finding, Healthy, Verdict, Waiting, conclude
from gates.wait import Outcome, Progress, Wait
from tests.gates_objects import ref
from tests.gates_runs import FakeTime, untold

OK = Healthy(evidence=("fine",))


def waiting(text: str = "etcd: 1 of 3 members") -> Waiting:
    return Waiting(findings=(Finding(observed=text),), done=1, total=3)


class Scripted(Session):
    """Says one thing after the other, the last of them for ever."""

    def __init__(self, clock: FakeTime, *script: Verdict, passes: int = 1) -> None:
        self.passes = passes
        self.script, self.clock = list(script), clock
        self.looks: list[float] = []
        self.news = asyncio.Event()
        self.closed = False

    async def look(self) -> Verdict:
        self.looks.append(self.clock.now() - 1000)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    async def changed(self) -> None:
        await self.news.wait()
        self.news.clear()

    async def evidence(self) -> dict[str, Any]:
        return {"pods": ["a"]}

    async def close(self) -> None:
        self.closed = True


async def wait(session: Session, clock: FakeTime, deadline: float = 60, tell: Callable[..., Any] = untold) -> Outcome:
    return await clock.run(Wait(session=session, deadline=deadline, on_progress=tell, clock=clock).run())


async def test_healthy_at_the_first_look_waits_for_nothing() -> None:
    clock = FakeTime()
    outcome = await wait(Scripted(clock, OK), clock)
    assert (outcome.healthy, outcome.waited, outcome.extra) == (True, 0.0, {})


async def test_pauses_grow_to_the_longest_and_never_pass_the_deadline() -> None:
    clock = FakeTime()
    session = Scripted(clock, waiting())
    outcome = await wait(session, clock, deadline=60)
    pauses = [later - earlier for earlier, later in zip(session.looks, session.looks[1:], strict=False)]
    assert not outcome.healthy
    assert pauses[0] < 0.5
    assert pauses[:-1] == sorted(pauses[:-1])
    assert max(pauses) == pytest.approx(5.0)
    assert session.looks[-1] == pytest.approx(60.0)
    assert outcome.waited == pytest.approx(60.0)


async def test_deadline_carries_the_last_finding_its_age_and_the_evidence() -> None:
    clock = FakeTime()
    outcome = await wait(Scripted(clock, waiting("first"), waiting("second")), clock, deadline=30)
    (finding,) = outcome.ages
    assert finding.observed == "second"
    assert 29 < outcome.ages[finding] < 30
    assert outcome.extra == {"pods": ["a"]}


async def test_what_cannot_mend_fails_at_once() -> None:
    clock = FakeTime()
    session = Scripted(clock, Failed(findings=(Finding(observed="a foreign CA"),)))
    outcome = await wait(session, clock)
    assert (outcome.waited, len(session.looks)) == (0.0, 1)
    assert isinstance(outcome.verdict, Failed)


async def test_news_is_looked_at_without_waiting_for_the_next_poll() -> None:
    clock = FakeTime()
    session = Scripted(clock, waiting(), OK)
    session.news.set()
    outcome = await wait(session, clock)
    assert (outcome.healthy, outcome.waited) == (True, 0.0)


async def test_two_passes_are_asked_apart_and_a_flap_begins_anew() -> None:
    clock = FakeTime()
    session = Scripted(clock, OK, waiting(), OK, OK, passes=2)
    outcome = await wait(session, clock)
    assert outcome.healthy
    assert len(session.looks) == 4
    assert session.looks[1] - session.looks[0] >= 0.1
    assert session.looks[3] - session.looks[2] >= 0.1


async def test_one_pass_of_two_is_not_enough_when_time_runs_out() -> None:
    clock = FakeTime()
    session = Scripted(clock, OK, passes=99)
    outcome = await wait(session, clock, deadline=1)
    assert isinstance(outcome.verdict, Waiting)
    assert "not yet confirmed" in outcome.verdict.findings[0].observed


class Stuck(Scripted):
    async def look(self) -> Verdict:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_look_that_never_ends_is_cut_off_at_the_deadline() -> None:
    clock = FakeTime()
    outcome = await wait(Stuck(clock, OK), clock, deadline=20)
    assert outcome.waited == pytest.approx(20)
    assert isinstance(outcome.verdict, Waiting)
    assert "nothing has answered" in outcome.verdict.findings[0].observed


class Broken(Scripted):
    async def look(self) -> Verdict:
        raise KeyError("a programming error")

    async def evidence(self) -> dict[str, Any]:
        raise OSError("gone")


async def test_programming_errors_are_not_swallowed() -> None:
    clock = FakeTime()
    with pytest.raises(KeyError, match="programming"):
        await wait(Broken(clock, OK), clock)


async def test_a_bundle_that_cannot_be_read_does_not_hide_the_finding() -> None:
    class Unreadable(Scripted):
        async def evidence(self) -> dict[str, Any]:
            raise OSError("gone")

    clock = FakeTime()
    outcome = await wait(Unreadable(clock, waiting()), clock, deadline=1)
    assert (outcome.healthy, outcome.extra) == (False, {})


async def test_progress_is_told_every_three_seconds() -> None:
    clock, told = FakeTime(), []

    async def tell(progress: Progress) -> None:
        told.append((clock.now() - 1000, progress))

    session = Scripted(
        clock, Waiting(findings=(Finding(observed="a", node=ref()), Finding(observed="b")), done=1, total=6)
    )
    await wait(session, clock, deadline=10, tell=tell)
    assert [when for when, _ in told] == [3.0, 6.0, 9.0]
    assert told[0][1] == Progress(waiting_for="w-1: a (and 1 more)", done=1, total=6, left=7.0)
    line = message.progress(gate="G4", title="kubelets", told=told[0][1])
    assert line == (
        "G4 kubelets: waiting for w-1: a (and 1 more) · 1 of 6 · 7 s left"
        " · Ctrl-C: this gate finishes first; press again to stop now"
    )


async def test_a_gate_stops_once_nobody_listens() -> None:
    clock = FakeTime()

    async def gone(progress: Progress) -> None:
        raise ConnectionError("engine gone")

    session = Scripted(clock, waiting())
    with pytest.raises(ConnectionError):
        await wait(session, clock, deadline=600, tell=gone)
    assert session.looks[-1] <= 3.0


def test_polling_is_quick_for_few_nodes_and_cheap_for_many() -> None:
    assert [pause_for(count) for count in (1, 6, 100, 5000)] == [0.2, 0.2, 1.0, 5.0]


def test_conclusions() -> None:
    finding = Finding(observed="x")
    assert conclude([], ["e"]) == Healthy(evidence=("e",))
    assert conclude([finding], []) == Waiting(findings=(finding,))
    assert conclude([], [], fatal=[finding]) == Failed(findings=(finding,))
