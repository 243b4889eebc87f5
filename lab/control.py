"""The control socket of a running lab: what it is doing, and which faults strike."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from lab import web
from lab.fault_plan import FaultPlan, FaultRequest, UnknownFaultError
from lab.run_directory import LabError, RunDirectory
from lab.sandbox import short_name

Status = Callable[[], dict[str, Any]]


def application(plan: FaultPlan, status: Status) -> Starlette:
    async def show_status(_: Request) -> JSONResponse:
        return JSONResponse(status())

    async def list_faults(_: Request) -> JSONResponse:
        return JSONResponse(plan.listing())

    async def add_fault(request: Request) -> JSONResponse:
        try:
            plan.add(FaultRequest.parse(await request.json()))
        except UnknownFaultError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return JSONResponse(plan.listing())

    async def remove_fault(request: Request) -> JSONResponse:
        return JSONResponse({"removed": plan.remove(request.path_params["name"], request.query_params.get("node"))})

    return Starlette(
        routes=[
            Route("/status", show_status),
            Route("/faults", list_faults, methods=["GET"]),
            Route("/faults", add_fault, methods=["POST"]),
            Route("/faults/{name}", remove_fault, methods=["DELETE"]),
        ]
    )


async def serve(app: Starlette, run: RunDirectory) -> None:
    """Answer until cancelled; the run directory keeps others away from the socket."""
    run.control.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        with short_name(run.control) as name:
            listener.bind(name)
        listener.listen()
        await web.serve(app, [listener])


class ControlClient:
    """The launcher's side."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def status(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._call("GET", "/status").json()
        return answer

    def faults(self) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self._call("GET", "/faults").json()
        return answer

    def add_fault(self, request: FaultRequest) -> None:
        self._call("POST", "/faults", json=request.document())

    def remove_fault(self, name: str, node: str | None) -> int:
        return int(self._call("DELETE", f"/faults/{name}", params={"node": node} if node else {}).json()["removed"])

    def _call(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        with short_name(self._run.control) as name:
            transport = httpx.HTTPTransport(uds=name)
            try:
                with httpx.Client(transport=transport, base_url="http://lab", timeout=10) as client:
                    response = client.request(method, path, **arguments)
            except httpx.TransportError:
                raise LabError(f"the lab {self._run.name!r} is not running") from None
        if response.status_code == 400:
            raise LabError(str(response.json()["error"]))
        response.raise_for_status()
        return response
