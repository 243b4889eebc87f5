"""How Proxmox says no, in its own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class ApiError(Exception):
    """An answer other than 200; raised inside a task it becomes the task's exit status."""

    def __init__(self, status: int, message: str, errors: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = dict(errors or {})


class AuthenticationError(ApiError):
    def __init__(self, message: str) -> None:
        super().__init__(401, message)


class PermissionDeniedError(ApiError):
    def __init__(self, path: str, privileges: Sequence[str]) -> None:
        super().__init__(403, f"Permission check failed ({path}, {'|'.join(privileges)})")


class ParameterError(ApiError):
    def __init__(self, **errors: str) -> None:
        super().__init__(400, "Parameter verification failed.", errors)

    @classmethod
    def named(cls, errors: Mapping[str, str]) -> ParameterError:
        """For parameters whose names are no Python identifiers."""
        return cls(**errors)


class OperationError(ApiError):
    """What a Perl `die` becomes: status 500 with the text as the reason."""

    def __init__(self, message: str) -> None:
        super().__init__(500, message)


class NoConfigurationError(OperationError):
    def __init__(self, node: str, vmid: int) -> None:
        super().__init__(f"Configuration file 'nodes/{node}/qemu-server/{vmid}.conf' does not exist")
