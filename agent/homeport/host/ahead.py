"""Work that is begun before its result is needed, so that a boot does not wait for one thing after another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Ahead(Generic[Result]):
    """`work` on a thread of its own; `result()` waits for it, and raises what it raised."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._results: list[Result] = []
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # raised again in result(), where somebody can act on it
            self._failure = error

    def result(self) -> Result:
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._results[0]
