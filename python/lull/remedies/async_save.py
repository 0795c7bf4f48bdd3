"""async-save: checkpoints are copied, and written by another thread

causes: storage-write
exact: yes
asks: yes
write: torch.save of a copy, by a thread that is joined before the next save

The copy of tensors is made at once. A file is complete before the next one is begun, before it is loaded or
looked at, and before the program ends. A program that saves all the time gains nothing.
"""
import atexit
import functools
import os
import threading


def apply(trial):
    last = [None]

    def wait():
        thread = last[0]
        # The thread opens its own file.
        if thread is not None and thread is not threading.current_thread():
            thread.join()
            last[0] = None

    def copied(value, torch):
        if isinstance(value, torch.Tensor):
            return value.detach().clone()
        if type(value) in (list, tuple):
            return type(value)(copied(v, torch) for v in value)
        if isinstance(value, dict) and type(value).__reduce__ is not None:
            copy = value.copy()
            for key in copy:
                copy[key] = copied(copy[key], torch)
            return copy
        return value

    def patch(torch):
        original = torch.save

        @functools.wraps(original)
        def save(obj, f, *args, **kwargs):
            wait()
            if isinstance(obj, torch.nn.Module) or not isinstance(f, (str, os.PathLike)) or not trial.changes("async-save"):
                return original(obj, f, *args, **kwargs)
            # The file has its place before the program goes on, and may get another name at once.
            place = trial.saves.keep(f)
            if not trial.saves.has(f):
                return original(obj, f, *args, **kwargs)
            trial.where("async-save", "save a copy, on a thread")
            trial.did("async-save")
            copy = copied(obj, torch)
            torch.cuda.is_initialized() and torch.cuda.current_stream().synchronize()
            last[0] = threading.Thread(target=original.__wrapped__, args=(copy, place, *args), kwargs=kwargs)
            last[0].start()
            return None
        load = torch.load

        @functools.wraps(load)
        def load_complete(*args, **kwargs):
            wait()
            return load(*args, **kwargs)
        torch.save, torch.load = save, load_complete
    trial.when_loaded("torch", patch)
    trial.before_files.append(wait)
    trial.before_end.append(wait)
    atexit.register(wait)
