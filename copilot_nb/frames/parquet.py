"""Tables on disk, one folder per day, and back with the same dtypes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from copilot_nb.errors import StoreError
from copilot_nb.frames import schema

if TYPE_CHECKING:
    import pandas as pd

_ROW = "_row"


def write(frames: Iterable[pd.DataFrame], folder: str | Path, table: str) -> Path:
    """Write frames of one table as Parquet, partitioned by day.

    Parameters
    ----------
    frames
        Taken one by one, so a fleet need not fit into memory.
    folder
        Gets ``TABLE/day=YYYY-MM-DD/…parquet`` (UTC; ``day=none`` for rows without a time). What an earlier
        call wrote there of the same table is replaced, as a file would be: for many sessions in one folder
        write `copilot_nb.read_logs`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = Path(folder) / table
    target.mkdir(parents=True, exist_ok=True)
    first, shape = 0, None
    written = set()
    for number, frame in enumerate(frames):
        days = _days(frame, table)
        content = pa.Table.from_pandas(_storable(frame, first), preserve_index=False)
        first += len(frame)
        shape = frame.iloc[:0]
        for day in days.unique():
            place = target / f"day={day}"
            place.mkdir(exist_ok=True)
            rows = (days == day).to_numpy(dtype=bool).nonzero()[0]
            file = place / f"part-{number:05d}.parquet"
            written.add(file)
            pq.write_table(content.take(pa.array(rows)), file)
    if first == 0:
        nothing = schema.empty(table) if shape is None else shape
        content = pa.Table.from_pandas(_storable(nothing, 0), preserve_index=False)
        written.add(target / "empty.parquet")
        pq.write_table(content, target / "empty.parquet")
    for earlier in {*target.glob("day=*/part-*.parquet"), *target.glob("empty.parquet")} - written:
        earlier.unlink()
    return target


def read(folder: str | Path, table: str = "events") -> pd.DataFrame:
    """What `write` wrote: the same rows in the same order with the same dtypes."""
    import pandas as pd

    target = Path(folder) / table
    parts = [pd.read_parquet(path) for path in sorted(target.rglob("*.parquet"))]
    if not parts:
        raise StoreError(f"There is no table {table!r} in {folder}.")
    frame = pd.concat(parts) if len(parts) > 1 else parts[0]
    frame = frame.sort_values(_ROW, kind="stable").drop(columns=_ROW)
    index = pd.Index(frame.pop("seq"), name="seq") if "seq" in frame.columns else pd.RangeIndex(len(frame))
    frame.index = index if table == "events" else pd.RangeIndex(len(frame))
    return frame.astype(dtypes_of(frame, table))


def dtypes_of(frame: pd.DataFrame, table: str) -> dict[str, Any]:
    """The dtypes of a table, with the session and unknown event types if the frame has them."""
    import pandas as pd

    dtypes = schema.dtypes(table)
    if "session" in frame.columns:
        dtypes = {"session": pd.StringDtype("pyarrow"), **dtypes}
    if table == "events":
        known = list(dtypes["type"].categories)
        unknown = [name for name in frame["type"].dropna().unique() if name not in set(known)]
        dtypes["type"] = pd.CategoricalDtype(known + unknown)
    return dtypes


def _storable(frame: pd.DataFrame, first: int) -> pd.DataFrame:
    """Categories as text, because their lists differ by log; the order as a column."""
    texts = {column: "string" for column in frame.columns if str(frame[column].dtype) == "category"}
    result = frame.astype(texts)
    if frame.index.name == "seq":
        result["seq"] = frame.index
    result[_ROW] = range(first, first + len(frame))
    return result


def _days(frame: pd.DataFrame, table: str) -> pd.Series:

    columns = [c.name for c in schema.TABLES[table] if c.dtype == schema.TIME]
    moments = frame[columns[0]]
    for column in columns[1:]:
        moments = moments.fillna(frame[column])
    days: pd.Series = moments.dt.strftime("%Y-%m-%d").fillna("none").reset_index(drop=True)
    return days
