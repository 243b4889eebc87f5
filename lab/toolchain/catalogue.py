"""All programs of the lab, in the order that lets each find most of its packages compiled already."""

from lab.toolchain.cluster_recipes import CONTROL_PLANE, OPERATORS
from lab.toolchain.pulumi_recipes import KUBERNETES_PROVIDER, PLUGINS, PULUMI_RECIPE
from lab.toolchain.recipe import Recipe

RECIPES: tuple[Recipe, ...] = (PULUMI_RECIPE, PLUGINS, CONTROL_PLANE, KUBERNETES_PROVIDER, *OPERATORS)
