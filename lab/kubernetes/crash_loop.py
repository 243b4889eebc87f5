"""How often a container has failed and how long the kubelet leaves it alone now."""

from __future__ import annotations

LONGEST_SECONDS = 300.0
QUICK_SECONDS = 0.5
KUBELET_SECONDS = 10.0


class CrashLoop:
    def __init__(self, scale: float) -> None:
        self.restarts = 0
        self.message = ""
        self.exit_code = 1
        self._first = max(KUBELET_SECONDS * scale, QUICK_SECONDS)
        self._until = 0.0

    def failed(self, message: str, now: float, *, exit_code: int = 1) -> None:
        self.restarts += 1
        self.message = message
        self.exit_code = exit_code
        delay: float = self._first * 2.0 ** min(self.restarts - 1, 16)
        self._until = now + min(delay, LONGEST_SECONDS)

    def resting(self, now: float) -> float:
        """Seconds until the next attempt; zero when it may be made."""
        return max(0.0, self._until - now)
