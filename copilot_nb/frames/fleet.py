"""Many logs at once: in memory with pandas, beyond memory with DuckDB, on a cluster with Dask."""

from __future__ import annotations

import glob
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from copilot_nb.errors import StoreError, UsageError
from copilot_nb.frames import schema
from copilot_nb.frames.homes import is_log, logs_of
from copilot_nb.frames.log import Log, NamedTables, read_log
from copilot_nb.frames.reading import file_system
from copilot_nb.store import EVENTS

if TYPE_CHECKING:
    import pandas as pd

    from copilot_nb.frames.duck import DuckFleet

Engine = Literal["pandas", "duckdb", "dask"]


def read_logs(
    where: str | Path | Iterable[str | Path] | None = None, engine: Engine = "pandas"
) -> Fleet | DuckFleet | DaskFleet:
    """Open many logs for their tables.

    Parameters
    ----------
    where
        A home, a folder with logs, a pattern such as ``logs/*.jsonl``, a list of paths, or URLs that fsspec
        knows; default: the home ``$COPILOT_HOME`` or ``~/.copilot``.
    engine
        ``pandas`` reads all into memory. ``duckdb`` answers SQL (``logs.sql("… from events")``) in bounded
        memory. ``dask`` gives Dask DataFrames with one partition per session.

    Raises
    ------
    StoreError
        There is no log at all.
    """
    paths = find_logs(where)
    if engine == "pandas":
        return Fleet(paths)
    if engine == "duckdb":
        from copilot_nb.frames.duck import DuckFleet

        return DuckFleet(paths)
    if engine == "dask":
        return DaskFleet(paths)
    raise UsageError(f"There is no engine {engine!r}: use 'pandas', 'duckdb' or 'dask'.")


def find_logs(where: str | Path | Iterable[str | Path] | None) -> list[str]:
    """The logs of a home, folder, pattern or list, by name; raises `StoreError` when there are none."""
    if where is None:
        found = [str(path) for path in logs_of()]
    elif isinstance(where, str | Path):
        found = _find(str(where))
    else:
        found = [path for part in where for path in _find(str(part))]
    if not found:
        raise StoreError(f"There are no session logs at {'the default home' if where is None else where}.")
    return found


def _find(where: str) -> list[str]:
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", where):
        return _find_remote(where)
    path = Path(where).expanduser()
    if os.path.isdir(path):  # noqa: PTH112  # never raises: opening a log will say what is wrong
        if is_log(path / EVENTS):
            return [str(path / EVENTS)]
        return [str(log) for log in logs_of(path)] or sorted(
            str(log) for pattern in _IN_FOLDER for log in path.glob(pattern) if is_log(log)
        )
    if glob.has_magic(where) and not os.path.exists(path):  # noqa: PTH110  # a name may hold brackets
        return sorted(name for name in glob.glob(str(path), recursive=True) if is_log(Path(name)))  # noqa: PTH207
    return [str(path)]


def _find_remote(where: str) -> list[str]:
    system, path = file_system(where)
    if glob.has_magic(path):
        tries = [[path]]
    elif path.endswith(_ENDS) or not system.isdir(path):
        return [where]
    else:
        folder = path.rstrip("/")
        tries = [[f"{folder}/{pattern}" for pattern in patterns] for patterns in (_IN_HOME, _IN_FOLDER)]
    for patterns in tries:
        found = {system.unstrip_protocol(log) for pattern in patterns for log in system.glob(pattern)}
        if found:
            return sorted(found)
    return []


_ENDS: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst")
_IN_HOME: Final = [f"session-state/*/{EVENTS}"]
_IN_FOLDER: Final = [f"{place}{end}" for place in (f"*/{Path(EVENTS).stem}", "*") for end in _ENDS]


def session_name(path: str) -> str:
    """The session a log belongs to: its folder's name for ``events.jsonl``, else the file's name."""
    name = Path(path).name.removesuffix(".gz").removesuffix(".zst")
    return Path(path).parent.name if name == EVENTS else name.removesuffix(".jsonl")


