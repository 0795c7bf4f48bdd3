"""Files that a program saves through PyTorch while `lull try` runs it: they go to a folder of the run.

The program sees them where it saved them: what it does with a file by os, open(), shutil, pathlib, glob and
torch.load() finds the one in our folder. What other programs do with it does not, so `lull try` says of a
program that fails that its files are elsewhere.

A path that the program has from tempfile is no file of the user's, and no other run has it: it stays.
"""
import builtins
import errno
import functools
import io
import os
import stat
import sys
import types

# Functions of os that get one path and do nothing but use it.
USE = ("stat", "lstat", "chmod", "chown", "utime", "truncate", "readlink", "getxattr", "setxattr", "listxattr", "removexattr")

# The real ones.
_lstat, _replace, _remove = os.lstat, os.replace, os.remove

_ABSENT = object()


def _exists(path):
    try:
        _lstat(path)
        return True
    except OSError:
        return False


@functools.lru_cache(maxsize=1024)
def _real_folder(folder):
    return os.path.realpath(folder)


def _missing(path):
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _carry(source, target):
    """Move a file, also to another file system."""
    try:
        _replace(source, target)
    except OSError as e:
        if e.errno != errno.EXDEV:
            raise
        import shutil
        shutil.copyfile(source, target)
        _remove(source)


def _discard(place):
    if place:
        try:
            _remove(place)
        except OSError:
            pass  # it was never written, or the folder is gone


class Entry:
    """What os.scandir() says of a file that is elsewhere."""

    def __init__(self, folder, name, place):
        self.name, self.path, self.place = name, os.path.join(folder, name), place

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"

    def stat(self, *, follow_symlinks=True):
        return (os.stat if follow_symlinks else os.lstat)(self.place)

    def is_file(self, *, follow_symlinks=True):
        return stat.S_ISREG(self.stat(follow_symlinks=follow_symlinks).st_mode)

    def is_dir(self, *, follow_symlinks=True):
        return False

    def is_symlink(self):
        return stat.S_ISLNK(self.stat(follow_symlinks=False).st_mode)

    def is_junction(self):
        return False

    def inode(self):
        return self.stat(follow_symlinks=False).st_ino


class Entries:
    """What os.scandir() returns."""

    def __init__(self, entries):
        self.left = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.left)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def close(self):
        self.left = iter(())


