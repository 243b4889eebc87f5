"""A Git host: Git's own HTTP back end over bare repositories, behind a token."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from lab.faults import Faults

REALM = {"WWW-Authenticate": 'Basic realm="git"'}
SERVICES = ("/info/refs", "/git-upload-pack", "/git-receive-pack", "/HEAD")
CHUNK = 1 << 16


class GitHost:
    """Everything needs the token, as on a host with private repositories; the user name does not matter."""

    def __init__(self, root: Path, token: str, faults: Faults) -> None:
        self._root = root
        self._token = token
        self._faults = faults

    def create(self, path: str, branch: str) -> Path:
        """The bare repository at this path, made when there is none."""
        repository = self._root / path.strip("/")
        if not repository.exists():
            repository.mkdir(parents=True)
            arguments = ["git", "init", "--quiet", "--bare", f"--initial-branch={branch}", str(repository)]
            subprocess.run(arguments, check=True)
        return repository

    def routes(self) -> list[Route]:
        return [Route("/{path:path}", self._serve, methods=["GET", "POST"])]

    def down(self) -> Response | None:
        if self._faults.active("git-unreachable"):
            return PlainTextResponse("the Git host cannot be reached", status_code=503)
        return None

    async def _serve(self, request: Request) -> Response:
        if not self._authorised(request):
            return PlainTextResponse("the user name or the token is not accepted", status_code=401, headers=REALM)
        path = f"/{request.path_params['path']}"
        service = next((service for service in SERVICES if path.endswith(service)), None)
        if service is None or not self._is_repository(path.removesuffix(service)):
            return PlainTextResponse(f"no repository at {path}", status_code=404)
        return await self._backend(request, path)

    def _is_repository(self, path: str) -> bool:
        repository = (self._root / path.strip("/")).resolve()
        return repository.is_relative_to(self._root.resolve()) and (repository / "HEAD").is_file()

    def _authorised(self, request: Request) -> bool:
        if self._faults.active("git-bad-credentials"):
            return False
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            password = base64.b64decode(credentials, validate=True).partition(b":")[2]
        except binascii.Error:
            return False
        return hmac.compare_digest(password, self._token.encode())

    async def _backend(self, request: Request, path: str) -> Response:
        process = await asyncio.create_subprocess_exec(
            "git",
            "http-backend",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=self._environment(request, path),
        )
        feeding = asyncio.create_task(_feed(request, process))
        status, headers = await _read_headers(process)
        body = _drain(process, feeding)
        return StreamingResponse(body, status_code=status, headers=headers)

    def _environment(self, request: Request, path: str) -> dict[str, str]:
        headers = request.headers
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "GIT_PROJECT_ROOT": str(self._root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
            "REMOTE_USER": "lab",
            "REMOTE_ADDR": request.client.host if request.client else "",
            "REQUEST_METHOD": request.method,
            "PATH_INFO": path,
            "QUERY_STRING": request.url.query,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
            **({"CONTENT_LENGTH": length} if (length := headers.get("content-length")) else {}),
        }


async def _feed(request: Request, process: asyncio.subprocess.Process) -> None:
    assert process.stdin  # noqa: S101 -- a pipe was asked for
    try:
        async for chunk in request.stream():
            process.stdin.write(chunk)
            await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return


async def _read_headers(process: asyncio.subprocess.Process) -> tuple[int, dict[str, str]]:
    assert process.stdout  # noqa: S101 -- a pipe was asked for
    headers: dict[str, str] = {}
    while line := (await process.stdout.readline()).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name] = value.strip()
    status = headers.pop("Status", "200" if headers else "500")
    return int(status.split()[0]), headers


async def _drain(process: asyncio.subprocess.Process, feeding: asyncio.Task[None]) -> AsyncIterator[bytes]:
    assert process.stdout  # noqa: S101 -- a pipe was asked for
    try:
        while chunk := await process.stdout.read(CHUNK):
            yield chunk
    finally:
        feeding.cancel()
        if process.returncode is None and not process.stdout.at_eof():
            process.kill()
        await process.wait()
