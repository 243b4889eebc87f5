"""GP: everything the machines need of Proxmox is there, looked at before any of them is made."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import field
from typing import Any

from pydantic.dataclasses import dataclass

from gates import proxmox_findings as say
from gates.proxmox import DeniedError, Proxmox
from gates.session import Session
from gates.target import STRICT, parse
from gates.trouble import TroubleError
from gates.verdict import Finding, Verdict, conclude, unique


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Storage:
    name: str
    content: str


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Vm:
    vmid: int
    name: str
    host: str


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PreflightTarget:
    endpoint: str
    token: str = field(repr=False)
    hosts: list[str]
    storages: list[Storage]
    bridges: list[str]
    vms: list[Vm]
    images: list[str]
    minimum_version: str
    privileges: dict[str, list[str]]
    insecure: bool = False
    ca: str | None = None

    @property
    def identity(self) -> str:
        """The token's name, which is no secret."""
        return self.token.partition("=")[0]


Found = tuple[list[Finding], list[Finding]]
"""What time may mend, and what it cannot."""


class PreflightSession(Session):
    longest_pause = 1.0

    def __init__(self, target: Mapping[str, Any]) -> None:
        self._target = parse(PreflightTarget, target)
        self._online: list[str] = []
        self._api = Proxmox(
            self._target.endpoint, self._target.token, insecure=self._target.insecure, ca=self._target.ca
        )

    async def look(self) -> Verdict:
        try:
            version = str((await self._api.get("/version"))["version"])
        except TroubleError as trouble:
            found = say.silent(self._target.endpoint, self._target.identity, trouble)
            return conclude([], [], fatal=[found]) if trouble.hopeless else conclude([found], [])
        hosts = await self._settle(self._hosts())
        checks = [self._privileges(), self._vms(), *(check for host in self._online for check in self._of_host(host))]
        answers = [hosts, *await asyncio.gather(*(self._settle(check) for check in checks))]
        fatal = say.too_old(version, self._target.minimum_version) + [each for _, hard in answers for each in hard]
        soft = [each for some, _ in answers for each in some]
        return conclude(unique(soft), self._evidence(version), fatal=unique(fatal))

    async def close(self) -> None:
        await self._api.close()

    async def _settle(self, check: Coroutine[Any, Any, Found]) -> Found:
        """Trouble with one question must not hide the answers to the others."""
        try:
            return await check
        except DeniedError as denied:
            return [], [Finding(observed=denied.observed, cause=denied.cause)]
        except TroubleError as trouble:
            return [Finding(observed=trouble.observed, cause=trouble.cause)], []

    async def _privileges(self) -> Found:
        missing = {}
        for path, wanted in self._target.privileges.items():
            held = (await self._api.get("/access/permissions", path=path)).get(path) or {}
            lacking = [each for each in wanted if not held.get(each)]
            missing.update({path: lacking} if lacking else {})
        return [], [say.lacking(self._target.identity, path, lacking) for path, lacking in missing.items()]

    async def _hosts(self) -> Found:
        states = {each["node"]: each.get("status") for each in await self._api.get("/nodes")}
        unknown = [say.no_host(host, sorted(states)) for host in self._target.hosts if host not in states]
        self._online = [host for host in self._target.hosts if states.get(host) == "online"]
        away = [host for host in self._target.hosts if host in states and states[host] != "online"]
        return [say.offline(host, str(states[host])) for host in away], unknown

    async def _vms(self) -> Found:
        live = {int(each["vmid"]): each for each in await self._api.get("/cluster/resources", type="vm")}
        taken = [(vm, live[vm.vmid]) for vm in self._target.vms if vm.vmid in live]
        foreign = [(vm, other) for vm, other in taken if (other.get("name"), other.get("node")) != (vm.name, vm.host)]
        return [], [say.taken(vm.vmid, vm.name, vm.host, other) for vm, other in foreign]

    def _of_host(self, host: str) -> list[Coroutine[Any, Any, Found]]:
        return [self._storages(host), self._bridges(host), *(self._image(host, url) for url in self._target.images)]

    async def _storages(self, host: str) -> Found:
        live = {each["storage"]: each for each in await self._api.get(f"/nodes/{host}/storage")}
        known = [(wanted, live[wanted.name]) for wanted in self._target.storages if wanted.name in live]
        hard = [say.no_storage(host, wanted.name) for wanted in self._target.storages if wanted.name not in live]
        hard += [
            say.wrong_content(host, wanted.name, wanted.content, item["content"])
            for wanted, item in known
            if wanted.content not in item["content"].split(",")
        ]
        return [say.inactive(host, wanted.name) for wanted, item in known if not item.get("active")], hard

    async def _bridges(self, host: str) -> Found:
        live = {each["iface"] for each in await self._api.get(f"/nodes/{host}/network") if "ridge" in each["type"]}
        return [], [say.no_bridge(host, bridge, sorted(live)) for bridge in self._target.bridges if bridge not in live]

    async def _image(self, host: str, url: str) -> Found:
        """Asked of the host, because the host is what downloads."""
        try:
            await self._api.get(f"/nodes/{host}/query-url-metadata", url=url)
        except DeniedError:
            raise
        except TroubleError as trouble:
            return [say.no_image(host, url, trouble.observed)], []
        return [], []

    def _evidence(self, version: str) -> list[str]:
        target = self._target
        return [
            f"Proxmox VE {version} at {target.endpoint}",
            f"hosts online: {', '.join(target.hosts)}",
            f"{target.identity} holds every privilege on {', '.join(sorted(target.privileges))}",
            f"storages: {', '.join(f'{each.name} ({each.content})' for each in target.storages)}",
            f"bridges: {', '.join(target.bridges)}; {len(target.vms)} VM ids free or ours",
        ]