class Saves:
    def __init__(self, trial):
        self.trial = trial
        # Path that the program knows -> where the file is: the same if it stays; None if the program removed
        # it, while the user's file of that name is still there.
        self.kept = {}
        self.own = set()  # files and folders that tempfile made
        self.n = 0

    # ---- where a file is ----

    @staticmethod
    def key(path):
        """One name for each file; None for what is no path."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None
        folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
        return os.path.join(_real_folder(folder), name)

    @staticmethod
    def key_of_folder(path):
        return _real_folder(os.path.abspath(os.fsdecode(path)))

    def is_own(self, key):
        while key not in self.own:
            parent = os.path.dirname(key)
            if parent == key:
                return False
            key = parent
        return True

    def stays(self, key):
        """A device, a file of ours, one that cannot be written: what happens then is the program's business."""
        try:
            return not stat.S_ISREG(os.stat(key).st_mode) or key.startswith(self.trial.folder + os.sep)
        except OSError:
            return not os.path.isdir(os.path.dirname(key)) or key.startswith(self.trial.folder + os.sep)

    def place(self, key):
        folder = os.path.join(self.trial.folder, "saved")
        os.makedirs(folder, exist_ok=True)
        self.n += 1
        self.trial.once(f"k {key}")
        return os.path.join(folder, f"{os.getpid()}-{self.n}-{os.path.basename(key)}")

    def keep(self, path):
        """Where to write a file that the program wants at this path."""
        key = self.key(path)
        if self.kept.get(key) is None:
            if key not in self.kept and self.stays(key):
                return path
            self.kept[key] = key if self.is_own(key) else self.place(key)
        return self.kept[key]

    def has(self, path):
        return self.kept.get(self.key(path)) is not None

    def settle(self):
        """The files are about to be used: all of them are to be complete."""
        for function in self.trial.before_files:
            function()

    def find(self, path, is_made=False):
        """Where the file at this path is."""
        if not self.kept:
            return path
        key = self.key(path)
        place = self.kept.get(key, _ABSENT)
        if place is _ABSENT:
            return path
        self.settle()
        if place is None and not is_made:
            raise _missing(path)
        return self.keep(path) if place is None else path if place == key else place

    def hide(self, key):
        """The program has no such file any more."""
        if self.kept.pop(key) != key and _exists(key):
            self.kept[key] = None

    def inside(self, folder):
        """Files below this folder that we know of."""
        start = os.path.join(folder, "")
        return [key for key in self.kept if key.startswith(start)]

    # ---- what programs do with a file they have saved ----

    def move(self, real, src, dst):
        a, b = self.key(src), self.key(dst)
        place = self.kept.get(a, _ABSENT)
        if place is None:
            raise _missing(src)
        if place is _ABSENT and self.kept.get(b, b) == b:
            self.move_folder(real, src, dst)
        elif place is _ABSENT:
            self.settle()
            _carry(src, self.keep(dst))
        elif place == a or self.is_own(b) or (b not in self.kept and self.stays(b)):
            self.settle()
            to = self.keep(dst)
            if place == a and to in (dst, b):
                real(src, dst)
            else:
                _carry(place, to)
            self.hide(a)
        elif a != b:
            # Nothing waits for a file that is still being written.
            old = self.kept.get(b)
            self.kept[b] = place
            self.hide(a)
            _discard(old)
            self.trial.once(f"k {b}")

    def move_folder(self, real, src, dst):
        a, b = self.key(src), self.key(dst)
        inside = self.inside(a)
        if inside:
            self.settle()
        real(src, dst)
        for key in inside:
            place, new = self.kept.pop(key), b + key[len(a):]
            self.kept[new] = new if place == key else place

    def remove(self, real, path):
        key = self.key(path)
        real(self.find(path))
        if key in self.kept:
            self.hide(key)

    def remove_folder(self, real, path):
        inside = self.inside(self.key_of_folder(path))
        if inside:
            self.settle()
        real(path)
        for key in inside:
            _discard(self.kept.pop(key))

    def lead(self, real, source, dst):
        """A link to a file of ours lies where that does."""
        if self.key(dst) not in self.kept and _exists(dst):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), source, None, dst)
        real(os.path.abspath(self.find(source)), self.keep(dst))

    def link(self, real, src, dst):
        if self.key(src) in self.kept:
            self.lead(real, src, dst)
        else:
            real(src, dst)

    def symlink(self, real, src, dst):
        # What a link says is seen from where it is.
        source = os.path.join(os.path.dirname(os.path.abspath(os.fsdecode(dst))), os.fsdecode(src))
        if self.key(source) in self.kept:
            self.lead(real, source, dst)
        else:
            real(src, dst)

    def listing(self, folder):
        """{name: place} of files in this folder that are elsewhere; place is None if there is none."""
        key = self.key_of_folder(folder)
        here = [k for k in self.inside(key) if os.path.dirname(k) == key]
        if here:
            self.settle()
        places = {os.path.basename(k): self.kept[k] for k in here if self.kept[k] != k}
        return {name: place if place and _exists(place) else None for name, place in places.items()}

    def listdir(self, real, path):
        places = self.listing(path)
        return [n for n in real(path) if n not in places] + [n for n in places if places[n]]

    def scandir(self, real, path):
        places = self.listing(path)
        if not places:
            return real(path)
        with real(path) as found:
            entries = [e for e in found if e.name not in places]
        folder = os.fspath(path)
        return Entries(entries + [Entry(folder, n, places[n]) for n in places if places[n]])

    # ---- put in ----

    def put(self, module, name, function):
        """
        Replace a function. In a class, such as pathlib's until Python 3.10, it must not become a method of that, so it is
        one already. os says by sets which of its functions can do what.
        """
        real = getattr(module, name, None)
        if real is None:
            return
        function = types.MethodType(functools.wraps(real)(function(real)), self)
        for able in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
            if real in able:
                able.add(function)
        setattr(module, name, function)

    def use(self, real):
        def use(_, path, *args, **kwargs):
            if self.kept and kwargs.get("dir_fd") is None:
                path = self.find(path)
            return real(path, *args, **kwargs)
        return use

    def use_two(self, method):
        def of(real):
            def use(_, src, dst, *args, **kwargs):
                _real_folder.cache_clear()
                if not self.kept or any(v is not None for k, v in kwargs.items() if k.endswith("dir_fd")):
                    return real(src, dst, *args, **kwargs)
                return method(lambda a, b: real(a, b, *args, **kwargs), src, dst)
            return use
        return of

    def use_one(self, method):
        """What is named by a descriptor is not looked for, but complete."""
        def of(real):
            def use(_, path=".", **kwargs):
                _real_folder.cache_clear()
                if not self.kept:
                    return real(path, **kwargs)
                if kwargs.get("dir_fd") is not None or not isinstance(path, (str, os.PathLike)):
                    self.settle()
                    return real(path, **kwargs)
                return method(lambda p: real(p, **kwargs), path)
            return use
        return of

    def opened(self, real):
        def open(_, file, mode="r", *args, **kwargs):
            if self.kept:
                file = self.find(file, any(letter in mode for letter in "wax"))
            return real(file, mode, *args, **kwargs)
        return open

    def opened_by_flags(self, real):
        def open(_, path, flags, *args, **kwargs):
            if self.kept and kwargs.get("dir_fd") is None:
                path = self.find(path, flags & os.O_CREAT)
            return real(path, flags, *args, **kwargs)
        return open

    def asked(self, real):
        def access(_, path, *args, **kwargs):
            try:
                return real(self.find(path) if kwargs.get("dir_fd") is None else path, *args, **kwargs)
            except FileNotFoundError:
                return False
        return access

    def watch(self):
        """Before the program and what it imports have names of their own for these functions."""
        for name in USE:
            self.put(os, name, self.use)
        for name, method in (("rename", self.move), ("replace", self.move), ("link", self.link), ("symlink", self.symlink)):
            self.put(os, name, self.use_two(method))
        for name, method in (("remove", self.remove), ("unlink", self.remove), ("rmdir", self.remove_folder),
                             ("listdir", self.listdir), ("scandir", self.scandir)):
            self.put(os, name, self.use_one(method))
        self.put(os, "open", self.opened_by_flags)
        self.put(os, "access", self.asked)
        self.put(io, "open", self.opened)
        builtins.open = io.open
        for name, function in (("tempfile", self.watch_tempfile), ("shutil", self.watch_shutil)):
            if name in sys.modules:
                function(sys.modules[name])
            else:
                self.trial.when_loaded(name, function)

    def watch_tempfile(self, tempfile):
        def made(real):
            def make(_, *args, **kwargs):
                found = real(*args, **kwargs)
                self.own.add(self.key(found[1] if isinstance(found, tuple) else found))
                return found
            return make
        self.put(tempfile, "mkdtemp", made)
        self.put(tempfile, "_mkstemp_inner", made)

    def watch_shutil(self, shutil):
        def copied(real):
            def copyfile(_, src, dst, **kwargs):
                if self.kept and self.key(src) in self.kept:
                    self.keep(dst)
                return real(src, dst, **kwargs)
            return copyfile
        self.put(shutil, "copyfile", copied)

    # ---- what saves and loads ----

    def wrap_save(self, original, position):
        @functools.wraps(original)
        def save(*args, **kwargs):
            for key in ("f", "filename"):
                if isinstance(kwargs.get(key), (str, os.PathLike)):
                    kwargs[key] = self.keep(kwargs[key])
            if len(args) > position and isinstance(args[position], (str, os.PathLike)):
                args = (*args[:position], self.keep(args[position]), *args[position + 1:])
            return original(*args, **kwargs)
        return save

    def wrap_load(self, original):
        @functools.wraps(original)
        def load(f, *args, **kwargs):
            return original(self.find(f), *args, **kwargs)
        return load


def begin(trial):
    trial.saves = saves = Saves(trial)
    saves.watch()

    def torch_files(torch):
        for module in (torch, sys.modules.get("torch.serialization")):
            if module is not None:
                module.save, module.load = saves.wrap_save(module.save, 1), saves.wrap_load(module.load)

    def safetensors_files(module):
        for name in ("save_file", "save_model"):
            if hasattr(module, name):
                setattr(module, name, saves.wrap_save(getattr(module, name), 1))
    trial.when_loaded("torch", torch_files)
    trial.when_loaded("safetensors.torch", safetensors_files)
