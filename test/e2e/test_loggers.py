#!/usr/bin/env python3
"""What other tools get of a report: event files of TensorBoard by readers that share nothing with the writer, and the
calls that wandb, MLflow, Lightning and Hugging Face document, by stand-ins of them.

Usage: test_loggers.py BUILD [NAME...]
"""
import base64
import json
import os
import shutil
import struct
import sys
import tempfile
import types

import runner

BUILD = os.path.abspath(sys.argv[1])
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["LULL_READ_LIBRARY"] = os.environ["LULL_COMMAND"] = BUILD
PACKAGE = os.path.join(os.path.dirname(TEST), "python")
sys.path.insert(0, PACKAGE)
import lull  # noqa: E402: the package is not installed
import lull.loggers  # noqa: E402

TRAIN = os.path.join(TEST, "data/torch/train.lull")


# ---- TensorBoard's files: records with checksums, and protocol buffers in them ----


def crc32c(data):
    """Bit by bit, as the definition has it: x^32 + ... reversed."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 & -(crc & 1))
    return crc ^ 0xFFFFFFFF


def unmask(masked):
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def fields(data):
    """{number: [values]} of a message."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif key & 7 == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    runner.expect("a message ends where it ends", at == len(data))
    return found


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def events(path):
    with open(path, "rb") as f:
        data = f.read()
    at, found = 0, []
    while at < len(data):
        size, check = struct.unpack_from("<QI", data, at)
        runner.expect("checksum of a length", crc32c(data[at:at + 8]) == unmask(check))
        body = data[at + 12:at + 12 + size]
        runner.expect("checksum of a record", crc32c(body) == unmask(struct.unpack_from("<I", data, at + 12 + size)[0]))
        found.append(fields(body))
        at += size + 16
    return found


def the_checksum_is_that_of_the_standard():
    # Examples of RFC 3720, B.4.
    for data, crc in ((bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E)):
        runner.expect("crc32c", crc32c(data) == crc == unmask(lull.loggers._masked_crc(data)), hex(crc32c(data)))


def tensorboard_files_hold_the_steps():
    with tempfile.TemporaryDirectory() as folder:
        writer = lull.loggers.TensorBoard(os.path.join(folder, "runs"))
        report = lull.open(TRAIN)
        lull.loggers.log(report, writer)
        writer.close()
        head, *rest = events(writer.path)
        runner.expect("the version", head[3] == [b"brain.Event:2"], head)
        why = report.why()
        scalars, texts = {}, []
        for event in rest:
            for raw in fields(event[5][0])[1]:
                value = fields(raw)
                if 2 in value:
                    scalars[event[2][0], value[1][0].decode()] = value[2][0]
                else:
                    tensor = fields(value[8][0])
                    runner.expect("a tensor of one string", tensor[1] == [7] and len(tensor[8]) == 1, tensor)
                    runner.expect("the panel", fields(fields(value[9][0])[1][0])[1] == [b"text"], value)
                    texts.append(tensor[8][0].decode())
        numbers = sorted({step for step, _ in scalars})
        marked = report.steps.column("number").to_list()
        runner.expect("steps have their own numbers", numbers == marked[-len(numbers):], (numbers, marked))
        for number, step in zip(numbers, why["steps"]["each"]):
            runner.expect("step", abs(scalars[number, "lull/step_ms"] * 1e6 / (step["to_ns"] - step["from_ns"]) - 1) < 1e-6)
            for cause, ns in step["causes"].items():
                runner.expect(cause, abs(scalars[number, f"lull/cause/{cause}_ms"] - ns / 1e6) <= 1e-6 * ns / 1e6)
        runner.expect("the verdict", [" ".join(text.split()) for text in texts] == [" ".join(str(why).split())], texts)


