"""Values as pandas arrays of the documented dtypes; numpy's and Arrow's memory is shared, not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from copilot_nb.frames import schema
from copilot_nb.frames.columns import NA, arrow_texts

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def frame(table: str, **values: Any) -> pd.DataFrame:
    """A table of that name from its columns' values, in the order and with the dtypes of `schema`."""
    import pandas as pd

    columns = {}
    for column in schema.TABLES[table]:
        columns[column.name] = _series(column.dtype, values.pop(column.name))
    if values:
        raise KeyError(f"{table} has no columns {sorted(values)}")
    return pd.DataFrame(columns, copy=False)


def _series(dtype: str | tuple[str, ...], values: Any) -> Any:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    if isinstance(dtype, tuple):
        codes = {name: code for code, name in enumerate(dtype)}
        places = np.array([codes.get(value, -1) for value in values], np.int64)
        return pd.Categorical.from_codes(places, dtype=pd.CategoricalDtype(list(dtype)))
    if dtype == schema.TIME:
        return times(np.asarray(values, np.int64))
    if dtype == schema.SPAN:
        return pd.array(np.asarray(values, np.int64).view("m8[us]"), dtype="timedelta64[us]")
    if dtype == schema.TEXT:
        return strings(values if isinstance(values, pa.Array) else arrow_texts(values))
    if dtype == schema.INT:
        mask = np.array([value is None or value < 0 for value in values], bool)
        numbers = [0 if missing else value for value, missing in zip(values, mask, strict=True)]
        return pd.arrays.IntegerArray(np.array(numbers, np.int64), mask)
    return pd.Series(list(values), dtype=dtype).array


def times(micros: np.ndarray) -> Any:
    """A time column from microseconds since 1970 in UTC."""
    import pandas as pd

    return pd.Series(micros.view("M8[us]"), copy=False).dt.tz_localize("UTC").array


def strings(values: Any) -> Any:
    """A text column from Arrow's."""
    import pandas as pd

    return pd.arrays.ArrowStringArray(values)


def from_int32(values: Any) -> Any:
    """A pandas Int64 column from 32-bit numbers where -1 is missing."""
    import numpy as np
    import pandas as pd

    numbers = np.frombuffer(values, np.int32)
    return pd.arrays.IntegerArray(numbers.astype(np.int64), numbers < 0)


def from_int64(values: Any) -> Any:
    """A pandas Int64 column from 64-bit numbers where `NA` is missing."""
    import numpy as np
    import pandas as pd

    numbers = np.frombuffer(values, np.int64)
    return pd.arrays.IntegerArray(numbers, numbers == NA)


def decoded(codes: Any, names: list[str]) -> Any:
    """A text column from codes, -1 for missing."""
    import numpy as np
    import pyarrow as pa

    numbers = np.frombuffer(codes, np.int32)
    if not names:
        return strings(pa.nulls(len(numbers), pa.large_string()))
    places = pa.array(numbers, mask=numbers < 0)
    return strings(arrow_texts(names).take(places))
