"""How a program is made from Go modules: data only."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Patch:
    """One text in one file of a copied module that has to be another; it must occur exactly once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A module that is copied into the build directory, because its own sources have to change."""

    module: str
    version: str
    sum: str
    target: str
    patches: tuple[Patch, ...] = ()
    added: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Build:
    """One `go build` in a copy of a wrapper module."""

    output: str
    package: str = "."
    wrapper: str | None = None
    copies: tuple[Copy, ...] = ()
    sums: str = ""
    generate: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModuleFile:
    """A file of a module that goes beside the binaries, with the run bit on."""

    module: str
    version: str
    sum: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program by the name it is called; what cannot be asked for its version is not taken from PATH."""

    name: str
    version: str
    ask: tuple[str, ...] = ("--version",)
    origin: str = "built"
    plugin: str | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One directory of the cache: its builds, what is linked to their outputs, and what is run afterwards.

    Companions lie beside the programs and are found by them.
    """

    name: str
    version: str
    programs: tuple[Program, ...]
    builds: tuple[Build, ...]
    companions: tuple[Program, ...] = ()
    files: tuple[ModuleFile, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    afterwards: tuple[tuple[str, ...], ...] = ()
    first: bool = False
    space: float = 4.0
