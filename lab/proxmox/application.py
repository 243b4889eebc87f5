"""The API as an ASGI application: authentication, privileges, parameters, errors, the request log."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from lab.proxmox.call import Call
from lab.proxmox.errors import ApiError, OperationError
from lab.proxmox.hypervisor import Hypervisor
from lab.proxmox.route import Route
from lab.proxmox.routes.table import ROUTES
from lab.proxmox.server import with_reason
from lab.request_log import RequestLog

PREFIX = "/api2/json"
SERVICE = "proxmox"
Endpoint = Callable[[Request], Awaitable[Response]]


def application(hypervisor: Hypervisor, log: RequestLog) -> Starlette:
    """Every route of the table; whatever else is asked for is answered with 501 and logged."""
    routes = [
        StarletteRoute(_starlette_path(route), _endpoint(route, hypervisor, log), methods=[route.method])
        for route in ROUTES
    ]
    app = Starlette(routes=routes, exception_handlers={404: _unknown(log), 405: _unknown(log)})
    app.router.redirect_slashes = False
    app.add_middleware(_TrailingSlash)
    return app


class _TrailingSlash:
    """Proxmox takes `…/qemu/100/?purge=1` for `…/qemu/100?purge=1`."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and len(scope["path"]) > 1:
            scope["path"] = scope["path"].rstrip("/")
        await self.app(scope, receive, send)


def _starlette_path(route: Route) -> str:
    """A volume id holds a slash and takes the rest of the path."""
    return PREFIX + route.path.replace("{volume}", "{volume:path}")


def _unknown(log: RequestLog) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, _: Exception) -> Response:
        path = request.url.path.removeprefix(PREFIX)
        error = ApiError(501, f"Method '{request.method} {path}' not implemented")
        log.record(SERVICE, request.method, path, 501, write=request.method != "GET", message=error.message)
        return _refusal(error)

    return answer


def _endpoint(route: Route, hypervisor: Hypervisor, log: RequestLog) -> Endpoint:
    async def answer(request: Request) -> Response:
        path = request.url.path.removeprefix(PREFIX)
        more: dict[str, Any] = {}
        try:
            data = await _serve(route, hypervisor, request, more)
            response: Response = _json(200, {"data": data})
        except ApiError as error:
            more["message"] = error.message
            response = _refusal(error)
        log.record(SERVICE, request.method, path, response.status_code, write=route.writes, **more)
        return response

    return answer


async def _serve(route: Route, hypervisor: Hypervisor, request: Request, more: dict[str, Any]) -> Any:
    names = {name: str(value) for name, value in request.path_params.items()}
    _strike(hypervisor, names.get("node", ""))
    subject = hypervisor.access.authenticate(request.headers.get("authorization"))
    more["user"] = subject
    given = await _parameters(request)
    call = Call(hypervisor=hypervisor, subject=subject, params={**given, **names})
    _permit(route, call, given, names)
    if "node" in names:
        hypervisor.host(names["node"])
    route.verify(given, names)
    return await route.handler(call)


def _strike(hypervisor: Hypervisor, node: str) -> None:
    """The fault proxmox-5xx: the host's cluster file system does not answer."""
    fault = hypervisor.faults.active("proxmox-5xx", node)
    if fault:
        raise ApiError(int(fault.options.get("status", 500)), "ipcc_send_rec[1] failed: Connection refused")


def _permit(route: Route, call: Call, given: Mapping[str, str], names: Mapping[str, str]) -> None:
    try:
        route.permission(call)
    except KeyError:
        # The check's path names a parameter that was not given: verification says which.
        route.verify(given, names)
        raise


async def _parameters(request: Request) -> dict[str, str]:
    given = dict(parse_qsl(request.url.query, keep_blank_values=True))
    body = await request.body()
    if request.headers.get("content-type", "").startswith("application/json") and body:
        given |= {name: _as_text(value) for name, value in json.loads(body).items()}
    else:
        given |= dict(parse_qsl(_decode(body), keep_blank_values=True))
    given.pop("_dc", None)
    return given


def _decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise OperationError("unable to decode request body") from None


def _as_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _json(status: int, content: dict[str, Any]) -> Response:
    return Response(json.dumps(content), status, media_type="application/json;charset=UTF-8")


def _refusal(error: ApiError) -> Response:
    """The text stands in the status line; the body repeats it as JSON, except for 401, which has none."""
    if error.status == 401:
        return with_reason(Response(status_code=401), error.message)
    content: dict[str, Any] = {"data": None, "message": f"{error.message}\n"}
    return with_reason(_json(error.status, content | ({"errors": error.errors} if error.errors else {})), error.message)
