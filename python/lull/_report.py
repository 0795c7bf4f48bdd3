"""Reports as Python objects: what lull.open() returns. lull-python(7) describes it.

The examples run where the current folder holds train.lull, a recording of a PyTorch program.

>>> import lull
>>> report = lull.open("train.lull")
>>> report.kernels.columns[:4]
['start', 'end', 'dur', 'name']
>>> len(report.kernels) == int(report.sql("SELECT count(*) AS n FROM kernels")["n"][0])
True
>>> report.steps[0][:1], len(report.steps[:3])
((5,), 3)
>>> print(report.sql("SELECT number, dur FROM steps LIMIT 2"))
number          dur
     5  107,703,009
     6  253,101,813
>>> report.why()["first"]
'input-pipeline'
>>> report.sql("SELECT absent FROM kernels")
Traceback (most recent call last):
    ...
lull.UsageError: no such column: absent at column 8; `.schema kernels` lists the columns
>>> report.close()
"""
from __future__ import annotations

import ctypes
import json
import os
import signal
import threading
import warnings
from typing import Any, Iterator, Sequence

from ._library import (INT, NULL, REAL, TEXT, CError, Error, FormatError, MemoryGone, NotFound, ReadError,
                       RecordError, ReportWarning, Rows, UsageError, WATCH, byref, bytes_at, c_char_p, c_int64, c_void_p, check,
                       command, library, take_text)


def _numpy() -> Any:
    """numpy, or None."""
    try:
        import numpy
        return numpy
    except ImportError:
        return None


