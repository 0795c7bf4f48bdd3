"""The library of the reader (include/lull_read.h), by ctypes: loading it, calling it, its errors."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p

INTERFACE = 1
NULL, INT, REAL, TEXT = range(4)


class Error(Exception):
    """What went wrong, in one sentence. All errors of this package are of this class."""


class UsageError(Error, ValueError):
    """What was asked for is wrong: the SQL, or the name of a table, a column, a report."""


class FormatError(Error, ValueError):
    """The file is damaged, or it is no report."""


class ReadError(Error, OSError):
    """The file cannot be read, or a query was stopped."""


class MemoryGone(Error, MemoryError):
    """There was no memory; the report cannot be used any more."""


class NotFound(Error, LookupError):
    """The report does not contain what was asked for."""


class RecordError(Error, RuntimeError):
    """A part of the program could not be recorded."""


class ReportWarning(UserWarning):
    """What a command would have warned of: events were lost, the file was cut off, the device was simulated."""


_ERRORS = {-1: UsageError, -2: ReadError, -3: FormatError, -4: MemoryGone, -5: Error, -6: NotFound}


class CError(ctypes.Structure):
    """struct lull_read_error"""
    _fields_ = [("code", c_int), ("text", c_char * 512)]


class CColumn(ctypes.Structure):
    """struct lull_read_column"""
    _fields_ = [("name", c_char_p), ("kind", c_int), ("n_rows", c_uint64), ("n_nulls", c_uint64),
                ("values", c_void_p), ("present", c_void_p), ("texts", c_void_p), ("text_offs", c_void_p),
                ("n_texts", c_uint64)]


WATCH = ctypes.CFUNCTYPE(None)

_FUNCTIONS = {
    "lull_read_open": (c_int, c_char_p, POINTER(c_void_p), POINTER(CError)),
    "lull_read_close": (None, c_void_p),
    "lull_read_warnings": (c_char_p, c_void_p),
    "lull_read_table": (c_int, c_void_p, c_char_p, POINTER(c_char_p), c_size_t, POINTER(c_void_p), POINTER(CError)),
    "lull_read_tables": (c_int, c_void_p, POINTER(c_void_p), POINTER(CError)),
    "lull_read_sql": (c_int, c_void_p, c_char_p, c_double, POINTER(c_void_p), POINTER(CError)),
    "lull_read_stats": (c_int, c_void_p, c_char_p, POINTER(c_void_p), POINTER(CError)),
    "lull_read_stop": (None, c_void_p),
    "lull_read_watch": (c_int, c_void_p, WATCH, POINTER(CError)),
    "lull_read_n_rows": (c_uint64, c_void_p),
    "lull_read_n_columns": (c_size_t, c_void_p),
    "lull_read_column": (None, c_void_p, c_size_t, POINTER(CColumn)),
    "lull_read_rows_free": (None, c_void_p),
    "lull_read_arrow": (c_int, c_void_p, c_void_p, c_void_p, POINTER(CError)),
    "lull_read_arrow_stream": (c_int, c_void_p, c_void_p, POINTER(CError)),
    "lull_read_why": (c_int, c_void_p, c_char_p, c_int, POINTER(c_void_p), POINTER(c_void_p), POINTER(CError)),
    "lull_read_info": (c_int, c_void_p, POINTER(c_void_p), POINTER(CError)),
    "lull_read_diff": (c_int, c_void_p, c_void_p, POINTER(c_void_p), POINTER(CError)),
    "lull_read_free": (None, c_void_p),
    "lull_read_interface": (c_int,),
    "lull_read_version": (c_char_p,),
}

_HERE = os.path.dirname(os.path.realpath(__file__))

# From this folder: in a wheel, in a tarball or an installation, in the sources.
_LIBRARIES = ("_tree/lib/liblull-read.so", "../../liblull-read.so", "../../build/liblull-read.so")
_COMMANDS = ("_tree/bin/lull", "../../../bin/lull", "../../../../bin/lull", "../../build/lull")

_loaded = None


def find(variable, places, name):
    """The path of a part of this installation: as the variable says, or one of the places."""
    named = os.environ.get(variable)
    if named:
        return os.path.join(named, name) if os.path.isdir(named) else named
    for place in places:
        path = os.path.normpath(os.path.join(_HERE, place))
        if os.path.exists(path):
            return path
    return None


def command() -> str:
    """The path of the command `lull` that this package belongs to."""
    import shutil
    path = find("LULL_COMMAND", _COMMANDS, "lull") or shutil.which("lull")
    if not path:
        raise Error("there is no command lull beside this package or in PATH; set LULL_COMMAND")
    return path


def library() -> ctypes.CDLL:
    """The library, loaded at first use."""
    global _loaded
    if _loaded is not None:
        return _loaded
    path = find("LULL_READ_LIBRARY", _LIBRARIES, "liblull-read.so")
    if not path:
        raise Error("there is no liblull-read.so beside this package; set LULL_READ_LIBRARY")
    try:
        loaded = ctypes.CDLL(path)
        if loaded.lull_read_interface() < INTERFACE:
            raise Error(f"{path} is too old for this package")
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise Error(f"the library of the reader cannot be loaded: {error}") from error
    _loaded = loaded
    return loaded


def check(code, error):
    """Raise what a call returned."""
    if code:
        raise _ERRORS.get(code, Error)(error.text.decode("utf-8", "replace"))


def take_text(pointer):
    """The text of an answer, which is freed."""
    try:
        return ctypes.string_at(pointer.value).decode("utf-8", "replace")
    finally:
        library().lull_read_free(pointer)


class Rows:
    """Columns in the library's memory: they live as long as something uses them."""

    def __init__(self, pointer):
        self.pointer = pointer
        self.n_rows = library().lull_read_n_rows(pointer)
        self.columns = []
        for ix in range(library().lull_read_n_columns(pointer)):
            column = CColumn()
            library().lull_read_column(pointer, ix, byref(column))
            self.columns.append(column)

    def __del__(self):
        if _loaded is not None:
            _loaded.lull_read_rows_free(self.pointer)

    def buffer(self, address, ctype, n):
        """n values at an address as a buffer that keeps the rows."""
        if not n:
            return (ctype * 0)()
        buffer = (ctype * n).from_address(address)
        buffer.rows = self
        return buffer


def bytes_at(address, n):
    return ctypes.string_at(address, n) if n else b""


__all__ = ["CColumn", "CError", "Error", "FormatError", "INT", "MemoryGone", "NotFound", "NULL", "REAL", "ReadError",
           "RecordError", "ReportWarning", "Rows", "TEXT", "UsageError", "WATCH", "byref", "bytes_at", "c_char_p", "c_int64",
           "c_void_p", "check", "command", "ctypes", "library", "take_text"]
