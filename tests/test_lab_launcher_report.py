import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from lab import cli
from lab.engine import Finished
from lab.narrator import Narrator
from lab.rehearsal import tell
from lab.report import NOT_SHOWN, Report, gates, steps


def gate(name: str, probe: str, finished: str, **more: object) -> dict[str, object]:
    outputs = {"gate": name, "probe": probe, "finished": finished, "waited": 1.25, "evidence": ["a", "b"], **more}
    return {"type": "pulumi-python:dynamic/groundwork:Gate", "urn": f"urn::{name}", "outputs": outputs}


BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
STATE = {
    "deployment": {
        "resources": [
            gate("G5", "kube-api", "2026-01-01T00:00:09Z"),
            {"type": "pulumi:pulumi:Stack", "urn": "urn::stack", "outputs": {"gate": "not one"}},
            gate("G1", "talos-api", "2026-01-01T00:00:01Z"),
            gate("G99", "new", "2026-01-01T00:00:10Z"),
        ]
    }
}


def test_gates_are_those_of_the_state_in_the_order_they_passed() -> None:
    records = gates(STATE)
    assert [(record.gate, record.stage) for record in records] == [
        ("G1", "machines"),
        ("G5", "Kubernetes API"),
        ("G99", "other"),
    ]
    assert records[0].row() == ("machines", "G1", "talos-api: a; b", "1.2")


def test_a_step_counts_the_requests_made_while_it_ran() -> None:
    done = Finished(step="preview", code=0, began=BEGAN, seconds=2, log=Path("preview.log"))
    seconds = {-1: True, 0: False, 1: True, 2: False, 3: True}
    requests = [
        {"time": (BEGAN + timedelta(seconds=second)).isoformat(timespec="milliseconds"), "write": write}
        for second, write in seconds.items()
    ]
    (step,) = steps([done], requests)
    assert (step["requests"], step["writes"]) == (3, 1)


def test_an_empty_state_has_no_gates() -> None:
    assert gates({"deployment": {}}) == []


def report(*, success: bool) -> Report:
    done = Finished(step="up", code=0 if success else 255, began=BEGAN, seconds=3.21, log=Path("up.log"))
    return Report(
        stack="infra",
        pace=0,
        started="now",
        success=success,
        failure=None if success else "up ended with 255",
        steps=steps([done], []),
        gates=gates(STATE),
        files={"logs": "l", "requests": "r"},
    )


def test_a_report_survives_being_written() -> None:
    whole = report(success=True)
    document = json.loads(json.dumps(whole.document()))
    assert Report.read(document).gates == whole.gates
    assert document["not_shown"] == list(NOT_SHOWN)


@pytest.mark.parametrize(("success", "words"), [(True, "healthy"), (False, "up ended with 255")])
def test_the_timeline_is_told_in_plain_text(success: bool, words: str) -> None:
    stream = io.StringIO()
    tell(report(success=success), Narrator(Console(file=stream, width=120, force_terminal=False)))
    text = stream.getvalue()
    assert words in text
    assert all(part in text for part in ("G1", "talos-api: a; b", "1.2", "3.2"))
    assert "\x1b" not in text


def test_a_step_that_fails_says_so() -> None:
    stream = io.StringIO()
    narrator = Narrator(Console(file=stream, width=120))
    with pytest.raises(ZeroDivisionError), narrator.step("dividing"):
        _ = 1 / 0
    assert "✗ dividing" in stream.getvalue()


def test_markup_in_evidence_is_text() -> None:
    stream = io.StringIO()
    Narrator(Console(file=stream, width=120)).table("t", ("a",), [["[red]x[/red]"]])
    assert "[red]x[/red]" in stream.getvalue()


@pytest.mark.parametrize(
    "arguments",
    [["report", "no-such-lab"], ["fault", "--name", "no-such-lab", "list"], ["shell", "--name", "no-such-lab", "true"]],
)
def test_what_is_not_there_is_an_error_of_use(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert "no-such-lab" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--help"], ["rehearse", "--help"], ["fault", "add", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 0
    assert "usage: python -m lab" in capsys.readouterr().out