class Logs:
    """What the engines share: the files, and what is wrong in them."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.paths)} logs>"

    def log(self, session: str) -> Log:
        """The log of one session, for ``problems`` and ``event``."""
        for path in self.paths:
            if session in (session_name(path), path):
                return read_log(path)
        raise UsageError(f"There is no session {session!r} among these {len(self.paths)} logs.")

    def files(self) -> pd.DataFrame:
        """One row per file: session, path, events, and how many lines were bad or had to be mended."""
        return _file_table([count_lines(path) for path in self.paths])

    @property
    def problems(self) -> pd.DataFrame:
        """Every bad or mended line of every file."""
        return join("problems", {path: _quiet(path).problems for path in self.paths})

    def to_parquet(self, folder: str | Path, table: str = "events") -> Path:
        """Write a table of all sessions, one after another, see `copilot_nb.frames.parquet.write`."""
        from copilot_nb.frames.parquet import write

        return write(
            (join(table, {path: self._log(path).table(table)}) for path in self.paths), folder, table
        )

    def _log(self, path: str) -> Log:
        return _quiet(path)


def _quiet(path: str) -> Log:
    """A log whose odd lines are told otherwise."""
    log = read_log(path)
    log.warned = True
    return log


def count_lines(path: str) -> tuple[str, str, int, int, int]:
    """Session, path, events, bad lines, mended lines."""
    log = _quiet(path)
    events, problems = log.count(), log.problems
    mended = int(problems["kept"].sum())
    return session_name(path), path, events, len(problems) - mended, mended


def _file_table(rows: list[tuple[str, str, int, int, int]]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(rows, columns=["session", "path", "events", "bad", "mended"])
    numbers = dict.fromkeys(("events", "bad", "mended"), "Int64")
    return frame.astype(dict.fromkeys(("session", "path"), "string[pyarrow]") | numbers)


def join(table: str, frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Frames of one table below each other, with the session in front; the dtypes stay."""
    import pandas as pd

    parts = []
    kinds = [frame["type"].cat.categories for frame in frames.values()] if table == "events" else []
    every = list(dict.fromkeys(name for names in kinds for name in names))
    for path, frame in frames.items():
        part = frame.copy(deep=False)
        if table == "events":
            part["type"] = part["type"].cat.set_categories(every)
        names = pd.Series([session_name(path)] * len(part), dtype="string[pyarrow]", index=part.index)
        part.insert(0, "session", names)
        parts.append(part)
    return pd.concat(parts) if parts else with_session(table)


def with_session(table: str) -> pd.DataFrame:
    """The empty table with its session column."""
    import pandas as pd

    frame = schema.empty(table)
    frame.insert(0, "session", pd.Series([], dtype="string[pyarrow]"))
    return frame


class Fleet(Logs, NamedTables):
    """Many logs in memory: the tables of all, with a column ``session`` in front."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(paths)
        self._logs = {path: read_log(path) for path in paths}

    def table(self, name: str) -> pd.DataFrame:
        """A table of all sessions."""
        return join(name, {path: log.table(name) for path, log in self._logs.items()})

    @property
    def problems(self) -> pd.DataFrame:
        """Every bad or mended line of every file."""
        return join("problems", {path: log.problems for path, log in self._logs.items()})

    def _log(self, path: str) -> Log:
        return self._logs[path]


class DaskFleet(Logs, NamedTables):
    """Many logs as Dask DataFrames: one partition per session, read by the workers (use processes)."""

    def table(self, name: str) -> Any:
        """A Dask DataFrame of that table."""
        try:
            import dask.dataframe as dd
        except ImportError:
            raise UsageError("For the dask engine: pip install 'copilot-nb[fleet]'") from None
        if name not in schema.LOG_TABLES:
            raise UsageError(f"There is no table {name!r}; there are {', '.join(schema.LOG_TABLES)}.")
        return dd.from_map(  # type: ignore[no-untyped-call]
            _partition, self.paths, table=name, meta=with_session(name)
        )

    def files(self) -> pd.DataFrame:
        """One row per file, counted by the workers."""
        from dask.base import compute
        from dask.delayed import delayed

        rows = compute(*[delayed(count_lines)(path) for path in self.paths])  # type: ignore[no-untyped-call]
        return _file_table(list(rows))


def _partition(path: str, table: str) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the driver asks `files`; a worker's warning is read by nobody
        return join(table, {path: _quiet(path).table(table)})


def stream(path: str, events: int = 200_000) -> Iterator[pd.DataFrame]:
    """The event table of a log of any size, in pieces of about that many rows."""
    log = _quiet(path)
    yield from log.pieces(events)
