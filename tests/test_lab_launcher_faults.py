import ast
from pathlib import Path

from lab.fault_catalogue import CATALOGUE

LAB = Path(__file__).parent.parent / "lab"
EMULATORS = ("internet", "kubernetes", "proxmox", "talos")
ASKING = {"active", "cleared", "struck"}


def literals() -> set[str]:
    """Every string in the emulators' sources."""
    trees = [ast.parse(path.read_text()) for name in EMULATORS for path in (LAB / name).rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def asked() -> set[str]:
    """Every name an emulator asks for."""
    trees = [ast.parse(path.read_text()) for name in EMULATORS for path in (LAB / name).rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    named = [call.args[0] for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in ASKING]
    return {first.value for first in named if isinstance(first, ast.Constant) and isinstance(first.value, str)}


def test_every_fault_an_emulator_asks_for_is_in_the_catalogue() -> None:
    assert asked() - CATALOGUE.keys() == set()
    assert len(asked()) > 20


def test_every_fault_of_the_catalogue_is_asked_for_somewhere() -> None:
    assert CATALOGUE.keys() - literals() == set()
