"""Step time, idle time by cause and the verdict of a report for TensorBoard, wandb and MLflow, and callbacks of trainers.

    import lull, lull.loggers
    lull.loggers.log(lull.open("report1.lull"), lull.loggers.TensorBoard("runs/today"))

    trainer = lightning.Trainer(callbacks=[lull.loggers.lightning_callback(every=1000, active=10)])
    trainer = transformers.Trainer(..., callbacks=[lull.loggers.transformers_callback(every=1000, active=10)])

The callbacks record some steps now and then, and log them with the other numbers of the run. The program may be started
by `lull launch`; any other attaches to itself (lull.profile). None of the packages is needed unless it is used. lull-python(7) describes it.
"""
from __future__ import annotations

import bisect
import os
import socket
import struct
import sys
import time
import warnings
from typing import Any, Callable, Iterable

import lull

# ---- what is logged ----


def _ms(ns: float) -> float:
    return ns / 1e6


def _why(report: Any) -> Any:
    """The answer of why(), or None where there is none, such as without a GPU."""
    try:
        return report.why()
    except lull.Error:
        return None


def _marked(report: Any) -> list[tuple[int, dict[str, float]]]:
    """The steps as the program or PyTorch has them."""
    steps = report.steps.to_dict()
    return [(number, {"lull/step_ms": _ms(dur)}) for number, dur in zip(steps["number"], steps["dur"])]


def steps(report: Any) -> list[tuple[int, dict[str, float]]]:
    """Each steady step: its number, and its time in all, without computing, and by cause; all in ms."""
    why = _why(report)
    if why is None or not why["steps"]["each"]:
        return _marked(report)
    table = report.steps.to_dict()
    order = sorted(range(len(table["start"])), key=table["start"].__getitem__)
    starts = [table["start"][i] for i in order]
    found = []
    for ix, step in enumerate(why["steps"]["each"]):
        at = bisect.bisect_right(starts, (step["from_ns"] + step["to_ns"]) // 2) - 1
        number = table["number"][order[at]] if at >= 0 else ix
        values = {"lull/step_ms": _ms(step["to_ns"] - step["from_ns"]),
                  "lull/not_computing_ms": _ms(sum(step["causes"].values()))}
        values.update({f"lull/cause/{cause}_ms": _ms(ns) for cause, ns in step["causes"].items()})
        found.append((number, values))
    return found


def summary(report: Any) -> dict[str, float]:
    """The steady steps together: the mean step, and shares of it."""
    why = _why(report)
    if why is None or not why["device"]["window_ns"]:
        times = [values["lull/step_ms"] for _, values in _marked(report)]
        return {"lull/step_mean_ms": sum(times) / len(times)} if times else {}
    device = why["device"]
    window = device["window_ns"]
    values = {"lull/step_mean_ms": _ms(why["steps"]["mean_ns"]), "lull/compute_share": device["compute_ns"] / window,
              "lull/idle_share": device["idle_ns"] / window}
    values.update({f"lull/cause/{cause}_share": ns / window for cause, ns in device["costs_ns"].items()})
    return values


def verdict(report: Any) -> str:
    """The answer of `lull why` in sentences; "" where there is none."""
    why = _why(report)
    return "" if why is None else str(why)


def log(report: Any, writers: Any, step: int | None = None) -> None:
    """Log a report. With `step`, its summary as of that step; without, each steady step by its own number."""
    for writer in writers if isinstance(writers, (list, tuple)) else [writers]:
        lines = [(step, summary(report))] if step is not None else steps(report)
        for number, values in lines:
            writer.log(values, number)
        text = verdict(report)
        if text:
            writer.text("lull/verdict", text, lines[-1][0] if lines else 0)
        if hasattr(writer, "flush"):
            writer.flush()


# ---- TensorBoard: event files as its documentation has them, without its package ----


def _crc_table() -> list[int]:
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)  # Castagnoli, as iSCSI and SSE 4.2 have it
        table.append(n)
    return table


_TABLE = _crc_table()


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