class Column:
    """One column as it lies in memory; nothing is copied.

    values: a memoryview of int64 or float64; for texts of uint32, the numbers of their `categories`.
    present: None if each row has a value, else a bytes-like object with a bit per row, the lowest first.
    """

    def __init__(self, rows: Rows, ix: int) -> None:
        c = rows.columns[ix]
        self.name: str = c.name.decode()
        self.kind: str = ("null", "int64", "float64", "text")[c.kind]
        self.n_nulls: int = c.n_nulls
        self._kind, self._n, self._rows = c.kind, c.n_rows, rows
        ctype, code = {NULL: (c_int64, "q"), INT: (c_int64, "q"), REAL: (ctypes.c_double, "d"),
                       TEXT: (ctypes.c_uint32, "I")}[c.kind]
        # A column of nulls has no values in memory.
        n = c.n_rows if c.kind != NULL else 0
        self._buffer = rows.buffer(c.values, ctype, n)
        self.values: memoryview = memoryview(self._buffer).cast("B").cast(code).toreadonly()
        self.present: memoryview | None = None
        if c.n_nulls:
            bits = rows.buffer(c.present, ctypes.c_uint8, (c.n_rows + 7) // 8)
            self.present = memoryview(bits).cast("B").toreadonly()
        self._c = c
        self._categories: list[str] | None = None

    def __len__(self) -> int:
        return self._n

    @property
    def categories(self) -> list[str]:
        """The different texts of a column of texts."""
        if self._categories is None:
            offs = self._rows.buffer(self._c.text_offs, c_int64, self._c.n_texts + 1) if self._c.n_texts else [0]
            text = bytes_at(self._c.texts, offs[len(offs) - 1])
            self._categories = [text[offs[i]:offs[i + 1]].decode() for i in range(self._c.n_texts)]
        return self._categories

    def is_present(self, row: int) -> bool:
        """Whether this row has a value."""
        return self._kind != NULL and (self.present is None or bool(self.present[row >> 3] >> (row & 7) & 1))

    def at(self, row: int) -> Any:
        """The value of this row as a Python object, None for a null."""
        if not self.is_present(row):
            return None
        return self.categories[self.values[row]] if self._kind == TEXT else self.values[row]

    def to_list(self) -> list[Any]:
        """All values as Python objects, None for a null."""
        if self._kind == NULL:
            return [None] * self._n
        values: Any = self.values.tolist()
        if self._kind == TEXT:
            texts = self.categories
            values = [texts[code] for code in values] if texts else values
        if self.present is not None:
            values = [value if self.is_present(i) else None for i, value in enumerate(values)]
        return values

    def to_numpy(self) -> Any:
        """An array that shares memory with the column; texts are objects, columns with nulls are masked."""
        numpy = _numpy()
        if numpy is None:
            raise Error("numpy is not installed; to_list() and values need none")
        if self._kind == NULL:
            return numpy.full(self._n, None, dtype=object)
        if self._kind == TEXT:
            texts = numpy.array([*self.categories, None], dtype=object)
            codes = numpy.frombuffer(self._buffer, dtype=numpy.uint32)
            if self.present is None:
                return texts[codes]
            return texts[numpy.where(self._mask(numpy), len(texts) - 1, codes)]
        values = numpy.frombuffer(self._buffer, dtype=numpy.int64 if self._kind == INT else numpy.float64)
        values.flags.writeable = False
        return values if self.present is None else numpy.ma.masked_array(values, self._mask(numpy))

    def _mask(self, numpy: Any) -> Any:
        """True where there is no value."""
        bits = numpy.frombuffer(self.present, dtype=numpy.uint8)
        return numpy.unpackbits(bits, count=self._n, bitorder="little") == 0

    def to_pandas(self) -> Any:
        """A pandas Series: texts are categories, whole numbers with nulls are Int64."""
        import pandas
        numpy = _numpy()
        if self._kind == TEXT:
            codes = numpy.frombuffer(self._buffer, dtype=numpy.uint32).astype(numpy.int32)
            if self.present is not None:
                codes[self._mask(numpy)] = -1
            return pandas.Series(pandas.Categorical.from_codes(codes, self.categories), name=self.name)
        if self._kind == INT and self.present is not None:
            values = numpy.frombuffer(self._buffer, dtype=numpy.int64)
            return pandas.Series(pandas.arrays.IntegerArray(values.copy(), self._mask(numpy)), name=self.name)
        if self._kind == REAL and self.present is not None:
            return pandas.Series(self.to_numpy().filled(numpy.nan), name=self.name)
        return pandas.Series(self.to_numpy(), name=self.name)


class _Capsules:
    """Capsules as the Arrow PyCapsule interface wants them: an owner who does not take them need not release them."""

    # Where the release function is, in bytes: after 7 fields of ArrowSchema, 8 of ArrowArray, 3 of a stream.
    OFFSETS = {b"arrow_schema": 56, b"arrow_array": 64, b"arrow_array_stream": 24}

    def __init__(self) -> None:
        # Functions of our own: others may have declared those of ctypes.pythonapi differently.
        api = ctypes.PyDLL(None)
        self.new = api.PyCapsule_New
        self.new.restype, self.new.argtypes = ctypes.py_object, [c_void_p, c_void_p, c_void_p]
        self.get = api.PyCapsule_GetPointer
        self.get.restype, self.get.argtypes = c_void_p, [c_void_p, c_char_p]
        self.get_name = api.PyCapsule_GetName
        self.get_name.restype, self.get_name.argtypes = c_char_p, [c_void_p]
        # A capsule keeps only the address of its name.
        self.names = {name: ctypes.create_string_buffer(name) for name in self.OFFSETS}
        self.memory: dict[int, Any] = {}
        self.destroy = ctypes.PYFUNCTYPE(None, c_void_p)(self._destroy)
        # A capsule may live longer than this module: its destructor must stay.
        api.Py_IncRef(ctypes.py_object(self.destroy))

    def _destroy(self, capsule: int) -> None:
        name = self.get_name(capsule)
        address = self.get(capsule, name)
        release = c_void_p.from_address(address + self.OFFSETS[name]).value
        if release:
            ctypes.CFUNCTYPE(None, c_void_p)(release)(address)
        self.memory.pop(address, None)

    def make(self, size: int, name: bytes) -> tuple[Any, int]:
        memory = ctypes.create_string_buffer(size)
        address = ctypes.addressof(memory)
        self.memory[address] = memory
        return self.new(address, ctypes.addressof(self.names[name]), ctypes.cast(self.destroy, c_void_p)), address


_capsules: _Capsules | None = None


def _capsule(size: int, name: bytes) -> tuple[Any, int]:
    """A capsule over `size` zeroed bytes, and their address."""
    global _capsules
    if _capsules is None:
        _capsules = _Capsules()
    return _capsules.make(size, name)


class Frame:
    """Rows and columns: the result of SQL, of stats(), or a table.

    frame["name"] is a column: a numpy array that shares the memory, or without numpy a memoryview, or a
    list for texts and for columns with nulls. Iterating gives rows as tuples, and so do frame[0] and
    frame[:3]. print() shows the first rows.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._names: list[str] = [c.name.decode() for c in rows.columns]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._names)

    def _read(self, name: str | None = None) -> Rows:
        """The rows in memory, with at least this column."""
        return self._rows

    def __len__(self) -> int:
        return self._read().n_rows

    def column(self, name: str) -> Column:
        """The column of this name as it lies in memory."""
        rows = self._read(name)
        for ix, c in enumerate(rows.columns):
            if c.name.decode() == name:
                return Column(rows, ix)
        raise UsageError(f"there is no column {name}; there are {', '.join(self.columns)}")

    def __getitem__(self, key: str | int | slice) -> Any:
        """A column by its name, a row by its number, some rows by a slice."""
        if not isinstance(key, str):
            rows = self._read()
            wanted = range(rows.n_rows)[key]
            columns = [Column(rows, ix) for ix in range(len(rows.columns))]
            if isinstance(wanted, range):
                return [tuple(c.at(row) for c in columns) for row in wanted]
            return tuple(c.at(wanted) for c in columns)
        column = self.column(key)
        if _numpy() is not None:
            return column.to_numpy()
        return column.values if column.kind in ("int64", "float64") and column.present is None else column.to_list()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self.to_dict().values())

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns as lists, None for nulls."""
        rows = self._read()
        return {c.name: c.to_list() for c in (Column(rows, ix) for ix in range(len(rows.columns)))}

    def to_pandas(self) -> Any:
        """A pandas DataFrame; needs pandas."""
        try:
            import pandas
        except ImportError:
            raise Error("pandas is not installed; to_dict() and __arrow_c_stream__() need none") from None
        rows = self._read()
        all_columns = [Column(rows, ix) for ix in range(len(rows.columns))]
        frame = pandas.DataFrame({ix: c.to_pandas() for ix, c in enumerate(all_columns)},
                                 index=pandas.RangeIndex(rows.n_rows))
        frame.columns = [c.name for c in all_columns]
        return frame

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """The Arrow PyCapsule interface: a schema and a struct array that shares the memory."""
        rows, error = self._read(), CError()
        (schema, schema_at), (array, array_at) = _capsule(72, b"arrow_schema"), _capsule(80, b"arrow_array")
        check(library().lull_read_arrow(rows.pointer, schema_at, array_at, byref(error)), error)
        return schema, array

    def __arrow_c_schema__(self) -> Any:
        """The schema alone."""
        return self.__arrow_c_array__()[0]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The Arrow PyCapsule interface: a stream of one batch, for pyarrow, polars, pandas and others."""
        rows, error = self._read(), CError()
        stream, address = _capsule(40, b"arrow_array_stream")
        check(library().lull_read_arrow_stream(rows.pointer, address, byref(error)), error)
        return stream

    def _first(self, n: int) -> list[tuple[Any, ...]]:
        """The first n rows, or all if there are fewer."""
        return self[:n]

    def __str__(self) -> str:
        """The first rows as a table, as wide as the terminal."""
        from . import _show
        return _show.as_text(self)

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        from . import _show
        return _show.as_html(self)

    def __repr__(self) -> str:
        return f"<lull.Frame: {len(self)} rows of {', '.join(self.columns)}>"


class Table(Frame):
    """A table of a report. A column is read when it is asked for, and then kept."""

    def __init__(self, report: Report, name: str, columns: list[str], doc: str) -> None:
        self._report, self.name, self.doc = report, name, doc
        self._names = columns
        self._parts: dict[str, Rows] = {}
        self._whole: Rows | None = None

    def _read(self, name: str | None = None) -> Rows:
        if name is not None and name in self._parts:
            return self._parts[name]
        if self._whole is None and name is not None and name in self._names:
            self._parts[name] = self._report._rows("lull_read_table", self.name.encode(),
                                                   (c_char_p * 1)(name.encode()), 1)
            return self._parts[name]
        if self._whole is None:
            self._whole = self._report._rows("lull_read_table", self.name.encode(), None, 0)
        return self._whole

    def _first(self, n: int) -> list[tuple[Any, ...]]:
        if self._whole is not None:
            return self[:n]
        return list(self._report.sql(f'SELECT * FROM "{self.name}" LIMIT {n}'))

    def __len__(self) -> int:
        for rows in [self._whole, *self._parts.values()]:
            if rows is not None:
                return rows.n_rows
        return self._read(self._names[0]).n_rows

    def __repr__(self) -> str:
        return f"<lull.Table {self.name}: {self.doc}; {', '.join(self.columns)}>"


class Why(dict):
    """The answer of `lull why`: a dict as of its --format json; str() is the answer in sentences."""

    def __init__(self, answer: dict[str, Any], text: str) -> None:
        super().__init__(answer)
        self.text = text

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """The sentences for a notebook."""
        from . import _show
        return _show.text_as_html(self.text)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The same for IPython in a terminal, which would show the dict."""
        printer.text(self.text.rstrip("\n"))

    @property
    def first(self) -> str | None:
        """The id of the cause to fix first, None if it is not known."""
        return self["first"]


class Diff(dict):
    """The answer of `lull diff`: a dict as of its --format json --top 0."""

    @property
    def change(self) -> float | None:
        """The change of the mean step as a share of it before, None without steps or with too few to tell."""
        step = self.get("step_time_ns")
        return None if step is None else step["change"]


class _Interrupts:
    """Lets Ctrl-C end what the library does.

    Python notes a signal and handles it when it runs again. So the library calls Python now and then, and a handler of
    our own, which does not raise there, stops the query. Afterwards the signal gets the handler that it would have had.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.handler: Any = None
        self.caught: tuple[Any, ...] | None = None

    def _stop(self, *signal_and_frame: Any) -> None:
        self.caught = signal_and_frame
        library().lull_read_stop(self.report._pointer)

    def _look(self) -> None:
        # A signal that came before the query began had nothing to stop.
        if self.caught:
            library().lull_read_stop(self.report._pointer)

    def __enter__(self) -> None:
        # Only the main thread may set handlers; one that Python does not know of is not touched.
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self.watch = WATCH(self._look)
            self.report._call("lull_read_watch", self.watch)
            self.handler = signal.signal(signal.SIGINT, self._stop)

    def __exit__(self, *exc: object) -> None:
        if self.handler is None:
            return
        signal.signal(signal.SIGINT, self.handler)
        if self.report._pointer:
            nobody = WATCH()  # type: ignore[call-overload]
            library().lull_read_watch(self.report._pointer, nobody, byref(CError()))
        if self.caught:
            self.handler(*self.caught)


class Report:
    """A report: tables, SQL and answers. Any thread may use it; calls wait for each other.

    Its tables are attributes, too: report.kernels, report.steps and so on; `tables` lists them.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: str = os.fspath(path)
        self._lock = threading.RLock()
        self._pointer = c_void_p()
        self._tables: dict[str, Table] | None = None
        error = CError()
        check(library().lull_read_open(os.fsencode(self.path), byref(self._pointer), byref(error)), error)
        self._warn()

    def _warn(self) -> None:
        text = library().lull_read_warnings(self._pointer)
        for line in text.decode("utf-8", "replace").splitlines():
            warnings.warn(f"{self.path}: {line}", ReportWarning, stacklevel=4)

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function of the library whose last argument is the error."""
        error = CError()
        with self._lock:
            if not self._pointer:
                raise UsageError(f"{self.path} is closed")
            check(getattr(library(), name)(self._pointer, *arguments, byref(error)), error)
            self._warn()

    def _rows(self, name: str, *arguments: Any) -> Rows:
        pointer = c_void_p()
        self._call(name, *arguments, byref(pointer))
        return Rows(pointer)

    def _answer(self, name: str, *arguments: Any) -> str:
        pointer = c_void_p()
        self._call(name, *arguments, byref(pointer))
        return take_text(pointer)

    # ---- rows ----

    @property
    def tables(self) -> dict[str, Table]:
        """All tables by name: readable ones such as kernels, those of the report, those of an nsys export."""
        if self._tables is None:
            found: dict[str, Table] = {}
            for name, column, _type, _rows, doc in Frame(self._rows("lull_read_tables")):
                found.setdefault(name, Table(self, name, [], doc))._names.append(column)
            self._tables = found
        return self._tables

    def table(self, name: str) -> Table:
        """The table of this name."""
        if name not in self.tables:
            self._rows("lull_read_table", name.encode(), None, 0)  # says what is wrong with the name
            raise UsageError(f"there is no table {name}")
        return self.tables[name]

    def sql(self, sql: str, timeout: float = 60) -> Frame:
        """The result of a SELECT, as `lull query` gives it. Ends with an error after `timeout` seconds, 0 for never."""
        with self._lock, _Interrupts(self):
            return Frame(self._rows("lull_read_sql", sql.encode(), timeout))

    def stats(self, name: str) -> Frame:
        """A report of `lull stats`, such as "cuda_gpu_kern_sum"; columns have the headers of its --format json."""
        return Frame(self._rows("lull_read_stats", name.encode()))

    def phases(self) -> Frame:
        """Where the time of a step goes: forward, backward, optimizer and so on (`lull stats -r phases`)."""
        return self.stats("phases")

    @property
    def requests(self) -> Table:
        """The requests to a server, one row each: latency, and what it went to (`lull requests`)."""
        return self.table("request")

    def to_pandas(self, table: str = "kernels") -> Any:
        """A table as a pandas DataFrame."""
        return self.table(table).to_pandas()

    def __getattr__(self, name: str) -> Table:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.table(name)
        except UsageError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.tables]

    # ---- answers ----

    def why(self, what_if: Sequence[str] = (), width: int = 100) -> Why:
        """Why the GPU waits. `what_if` are questions as of `lull why --what-if`."""
        data, text = c_void_p(), c_void_p()
        if isinstance(what_if, str):
            what_if = [what_if]
        self._call("lull_read_why", "\n".join(what_if).encode(), width, byref(data), byref(text))
        return Why(json.loads(take_text(data)), take_text(text))

    @property
    def info(self) -> dict[str, Any]:
        """What was recorded, where and how: the answer of `lull info --json`."""
        return json.loads(self._answer("lull_read_info"))

    def diff(self, after: Report | str | os.PathLike[str]) -> Diff:
        """What changed from this report to another one."""
        if not isinstance(after, Report):
            with Report(after) as opened:
                return self.diff(opened)
        with after._lock:
            return Diff(json.loads(self._answer("lull_read_diff", after._pointer)))

    # ---- the object ----

    def close(self) -> None:
        """Close the file. Columns that were read stay."""
        with self._lock:
            library().lull_read_close(self._pointer)
            self._pointer = c_void_p()

    def __enter__(self) -> Report:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None):
            self.close()

    def __repr__(self) -> str:
        return f"<lull.Report {self.path}>"

    def _repr_html_(self) -> str:
        """For a notebook: why the GPU waits, and the page of the report."""
        from . import _notebook
        try:
            return _notebook.Page(self.path)._repr_html_()
        except _notebook.Trouble as trouble:
            raise ReadError(str(trouble)) from None


def open(path: str | os.PathLike[str]) -> Report:
    """Open a report, or a file of another tool that lull can import."""
    return Report(path)


for _class in (Column, Diff, Error, FormatError, Frame, MemoryGone, NotFound, ReadError, RecordError, Report,
               ReportWarning, Table, UsageError, Why):
    _class.__module__ = "lull"  # the name by which it is known

__all__ = ["Column", "Diff", "Error", "FormatError", "Frame", "MemoryGone", "NotFound", "ReadError", "RecordError",
           "Report", "ReportWarning", "Table", "UsageError", "Why", "command", "open"]
