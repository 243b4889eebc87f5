"""ApplyConfiguration: checked by Talos's own code, refused or taken in one of its modes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from lab.talos.applied_config import AppliedConfig
from talos_api import machine_pb2 as pb

if TYPE_CHECKING:
    from lab.talos.machine import Machine

Mode = pb.ApplyConfigurationRequest.Mode
TRY_SECONDS = 60.0
NEEDS_REBOOT = ("type", "disks", "systemDiskEncryption")
"""Parts of `machine` that a running machine cannot change."""
WITH_REBOOT = "Applied configuration with a reboot"
WITHOUT_REBOOT = "Applied configuration without a reboot"
STAGED = "Staged configuration to be applied after the next reboot"


async def apply(machine: Machine, request: pb.ApplyConfigurationRequest) -> pb.ApplyConfiguration:
    config = await _checked(machine, request.data)
    if machine.in_maintenance:
        return await _apply_first(machine, config, request)
    return _apply_again(machine, config, request)


async def _checked(machine: Machine, data: bytes) -> AppliedConfig:
    problem = await machine.around.check_config(data)
    if problem is not None:
        raise GRPCError(Status.INVALID_ARGUMENT, problem)
    config = AppliedConfig(data)
    if not config.main:
        raise GRPCError(Status.INVALID_ARGUMENT, "the applied machine configuration doesn't contain v1alpha1 config")
    return config


async def _apply_first(
    machine: Machine, config: AppliedConfig, request: pb.ApplyConfigurationRequest
) -> pb.ApplyConfiguration:
    if request.dry_run:
        return _dry_run(Mode.NO_REBOOT, WITHOUT_REBOOT)
    await machine.around.faults.cleared("apply-hangs", machine.name_with(config))
    machine.life.accept(config)
    return pb.ApplyConfiguration(mode=Mode.NO_REBOOT, mode_details=WITHOUT_REBOOT)


def _apply_again(
    machine: Machine, config: AppliedConfig, request: pb.ApplyConfigurationRequest
) -> pb.ApplyConfiguration:
    mode = _resolved(machine, config, request.mode)
    details = {Mode.REBOOT: WITH_REBOOT, Mode.STAGED: STAGED}.get(mode, WITHOUT_REBOOT)
    if request.dry_run:
        return _dry_run(mode, details)
    if mode == Mode.TRY:
        machine.around.spawn(_try(machine, config, request))
    elif mode == Mode.NO_REBOOT:
        machine.disk.config = config
        machine.around.spawn(machine.life.reconfigure(config))
    else:
        machine.disk.staged = config
    if mode == Mode.REBOOT:
        machine.around.spawn(machine.restart("rebooting"))
    return pb.ApplyConfiguration(mode=mode, mode_details=details)


def _resolved(machine: Machine, config: AppliedConfig, mode: Mode.ValueType) -> Mode.ValueType:
    """What automatic means here; a mode without reboot is refused where one is needed."""
    current = machine.config.machine if machine.config else {}
    changed = [part for part in NEEDS_REBOOT if current.get(part) != config.machine.get(part)]
    if mode == Mode.AUTO:
        return Mode.REBOOT if changed else Mode.NO_REBOOT
    if mode in (Mode.NO_REBOOT, Mode.TRY) and changed:
        raise GRPCError(
            Status.INVALID_ARGUMENT, f"this config change can't be applied in immediate mode: machine.{changed[0]}"
        )
    return mode


async def _try(machine: Machine, config: AppliedConfig, request: pb.ApplyConfigurationRequest) -> None:
    before = machine.config
    await machine.life.reconfigure(config)
    asked = request.try_mode_timeout
    await asyncio.sleep(asked.seconds + asked.nanos / 1e9 if request.HasField("try_mode_timeout") else TRY_SECONDS)
    if machine.config is config and before is not None:
        await machine.life.reconfigure(before)


def _dry_run(mode: Mode.ValueType, details: str) -> pb.ApplyConfiguration:
    return pb.ApplyConfiguration(mode=mode, mode_details=f"Dry run summary:\n{details} (skipped in dry-run).\n")
