"""Logs as DuckDB views, for more than memory holds and for questions in SQL.

DuckDB's reader is told not to skip anything: at the first line that it cannot read, or whose timestamp it
might read in a way of its own, it stops, naming the file. That file is then read by our own reader instead,
which keeps what can be kept and counts the rest. So good files are read at DuckDB's speed, and no line is
dropped in silence.
"""

from __future__ import annotations

import glob
import re
import shutil
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from copilot_nb.errors import UsageError
from copilot_nb.frames import schema
from copilot_nb.frames.fleet import Logs, _quiet, count_lines, join, session_name, stream
from copilot_nb.frames.log import NamedTables
from copilot_nb.frames.reading import source_of

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

_DATA: Final = (
    "STRUCT(turnId VARCHAR, interactionId VARCHAR, toolName VARCHAR, content VARCHAR, message VARCHAR, "
    "result STRUCT(content VARCHAR), usage STRUCT(inputTokens BIGINT, outputTokens BIGINT), "
    "error STRUCT(message VARCHAR), summary VARCHAR, inputTokens BIGINT, outputTokens BIGINT)"
)
_LINE: Final = (
    f"{{type: 'VARCHAR', data: '{_DATA}', id: 'VARCHAR', timestamp: 'VARCHAR', parentId: 'VARCHAR', "
    "agentId: 'VARCHAR', ephemeral: 'BOOLEAN'}"
)
_COLUMNS: Final = """
    {session} AS session,
    coalesce(
        CASE WHEN timestamp LIKE '____-__-__T__:__:__%Z' OR timestamp LIKE '____-__-__T__:__:__%+__:__'
        THEN TRY_CAST(timestamp AS TIMESTAMPTZ) END,
        error('{odd} ' || filename)::TIMESTAMPTZ
    ) AS time,
    type,
    CASE WHEN regexp_full_match(data.turnId, '[0-9]{{1,9}}') THEN data.turnId::BIGINT END AS turn,
    agentId AS agent_id,
    data.toolName AS tool,
    coalesce(data.content, data.result.content, data.error.message, data.message, data.summary) AS text,
    coalesce(data.inputTokens, data.usage.inputTokens) AS input_tokens,
    coalesce(data.outputTokens, data.usage.outputTokens) AS output_tokens,
    data.interactionId AS interaction_id,
    coalesce(ephemeral, false) AS ephemeral,
    id,
    parentId AS parent_id
"""
_ODD: Final = "a line without a type or with an odd timestamp in file"


