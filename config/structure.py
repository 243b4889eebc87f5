"""From plain data to a ClusterConfig; when parts are unreadable, to as much of one as can still be checked."""

from __future__ import annotations

import copy
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from .errors import Problem, nearest
from .model import ClusterConfig, derive
from .values import LABEL_NAME, RELATIVE_PATH, VARIABLE_NAME, WORD, shown

Location = Sequence[int | str]

PATTERNS = {
    LABEL_NAME: "use lower-case letters, digits and dashes only, at most 63 of them",
    WORD: "write a name without spaces",
    VARIABLE_NAME: "begin with a lower-case letter, then letters, digits and underscores",
    RELATIVE_PATH: "write a path from the root of the repository, without .. and without a leading slash",
}


@dataclass(frozen=True, kw_only=True)
class Parsed:
    cluster: ClusterConfig
    """Without the unreadable sections as attributes, when there are any."""
    problems: list[Problem]
    every_node: bool
    """False when an unreadable node was left out, so that rules on the whole set would mislead."""


def parse(data: Any) -> Parsed:
    try:
        cluster = ClusterConfig.model_validate(data)
    except ValidationError as error:
        details = error.errors()
        return Parsed(
            cluster=_salvage(data if isinstance(data, dict) else {}, details),
            problems=[_problem(detail) for detail in details],
            every_node=not any(detail["loc"][:1] == ("nodes",) for detail in details if _breaks(detail)),
        )
    return Parsed(cluster=cluster, problems=[], every_node=True)


def path_of(location: Location) -> str:
    """Spells a location as it stands in the stack file."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location if part != "[key]"]
    return "cluster" + "".join(parts)


def _problem(detail: ErrorDetails) -> Problem:
    message, fix = _explain(detail)
    return Problem(path=path_of(detail["loc"]), message=message, fix=fix)


def _explain(detail: ErrorDetails) -> tuple[str, str]:
    context, value = detail.get("ctx", {}), detail["input"]
    match detail["type"]:
        case "refused":
            words = context["text"], context["fix"]
        case "extra_forbidden":
            words = "unknown key", nearest(str(detail["loc"][-1]), _keys_at(detail["loc"][:-1]), "remove it")
        case "missing":
            words = "is missing", "add it"
        case "literal_error":
            words = f"must be {context['expected']}, not {shown(value)}", _choice(value, context["expected"])
        case "string_pattern_mismatch":
            fix = PATTERNS.get(context["pattern"], f"write something that matches {context['pattern']}")
            words = f"{shown(value)} is not allowed here", fix
        case "greater_than_equal" | "less_than_equal":
            bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
            words = f"must be {bound}, not {shown(value)}", f"write a number that is {bound}"
        case _:
            found = "" if isinstance(value, dict) else f" (found {shown(value)})"
            words = detail["msg"].replace("Input should", "should") + found, "see schema/stack.schema.json"
    return words


def _choice(value: Any, expected: str) -> str:
    choices = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    return nearest(str(value), choices, f"write {choices[0]}")


def _keys_at(location: Location) -> list[str]:
    """The keys known at a location, found by walking the models' types."""
    kind: Any = ClusterConfig
    for part in location:
        kind = _plain(_inside(kind, part))
    return list(kind.model_fields)


def _inside(kind: Any, part: int | str) -> Any:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_fields[str(part)].annotation
    return get_args(kind)[-1]


def _plain(kind: Any) -> Any:
    """Without the None of an optional."""
    return get_args(kind)[0] if get_origin(kind) in (Union, types.UnionType) else kind


def _breaks(detail: ErrorDetails) -> bool:
    """An unknown key can be left out without changing what the rest means; anything else cannot."""
    return detail["type"] != "extra_forbidden"


def _salvage(data: Mapping[str, Any], details: Sequence[ErrorDetails]) -> ClusterConfig:
    rest = copy.deepcopy(derive(dict(data)))
    unknown_keys_first = sorted(details, key=_breaks)
    broken = {str(name) for detail in unknown_keys_first if (name := _leave_out(rest, detail))}
    sections: dict[str, Any] = {}
    for name, field in ClusterConfig.model_fields.items():
        if name in broken or (name not in rest and field.is_required()):
            continue
        try:
            sections[name] = _section(name, rest)
        except ValidationError:
            continue
    partial = ClusterConfig.model_construct(**sections)
    for name in ClusterConfig.model_fields.keys() - sections.keys():
        partial.__dict__.pop(name, None)
    return partial


def _section(name: str, data: Mapping[str, Any]) -> Any:
    if name not in data:
        return ClusterConfig.model_fields[name].get_default(call_default_factory=True)
    return _adapter(name).validate_python(data[name])


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(ClusterConfig.model_fields[name].rebuild_annotation())


def _leave_out(data: Any, detail: ErrorDetails) -> int | str | None:
    """Removes what is wrong: an unknown key, one node; otherwise names the section that is lost."""
    location = detail["loc"]
    if not _breaks(detail):
        for part in location[:-1]:
            data = data[part]
        data.pop(location[-1], None)
        return None
    if location[:1] == ("nodes",) and len(location) > 1:
        data["nodes"].pop(location[1], None)
        return None
    return location[0] if location else None
