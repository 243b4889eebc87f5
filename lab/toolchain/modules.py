"""Modules whose files the lab reads (charts, CRDs), with the sums they must have."""

from collections.abc import Mapping

SUMS: Mapping[tuple[str, str], str] = {}