class DuckFleet(Logs, NamedTables):
    """SQL over many logs.

    ``events`` is a view with the columns of ``events()`` and ``session`` in front. The other tables
    (``runs``, ``turns``, ``tools`` …) are made by our own reader, one session at a time, when a query first
    names them; there, spans of time are seconds.
    In ``events``, a value of another type than the reference's is read in DuckDB's way: a tool's name that is
    the number 5 is ``'5'`` here, and missing with the other engines.

    Attributes
    ----------
    connection
        The DuckDB connection, for what `sql` does not offer. There, a bad file is an error at its first bad
        line, until `sql` or `files` has met it.
    """

    def __init__(self, paths: list[str]) -> None:
        super().__init__(paths)
        try:
            import duckdb
        except ImportError:
            raise UsageError("For the duckdb engine: pip install 'copilot-nb[fleet]'") from None
        self._scratch = Path(tempfile.mkdtemp(prefix="copilot-nb-"))
        self._cleanup = weakref.finalize(self, shutil.rmtree, self._scratch, ignore_errors=True)
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        self._own: dict[str, str] = {}  # log -> Parquet file that our reader made of it
        self._counts: dict[str, tuple[str, str, int, int, int]] = {}
        self._made: set[str] = set()
        for path in paths:
            if "://" in path or glob.has_magic(path):  # DuckDB would take a name with brackets for a pattern
                self._take_over(path)
            else:
                source_of(path).open().close()  # say at once what is wrong with the path
        self._view()

    def close(self) -> None:
        """Let go of the connection and the scratch files."""
        self.connection.close()
        self._cleanup()

    def sql(self, query: str, parameters: list[Any] | None = None) -> pd.DataFrame:
        """The answer to a query over ``events`` and the other tables."""
        import duckdb

        self._make_tables(query)
        while True:
            try:
                return self.connection.execute(query, parameters).df()
            except (duckdb.InvalidInputException, duckdb.IOException) as error:
                if not self._isolate(str(error)):
                    raise

    def table(self, name: str) -> pd.DataFrame:
        """A table of all sessions, in memory, with the dtypes of `copilot_nb.frames.schema`."""
        import pandas as pd

        from copilot_nb.frames.parquet import dtypes_of

        if name not in schema.LOG_TABLES:
            raise UsageError(f"There is no table {name!r}; there are {', '.join(schema.LOG_TABLES)}.")
        frame = self.sql(f"SELECT * FROM {name}")
        for column in schema.TABLES[name]:
            if column.dtype == schema.SPAN:
                frame[column.name] = pd.to_timedelta(frame[column.name], unit="s").dt.round("us")
        return frame.astype(dtypes_of(frame, name))

    def files(self) -> pd.DataFrame:
        """One row per file: session, path, events, bad and mended lines. Reads everything once."""
        import duckdb

        from copilot_nb.frames.fleet import _file_table

        for path in self.paths:
            while path not in self._counts:
                try:
                    query = f"SELECT count(*), count(time) FROM ({_source([path])})"
                    rows = self.connection.execute(query).fetchall()
                    self._counts[path] = (session_name(path), path, rows[0][0], 0, 0)
                except (duckdb.InvalidInputException, duckdb.IOException) as error:
                    if not self._isolate(str(error)):
                        raise
        return _file_table([self._counts[path] for path in self.paths])

    def _isolate(self, message: str) -> bool:
        """Read the file that DuckDB stumbled over by our own reader; False when it is none of ours."""
        waiting = [path for path in self.paths if path not in self._own]
        named = [p for p in waiting if f'"{p}"' in message or f"{_ODD} {p}" in message or f": {p}" in message]
        if not named and message.startswith("IO Error"):  # a damaged .zst file is not named
            named = [path for path in waiting if path.endswith(".zst")]
        for path in named:
            self._take_over(path)
        self._view()
        return bool(named)

    def _take_over(self, path: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        target = str(self._scratch / f"{len(self._own)}.parquet")
        shape = pa.Table.from_pandas(
            _plain(join("events", {path: schema.empty("events")})), preserve_index=False
        )
        with pq.ParquetWriter(target, shape.schema) as writer:
            for piece in stream(path):
                frame = _plain(join("events", {path: piece}))
                writer.write_table(pa.Table.from_pandas(frame, schema=shape.schema, preserve_index=False))
        self._own[path] = target
        self._counts[path] = count_lines(path)
        _, _, _, bad, mended = self._counts[path]
        if bad or mended:
            warnings.warn(
                f"{path}: {bad} bad and {mended} mended lines; logs.problems names them.", stacklevel=4
            )

    def _view(self) -> None:
        good = [path for path in self.paths if path not in self._own]
        parts = [_source(good)] if good else []
        if self._own:
            parts.append(f"SELECT * FROM read_parquet({_list(list(self._own.values()))})")
        self.connection.execute(f"CREATE OR REPLACE VIEW events AS {' UNION ALL BY NAME '.join(parts)}")

    def _make_tables(self, query: str) -> None:
        """The tables that a query names and that are not there yet."""
        words = set(re.findall(r"\w+", query.lower()))
        for table in schema.LOG_TABLES:
            if table == "events" or table not in words or table in self._made:
                continue
            for number, path in enumerate(self.paths):
                frame = _plain(join(table, {path: _quiet(path).table(table)}))  # noqa: F841  # named in the SQL below
                verb = f"CREATE TABLE {table} AS" if number == 0 else f"INSERT INTO {table}"
                self.connection.execute(f"{verb} SELECT * FROM frame")
            self._made.add(table)


def _source(paths: list[str]) -> str:
    name = "parse_filename(filename)"
    bare = f"regexp_replace({name}, '\\.(gz|zst)$', '')"
    session = (
        f"CASE WHEN {bare} = 'events.jsonl' THEN parse_path(filename)[-2] "
        f"ELSE regexp_replace({bare}, '\\.jsonl$', '') END"
    )
    return (
        f"SELECT {_COLUMNS.format(session=session, odd=_ODD)} "
        f"FROM read_json({_list(paths)}, format = 'newline_delimited', columns = {_LINE}, filename = true) "
        f"WHERE CASE WHEN type IS NULL THEN error('{_ODD} ' || filename)::BOOLEAN ELSE true END"
    )


def _list(paths: list[str]) -> str:
    quoted = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    return f"[{quoted}]"


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """For SQL: categories as text (DuckDB would make an enum of each session's), spans as seconds."""
    kinds = {column: str(frame[column].dtype) for column in frame.columns}
    frame = frame.astype({column: "string[pyarrow]" for column, kind in kinds.items() if kind == "category"})
    for column, kind in kinds.items():
        if kind.startswith("timedelta"):
            frame[column] = frame[column].dt.total_seconds()
    return frame