def others_read_the_files():
    """Packages of npm: one checks the sums of the records, one decodes them; a wrong byte is noticed."""
    npm = os.path.join(BUILD, "npm")
    if not os.path.isdir(os.path.join(npm, "node_modules/tfrecord")) or not shutil.which("node"):
        runner.skip("the reader of TensorBoard's files did not come from npm")
    script = shutil.copy(os.path.join(TEST, "npm/tfevents.mjs"), npm)
    with tempfile.TemporaryDirectory() as folder:
        writer, report = lull.loggers.TensorBoard(folder), lull.open(TRAIN)
        lull.loggers.log(report, writer)
        writer.close()
        got = runner.run(["node", script, writer.path])
        runner.expect("they read it", got.returncode == 0, got.stderr)
        head, *rest = map(json.loads, got.stdout.splitlines())
        runner.expect("the version", head["file_version"] == "brain.Event:2", head)
        read = [(event["step"], {v["tag"]: v["simple_value"] for v in event["summary"]["value"]}) for event in rest[:-1]]
        wrote = [(step, {tag: struct.unpack("f", struct.pack("f", value))[0] for tag, value in values.items()})
                 for step, values in lull.loggers.steps(report)]
        runner.expect("each number of each step", len(wrote) > 1 and read == wrote, (read, wrote))
        text, = rest[-1]["summary"]["value"]
        said = base64.b64decode(text["tensor"]["string_val"][0]).decode()
        runner.expect("the verdict", text["tag"] == "lull/verdict" and said.split() == str(report.why()).split(), text)
        with open(writer.path, "r+b") as file:
            data = bytearray(file.read())
            data[len(data) // 2] ^= 1
            file.seek(0)
            file.write(data)
        runner.expect("a wrong byte", runner.run(["node", script, writer.path]).returncode, "nobody noticed")


# ---- wandb and MLflow: the calls that they document ----


def wandb_and_mlflow_get_the_numbers():
    report, logged = lull.open(TRAIN), []
    run = types.SimpleNamespace(log=logged.append, summary={})
    sys.modules["wandb"] = types.SimpleNamespace(run=run)
    flow = types.SimpleNamespace(metrics=[], tags={})
    flow.log_metrics = lambda values, step: flow.metrics.append((step, values))
    flow.set_tag = flow.tags.__setitem__
    sys.modules["mlflow"] = flow
    try:
        lull.loggers.log(report, [lull.loggers.Wandb(), lull.loggers.MLflow()], step=500)
    finally:
        del sys.modules["wandb"], sys.modules["mlflow"]
    device = report.why()["device"]
    runner.expect("wandb", logged[0]["lull/at_step"] == 500 and len(logged) == 1, logged)
    runner.expect("shares", logged[0]["lull/idle_share"] == device["idle_ns"] / device["window_ns"], logged)
    step, values = flow.metrics[0]
    runner.expect("mlflow", step == 500 and values == {k: v for k, v in logged[0].items() if k != "lull/at_step"}, flow.metrics)
    runner.expect("verdicts", run.summary["lull/verdict"] == flow.tags["lull.verdict"] == str(report.why()))


# ---- trainers ----

LIGHTNING = """
import sys, types
class Callback: pass
sys.modules["lightning"] = types.ModuleType("lightning")
sys.modules["lightning.pytorch"] = types.ModuleType("lightning.pytorch")
sys.modules["lightning.pytorch"].Callback = Callback
import json, lull, lull.loggers
callback = lull.loggers.lightning_callback(every=10, active=4, folder="parts")
assert isinstance(callback, Callback)
logged = []
class Logger:
    def log_metrics(self, metrics, step=None): logged.append((step, metrics))
trainer = types.SimpleNamespace(loggers=[Logger()], global_step=0)
for step in range(33):
    trainer.global_step = step
    callback.on_train_batch_start(trainer, None, None, step)
    sum(range(20000))
callback.on_train_end(trainer, None)
print(json.dumps(logged))
"""

TRANSFORMERS = """
import sys, types
class TrainerCallback: pass
sys.modules["transformers"] = types.SimpleNamespace(TrainerCallback=TrainerCallback)
import json, lull, lull.loggers
callback = lull.loggers.transformers_callback(every=10, active=4, folder="parts")
assert isinstance(callback, TrainerCallback)
args, state = types.SimpleNamespace(report_to=["tensorboard", "other"], logging_dir="runs"), types.SimpleNamespace(global_step=0)
for step in range(25):
    state.global_step = step
    callback.on_step_begin(args, state, None, model=None)
    sum(range(20000))
callback.on_train_end(args, state, None)
"""


def launched(code, folder, *words):
    env = {**os.environ, "PYTHONPATH": PACKAGE}
    got = runner.run([*words, sys.executable, "-W", "error::RuntimeWarning", "-c", code], cwd=folder, env=env)
    runner.expect("status", got.returncode == 0, got.stdout + got.stderr)
    return got.stdout


LAUNCH = (os.path.join(BUILD, "lull"), "launch", "-s", "none", "-t", "nvtx")


def lightning_logs_some_steps():
    with tempfile.TemporaryDirectory() as folder:
        logged = json.loads(launched(LIGHTNING, folder, *LAUNCH).strip().splitlines()[-1])
        runner.expect("when", [step for step, _ in logged] == [10, 20, 30], logged)
        runner.expect("a step", all(values["lull/step_mean_ms"] > 0 for _, values in logged), logged)
        names = sorted(os.listdir(os.path.join(folder, "parts")))
        runner.expect("reports", names == ["step10.lull", "step20.lull", "step30.lull"], names)
        numbers = lull.open(os.path.join(folder, "parts/step20.lull")).steps.column("number").to_list()
        runner.expect("steps have the numbers of the trainer", numbers and set(numbers) <= {20, 21, 22, 23}, numbers)


def transformers_logs_where_it_reports_to():
    with tempfile.TemporaryDirectory() as folder:
        launched(TRANSFORMERS, folder, *LAUNCH)
        (name,) = os.listdir(os.path.join(folder, "runs"))
        found = [(event[2][0], fields(fields(event[5][0])[1][0])[1][0]) for event in events(f"{folder}/runs/{name}")[1:]]
        runner.expect("when", found == [(10, b"lull/step_mean_ms"), (20, b"lull/step_mean_ms")], found)


def without_lull_launch_a_program_attaches_to_itself():
    if not runner.can(os.path.join(BUILD, "lull"), "attach"):
        runner.skip("programs that run must not be traced here (lull doctor says why)")
    with tempfile.TemporaryDirectory() as folder:
        logged = json.loads(launched(LIGHTNING, folder).strip().splitlines()[-1])
        runner.expect("when", [step for step, _ in logged] == [10, 20, 30], logged)


def a_program_that_cannot_be_recorded_goes_on():
    with tempfile.TemporaryDirectory() as folder:
        said = runner.run([sys.executable, "-c", LIGHTNING], cwd=folder,
                          env={**os.environ, "PYTHONPATH": PACKAGE, "LULL_COMMAND": os.path.join(folder, "absent")})
        runner.expect("nothing is logged", said.returncode == 0 and json.loads(said.stdout) == [], said.stdout + said.stderr)
        runner.expect("a warning says why", "RuntimeWarning: lull: " in said.stderr and "absent" in said.stderr, said.stderr)


TESTS = (
    the_checksum_is_that_of_the_standard,
    tensorboard_files_hold_the_steps,
    others_read_the_files,
    wandb_and_mlflow_get_the_numbers,
    lightning_logs_some_steps,
    transformers_logs_where_it_reports_to,
    without_lull_launch_a_program_attaches_to_itself,
    a_program_that_cannot_be_recorded_goes_on,
)

if __name__ == "__main__":
    runner.main(TESTS, sys.argv[2:])
