"""The internet as the program and the cluster see it: charts, artifacts, release files, images and Git."""

from lab.internet.internet import Internet
from lab.internet.remote_file import RemoteFile

__all__ = ["Internet", "RemoteFile"]