class TensorBoard:
    """A file of events in a folder, which TensorBoard and everything that reads its files shows."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        os.makedirs(folder, exist_ok=True)
        stem = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        for n in range(1 << 20):
            self.path = os.path.join(os.fspath(folder), f"{stem}.{n}.lull")
            try:
                self._file = open(self.path, "xb")
                break
            except FileExistsError:
                continue
        self._write(_bytes(3, b"brain.Event:2"))

    def _write(self, body: bytes) -> None:
        data = b"\x09" + struct.pack("<d", time.time()) + body
        length = struct.pack("<Q", len(data))
        self._file.write(length + struct.pack("<I", _masked_crc(length)) + data + struct.pack("<I", _masked_crc(data)))

    def log(self, values: dict[str, float], step: int) -> None:
        """Numbers of a step."""
        summary_ = b"".join(_bytes(1, _bytes(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
                            for tag, value in values.items())
        self._write(b"\x10" + _varint(step) + _bytes(5, summary_))

    def text(self, tag: str, text: str, step: int) -> None:
        """A text of a step, for the panel Text."""
        # A tensor of one string; indented, because the panel reads Markdown.
        block = "\n".join("    " + line for line in text.splitlines())
        tensor = b"\x08\x07" + _bytes(2, _bytes(2, b"\x08\x01")) + _bytes(8, block.encode())
        value = _bytes(1, tag.encode()) + _bytes(8, tensor) + _bytes(9, _bytes(1, _bytes(1, b"text")))
        self._write(b"\x10" + _varint(step) + _bytes(5, _bytes(1, value)))

    def flush(self) -> None:
        """Write what is held."""
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        self._file.close()


# ---- others ----


class Wandb:
    """A run of wandb: the present one, unless one is given."""

    def __init__(self, run: Any = None) -> None:
        if run is None:
            import wandb
            run = wandb.run if wandb.run is not None else wandb.init()
        self.run = run

    def log(self, values: dict[str, float], step: int) -> None:
        # Steps of wandb only grow, and the trainer may be further already: the number is a value of its own.
        self.run.log(dict(values, **{"lull/at_step": step}))

    def text(self, tag: str, text: str, step: int) -> None:
        self.run.summary[tag] = text


class MLflow:
    """The active run of MLflow."""

    def __init__(self) -> None:
        import mlflow
        self.mlflow = mlflow

    def log(self, values: dict[str, float], step: int) -> None:
        self.mlflow.log_metrics(values, step=step)

    def text(self, tag: str, text: str, step: int) -> None:
        self.mlflow.set_tag(tag.replace("/", "."), text[:5000])  # the length of a tag is limited


class _Lightning:
    """The loggers of a Lightning trainer."""

    def __init__(self, loggers: Iterable[Any]) -> None:
        self.loggers = list(loggers)

    def log(self, values: dict[str, float], step: int) -> None:
        for logger in self.loggers:
            logger.log_metrics(values, step=step)

    def text(self, tag: str, text: str, step: int) -> None:
        print(text, file=sys.stderr)


# ---- callbacks ----


class Sampler:
    """Records `active` steps every `every` steps, and hands their report to `done`; for loops of any kind.

    Call step(number) where a step begins, and end() after the last one. An error of lull, such as that this program must
    not be recorded here, is a warning: the program goes on.
    """

    def __init__(self, done: Callable[[Any, int], None], every: int = 1000, active: int = 10,
                 folder: str | os.PathLike[str] = "lull-reports") -> None:
        if every <= active or active < 1:
            raise ValueError("lull.loggers: active has to be at least 1, and every more than that")
        self.done, self.every, self.active, self.folder = done, every, active, os.fspath(folder)
        self.part: Any = None
        self.since = 0

    def step(self, number: int) -> None:
        """The step of this number begins."""
        if self.part is not None and number - self.since >= self.active:
            self.end()
        # The first steps are warm-up: nothing is learned from them.
        if self.part is None and number and number % self.every == 0:
            self._safely(lambda: self._begin(number))
        if self.part is not None:
            lull.step(number)

    def _begin(self, number: int) -> None:
        os.makedirs(self.folder, exist_ok=True)
        part = lull.profile(os.path.join(self.folder, f"step{number}.lull")).__enter__()
        self.part, self.since = part, number

    def end(self) -> None:
        """The last step has ended."""
        part, self.part = self.part, None
        if part is not None:
            self._safely(lambda: self._finish(part))

    def _finish(self, part: Any) -> None:
        part.__exit__(None, None, None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lull.ReportWarning)
            with part.open() as report:
                self.done(report, self.since)

    @staticmethod
    def _safely(call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # whatever it is, training goes on
            warnings.warn(f"lull: {error}", RuntimeWarning, stacklevel=4)


def lightning_callback(every: int = 1000, active: int = 10, folder: str | os.PathLike[str] = "lull-reports") -> Any:
    """A callback for a Trainer of Lightning; its loggers get the numbers."""
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

    class LullCallback(Callback):  # type: ignore[misc, valid-type]
        """Records some steps now and then, and logs why the GPU waited in them."""

        def __init__(self) -> None:
            super().__init__()
            self.sampler: Sampler | None = None

        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            if self.sampler is None:
                self.sampler = Sampler(lambda report, step: log(report, _Lightning(trainer.loggers), step), every, active,
                                       folder)
            self.sampler.step(trainer.global_step)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            if self.sampler is not None:
                self.sampler.end()

    return LullCallback()


def transformers_callback(every: int = 1000, active: int = 10, folder: str | os.PathLike[str] = "lull-reports",
                          writers: list[Any] | None = None) -> Any:
    """A callback for a Trainer of Hugging Face; without `writers`, those of `report_to` get the numbers."""
    from transformers import TrainerCallback

    def chosen(args: Any) -> list[Any]:
        if writers is not None:
            return writers
        names: dict[str, Callable[[], Any]] = {
            "tensorboard": lambda: TensorBoard(args.logging_dir), "wandb": Wandb, "mlflow": MLflow}
        return [names[name]() for name in args.report_to or () if name in names]

    class LullCallback(TrainerCallback):  # type: ignore[misc, valid-type]
        """Records some steps now and then, and logs why the GPU waited in them."""

        def __init__(self) -> None:
            self.sampler: Sampler | None = None

        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if self.sampler is None:
                to = chosen(args)
                self.sampler = Sampler(lambda report, step: log(report, to, step), every, active, folder)
            self.sampler.step(state.global_step)

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if self.sampler is not None:
                self.sampler.end()

    return LullCallback()
