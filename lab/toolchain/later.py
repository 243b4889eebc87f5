"""The programs that only the later stages of a rehearsal need."""

from lab.toolchain.recipe import Recipe

LATER: tuple[Recipe, ...] = ()
