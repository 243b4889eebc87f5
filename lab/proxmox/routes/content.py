"""What lies on a storage, and downloads to it."""

from __future__ import annotations

import re
from typing import Any

from lab.boot import Image
from lab.proxmox.call import Call
from lab.proxmox.datastore import Datastore, Volume
from lab.proxmox.errors import ApiError, OperationError, ParameterError
from lab.proxmox.remote_file import RemoteFile
from lab.proxmox.route import Route, both, either, needs, takes
from lab.proxmox.tasks import Task
from lab.proxmox.volume_access import check_readable

_EXTENSIONS = {
    "iso": re.compile(r"[^/]+\.(?:iso|img)", re.IGNORECASE),
    "vztmpl": re.compile(r"[^/]+\.tar(?:\.(?:gz|xz|zst|bz2))?", re.IGNORECASE),
    "import": re.compile(r"[\w.+=-]+\.(?:ova|qcow2|raw|vmdk)"),
}


def _entry(datastore: Datastore, volume: Volume) -> dict[str, Any]:
    owner = {"vmid": volume.vmid} if volume.vmid is not None else {}
    return {
        "volid": datastore.volid(volume),
        "content": volume.content,
        "format": volume.format,
        "size": volume.size,
        "ctime": volume.created,
        **owner,
    }


async def index(call: Call) -> list[dict[str, Any]]:
    datastore = call.host.datastore(call.params["storage"])
    wanted, vmid = call.params.get("content"), call.params.get("vmid")
    return [
        _entry(datastore, volume)
        for _, volume in sorted(datastore.volumes.items())
        if wanted in {None, volume.content} and vmid in {None, str(volume.vmid)}
    ]


def _volume(call: Call) -> tuple[Datastore, Volume]:
    datastore = call.host.datastore(call.params["storage"])
    return datastore, datastore.find(call.params["volume"])


async def read(call: Call) -> dict[str, Any]:
    datastore, volume = _volume(call)
    check_readable(call, datastore, volume)
    path = f"{datastore.spec.path or '/dev/pve'}/{volume.name}"
    return {"path": path, "format": volume.format, "size": volume.size, "used": volume.used}


async def delete(call: Call) -> str:
    datastore, volume = _volume(call)
    call.check(f"/storage/{datastore.name}", "Datastore.Allocate")

    async def work(task: Task) -> None:
        await datastore.remove(volume)
        task.print(f"Removed volume '{datastore.volid(volume)}'")

    owner = "" if volume.vmid is None else f"{volume.vmid}@"
    return await call.start("imgdel", f"{owner}{datastore.name}", work)


async def metadata(call: Call) -> dict[str, Any]:
    found = await _look_up(call, "invalid server response: '404 Not Found'")
    return {"filename": found.filename, "mimetype": found.mimetype, "size": found.size}


async def _look_up(call: Call, otherwise: str) -> RemoteFile:
    try:
        return await call.hypervisor.fetch(call.params["url"])
    except LookupError:
        raise OperationError(otherwise) from None


async def download(call: Call) -> str:
    if "checksum" in call.params:
        raise ApiError(501, "checksums are not emulated: the lab has no bytes to hash")
    datastore = call.host.datastore(call.params["storage"])
    content, filename = call.params["content"], call.params["filename"]
    _check_target(datastore, content, filename)

    async def work(task: Task) -> None:
        task.print(f"downloading {call.params['url']} to {datastore.spec.path}/{content}/{filename}")
        if call.params.get("compression") and content != "iso":
            raise OperationError(f"decompression not supported for {content}")
        if f"{content}/{filename}" in datastore.volumes:
            raise OperationError(f"refusing to override existing file '{datastore.spec.path}/{content}/{filename}'")
        await _transfer(call, datastore, f"{content}/{filename}")
        task.print("download finished")

    return await call.start("download", filename, work)


def _check_target(datastore: Datastore, content: str, filename: str) -> None:
    if datastore.spec.path is None:
        raise OperationError(f"can't upload to storage type '{datastore.spec.kind}', not a file based storage!")
    if content not in _EXTENSIONS:
        raise ParameterError(content=f"upload content-type '{content}' is not allowed")
    datastore.require_content(content)
    if not _EXTENSIONS[content].fullmatch(filename):
        wrong = "invalid filename or wrong extension" if content == "import" else "wrong file extension"
        raise ParameterError(filename=wrong)


async def _transfer(call: Call, datastore: Datastore, name: str) -> None:
    remote = await _look_up(call, "download failed: exit code 8")
    await call.hypervisor.pace.wait("image download")
    if call.hypervisor.faults.active("image-download-fails", call.node):
        raise OperationError("download failed: exit code 4")
    whole = call.hypervisor.faults.active("image-truncated", call.node) is None
    await datastore.add(_downloaded(name, remote, whole=whole))


def _downloaded(name: str, remote: RemoteFile, *, whole: bool) -> Volume:
    content, _, filename = name.partition("/")
    size = remote.size if whole else remote.size // 2
    form = filename.rpartition(".")[2]
    return Volume(
        name=name,
        content=content,
        format=form,
        size=size,
        used=size,
        image=_image(remote, form, size, whole=whole) if content == "import" else None,
    )


def _image(remote: RemoteFile, form: str, size: int, *, whole: bool) -> Image | None:
    """Only bytes of the format the name promises pass; a raw file may be anything, and boots nothing then."""
    if remote.format == form:
        return Image(url=remote.url, filename=remote.filename, size=size, whole=whole)
    if form == "raw":
        return None
    raise OperationError(f"qemu-img: Could not open '{remote.filename}': Image is not in {form} format")


_MAY_SEE = needs("/storage/{storage}", "Datastore.Audit", "Datastore.AllocateSpace", any_of=True)
_MAY_REACH_OUT = either(needs("/", "Sys.Audit", "Sys.Modify"), needs("/nodes/{node}", "Sys.AccessNetwork"))
_CONTENT = "/nodes/{node}/storage/{storage}/content"

ROUTES = (
    Route(method="GET", path=_CONTENT, handler=index, permission=_MAY_SEE, parameters=takes("content vmid:integer")),
    Route(method="GET", path=f"{_CONTENT}/{{volume}}", handler=read),
    Route(method="DELETE", path=f"{_CONTENT}/{{volume}}", handler=delete, parameters=takes("delay:integer")),
    Route(
        method="GET",
        path="/nodes/{node}/query-url-metadata",
        handler=metadata,
        permission=_MAY_REACH_OUT,
        parameters=takes("url! verify-certificates:boolean"),
    ),
    Route(
        method="POST",
        path="/nodes/{node}/storage/{storage}/download-url",
        handler=download,
        permission=both(needs("/storage/{storage}", "Datastore.AllocateTemplate"), _MAY_REACH_OUT),
        parameters=takes("content! filename! url! checksum checksum-algorithm compression verify-certificates:boolean"),
    ),
)
