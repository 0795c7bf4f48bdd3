#!/usr/bin/env python3
"""Let lull try programs of the corpus, and put its gain beside that of the fix made by hand. Needs a GPU and PyTorch.

    try.py LULL OUT [--only NAME,...] [--budget SECONDS] [--beside N] [--limit SECONDS] [--planted PLANTED.PY] [--hand N]
    try.py LULL OUT --same N [--only NAME,...] [--beside N] [--limit SECONDS]

N programs are tried at a time: most of a trial goes into starting PyTorch. Prints a line for each program; what lull said
goes to OUT/NAME.json. The gain by hand is round_ms / fixed_ms of test/corpus/labels.tsv, measured on another day; with --hand
the program runs N times as it is and N times with its fix, by turns, before it is tried.
A name "planted:CASE" is a loop of --planted. With --same nothing is changed (a variable that nobody reads), N times in all:
each gain that is found is a false one.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "corpus")

# For which of the programs a remedy in the list could help, and what has to be named to be tried.
PROGRAMS = {
    "train_scans_loader": "", "radar_tiles": "", "review_classifier": "", "pos_tagger": "", "keyword_spotter": "",
    "block_norms": "", "digits_convnet": "", "gesture_amp": "", "denoise_sampler": "", "sprite_gan": "",
    "gpt_char_train": "", "train_shapes_resnet": "", "patch_transformer": "", "user_next_item": "", "load_forecaster": "",
    "mixer_images": "tf32", "reservoir_ensemble": "tf32", "satellite_tiles": "", "story_batch_decode": "",
    "image_bands": "", "photo_pyramid": "", "frame_motion": "", "chat_greedy": "", "diffusion_ema": "",
    "texture_trainer": "", "detector_targets": "", "augment_train": "", "click_features": "", "load_backtest": "", "tabular_resmlp": "",
    "pendulum_fleet_ppo": "",
}

# Programs for --same: one that is started quickly, and some of PyTorch.
SAME = ("image_bands", "photo_pyramid", "frame_motion", "slab_heat", "reaction_lattice", "digits_convnet", "multitask_heads", "train_shapes_resnet")


def longer(text):
    """Arguments with which the program runs for long enough; a trial ends it."""
    if '"--seconds"' in text:
        return ["--seconds", "40"]
    return ["--steps", "400"] if "--steps" in text else []


def program_of(o, name, app, is_short=False):
    """Its command; as short as it is by itself, or as long as a trial may need."""
    os.makedirs(app, exist_ok=True)
    if name.startswith("planted:"):
        return [sys.executable, os.path.abspath(o.planted), name.split(":")[1], "--steps", "60" if is_short else "4000"]
    path = next(os.path.join(CORPUS, "programs", name + kind) for kind in (".py", ".cu")
                if os.path.exists(os.path.join(CORPUS, "programs", name + kind)))
    with open(path, encoding="utf-8") as f:
        more = [] if is_short else longer(f.read())
    if path.endswith(".cu"):
        program = os.path.join(app, name)
        if not os.path.exists(program):
            subprocess.run(["nvcc", "-O2", "-lineinfo", "-arch=native", "-o", program, path, "-lcublas", "-lpthread"], check=True)
        return [program] + more
    shutil.copy(path, app)
    return [sys.executable, os.path.join(app, name + ".py")] + more


def fix_by_hand(o, program, app):
    """The least round as it is and with the fix in the program itself, in ms; None if it does not say."""
    rounds = collections.defaultdict(list)
    for way in (["--fixed"], []) * o.hand:
        done = subprocess.run(program + way, stdout=subprocess.PIPE, text=True, cwd=app, timeout=o.limit)
        found = re.findall(r"(?:round_ms |step_ms=)([0-9.]+)", done.stdout)
        if done.returncode or not found:
            return None
        rounds[len(way)].append(float(found[-1]))
    return (min(rounds[0]), min(rounds[1])) if o.hand else None


def try_one(o, name):
    app = os.path.join(o.out, "app", name.replace(":", "-"))
    program = program_of(o, name, app)
    hand = fix_by_hand(o, program_of(o, name, app, True), app)
    began = time.monotonic()
    only = ["--only", PROGRAMS[name]] if PROGRAMS.get(name) else []
    command = [o.lull, "try", "-q", "--format", "json", "--budget", "%ds" % o.budget] + only + ["--"] + program
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=app, timeout=o.limit)
    with open(os.path.join(o.out, name.replace(":", "-") + ".json"), "w", encoding="utf-8") as f:
        f.write(done.stdout)
    return json.loads(done.stdout) if done.stdout.strip() else done.stderr.strip()[-300:], time.monotonic() - began, hand


def say(name, answer, took, hand):
    """`hand`: a round as it is and with the fix by hand, in ms."""
    hand = "%.2f (%.3g -> %.3g ms)" % (hand[0] / hand[1], *hand) if hand else "?"
    if isinstance(answer, str):
        print("%-22s by hand %s  %3.0f s  %s" % (name, hand, took, answer), flush=True)
        return
    tried = sorted((t for t in answer.get("tried", []) if t.get("gain")), key=lambda t: -t["gain"]["ratio"])
    text = ", ".join("%s %.3g ms, %.2f (%.2f to %.2f) %s" % (
        "+".join(t["remedies"]), t["step_ns"] / 1e6, t["gain"]["ratio"], t["gain"]["low"], t["gain"]["high"], t["verdict"]) for t in tried[:3])
    rest = ", ".join("%s %s" % ("+".join(t["remedies"]), t["verdict"]) for t in answer.get("tried", []) if not t.get("gain"))
    print("%-22s by hand %s  %3.0f s  base %.2f ms  %s  [%s]" % (
        name, hand, took, (answer["baseline"].get("step_ns") or 0) / 1e6, text or "nothing", rest[:120]), flush=True)


def same(o, names):
    """Trials of nothing, by turns of the programs."""
    programs = {name: program_of(o, name, os.path.join(o.out, "app", name)) for name in names}
    end, verdicts = time.monotonic() + o.limit, collections.Counter()

    def one(name):
        if time.monotonic() > end:
            return name, "no time", None
        command = [o.lull, "try", "-q", "--format", "json", "--env", "NOBODY_READS_THIS=1", "--"] + programs[name]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
        if not done.stdout.strip():
            return name, "failed", done.stderr.strip()[-300:]
        tried = json.loads(done.stdout)["tried"][0]
        return name, tried["verdict"], tried.get("gain")

    with concurrent.futures.ThreadPoolExecutor(o.beside) as pool:
        for done in concurrent.futures.as_completed([pool.submit(one, names[i % len(names)]) for i in range(o.same)]):
            name, verdict, gain = done.result()
            verdicts[verdict] += 1
            if verdict != "no time":
                print("%-22s %s %s" % (name, verdict, gain), flush=True)
    print("%d trials of nothing: %s" % (o.same, dict(verdicts)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lull")
    parser.add_argument("out")
    parser.add_argument("--only")
    parser.add_argument("--budget", type=int, default=90)
    parser.add_argument("--beside", type=int, default=4)
    parser.add_argument("--limit", type=float, default=570)
    parser.add_argument("--planted", metavar="PLANTED.PY")
    parser.add_argument("--hand", type=int, default=0, metavar="N")
    parser.add_argument("--same", type=int, default=0, metavar="N")
    o = parser.parse_args()
    o.out = os.path.abspath(o.out)
    if o.same:
        same(o, o.only.split(",") if o.only else list(SAME))
        return
    names = o.only.split(",") if o.only else list(PROGRAMS)
    with open(os.path.join(CORPUS, "labels.tsv"), encoding="utf-8") as f:
        hand = {r["name"]: (float(r["round_ms"]), float(r["fixed_ms"])) for r in csv.DictReader(f, delimiter="\t") if float(r["fixed_ms"] or 0)}
    end = time.monotonic() + o.limit
    with concurrent.futures.ThreadPoolExecutor(o.beside) as pool:
        waiting = {pool.submit(try_one, o, name): name for name in names}
        for done in concurrent.futures.as_completed(waiting):
            name = waiting[done]
            try:
                answer, took, today = done.result()
                say(name, answer, took, today or hand.get(name))
            except Exception as e:
                print("%-22s %s" % (name, e), flush=True)
            if time.monotonic() > end - o.budget:
                for w in waiting:
                    w.cancel()


main()
