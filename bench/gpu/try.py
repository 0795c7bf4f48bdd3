#!/usr/bin/env python3
"""Let lull try programs of the corpus, and put its gain beside that of the fix made by hand. Needs a GPU and PyTorch.

    try.py LULL OUT [--only NAME,...] [--budget SECONDS] [--beside N] [--limit SECONDS]

N programs are tried at a time: most of a trial goes into starting PyTorch. Prints a line for each program; what lull said
goes to OUT/NAME.json. The gain by hand is round_ms / fixed_ms of test/corpus/labels.tsv, measured on a machine of its own.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import shutil
import subprocess
import sys
import time

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test", "corpus")

# For which of the programs a remedy in the list could help, and what has to be named to be tried.
PROGRAMS = {
    "train_scans_loader": "", "radar_tiles": "", "review_classifier": "", "pos_tagger": "", "keyword_spotter": "",
    "block_norms": "", "digits_convnet": "", "gesture_amp": "", "denoise_sampler": "", "sprite_gan": "",
    "gpt_char_train": "", "train_shapes_resnet": "", "patch_transformer": "", "user_next_item": "", "load_forecaster": "",
    "mixer_images": "tf32", "reservoir_ensemble": "tf32", "satellite_tiles": "", "story_batch_decode": "",
    "image_bands": "", "photo_pyramid": "", "frame_motion": "", "chat_greedy": "", "diffusion_ema": "",
}


def longer(text):
    """Arguments with which the program runs for long enough; a trial ends it."""
    if '"--seconds"' in text:
        return ["--seconds", "40"]
    return ["--steps", "400"] if "--steps" in text else []


def try_one(o, name):
    began = time.monotonic()
    app = os.path.join(o.out, "app", name)
    os.makedirs(app, exist_ok=True)
    path = next(os.path.join(CORPUS, "programs", name + kind) for kind in (".py", ".cu")
                if os.path.exists(os.path.join(CORPUS, "programs", name + kind)))
    with open(path, encoding="utf-8") as f:
        more = longer(f.read())
    if path.endswith(".cu"):
        program = [os.path.join(app, name)]
        subprocess.run(["nvcc", "-O2", "-lineinfo", "-arch=native", "-o", program[0], path, "-lcublas", "-lpthread"], check=True)
    else:
        shutil.copy(path, app)
        program = [sys.executable, os.path.join(app, name + ".py")]
    only = ["--only", PROGRAMS[name]] if PROGRAMS.get(name) else []
    command = [o.lull, "try", "-q", "--format", "json", "--budget", "%ds" % o.budget] + only + ["--"] + program + more
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=app, timeout=o.limit)
    with open(os.path.join(o.out, name + ".json"), "w", encoding="utf-8") as f:
        f.write(done.stdout)
    return json.loads(done.stdout) if done.stdout.strip() else done.stderr.strip()[-300:], time.monotonic() - began


def say(name, answer, took, hand):
    if isinstance(answer, str):
        print("%-22s by hand %6.2f  %3.0f s  %s" % (name, hand, took, answer), flush=True)
        return
    tried = sorted((t for t in answer.get("tried", []) if t.get("gain")), key=lambda t: -t["gain"]["ratio"])
    text = ", ".join("%s %.2f (%.2f to %.2f) %s" % ("+".join(t["remedies"]), t["gain"]["ratio"], t["gain"]["low"], t["gain"]["high"], t["verdict"])
                     for t in tried[:3])
    rest = ", ".join("%s %s" % ("+".join(t["remedies"]), t["verdict"]) for t in answer.get("tried", []) if not t.get("gain"))
    print("%-22s by hand %6.2f  %3.0f s  base %.2f ms  %s  [%s]" % (
        name, hand, took, (answer["baseline"].get("step_ns") or 0) / 1e6, text or "nothing", rest[:120]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lull")
    parser.add_argument("out")
    parser.add_argument("--only")
    parser.add_argument("--budget", type=int, default=90)
    parser.add_argument("--beside", type=int, default=4)
    parser.add_argument("--limit", type=float, default=570)
    o = parser.parse_args()
    names = o.only.split(",") if o.only else list(PROGRAMS)
    with open(os.path.join(CORPUS, "labels.tsv"), encoding="utf-8") as f:
        hand = {r["name"]: float(r["round_ms"]) / float(r["fixed_ms"]) for r in csv.DictReader(f, delimiter="\t") if float(r["fixed_ms"] or 0)}
    end = time.monotonic() + o.limit
    with concurrent.futures.ThreadPoolExecutor(o.beside) as pool:
        waiting = {pool.submit(try_one, o, name): name for name in names}
        for done in concurrent.futures.as_completed(waiting):
            name = waiting[done]
            try:
                say(name, *done.result(), hand.get(name, 0))
            except Exception as e:
                print("%-22s %s" % (name, e), flush=True)
            if time.monotonic() > end - o.budget:
                for w in waiting:
                    w.cancel()


main()
