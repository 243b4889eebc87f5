import json
import os
from pathlib import Path

from lab.event_tap import EventTap


def line(sequence: int, severity: str | None = None) -> bytes:
    event = {"sequence": sequence} | ({"diagnosticEvent": {"severity": severity}} if severity else {})
    return json.dumps(event).encode() + b"\n"


def test_debug_messages_never_reach_the_disk(tmp_path: Path) -> None:
    kept = tmp_path / "up.jsonl"
    with EventTap(tmp_path / "pipe", kept) as tap:
        engine = os.open(tap.pipe, os.O_RDWR)
        os.write(engine, line(1) + line(2, "debug") + line(3, "info"))
        assert [event["sequence"] for event in tap.events(1)] == [1, 3]
        os.close(engine)
    assert kept.read_bytes() == line(1) + line(3, "info")
    assert not tap.pipe.exists()


def test_half_an_event_waits_for_its_other_half(tmp_path: Path) -> None:
    with EventTap(tmp_path / "pipe", tmp_path / "up.jsonl") as tap:
        engine = os.open(tap.pipe, os.O_RDWR)
        os.write(engine, line(1)[:5])
        assert list(tap.events(1)) == []
        os.write(engine, line(1)[5:])
        assert [event["sequence"] for event in tap.events(1)] == [1]
        os.close(engine)


def test_an_engine_that_has_not_begun_is_waited_for_and_no_longer(tmp_path: Path) -> None:
    with EventTap(tmp_path / "pipe", tmp_path / "up.jsonl") as tap:
        assert list(tap.events(0.01)) == []
