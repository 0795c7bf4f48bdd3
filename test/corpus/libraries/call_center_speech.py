"""Transcribe recorded calls with a wav2vec2 CTC model, one call (several segments) after the other."""
import argparse
import gc
import os
import statistics
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from transformers import Wav2Vec2Config, Wav2Vec2FeatureExtractor, Wav2Vec2ForCTC

RATE = 16_000
ALPHABET = "_ abcdefghijklmnopqrstuvwxyz'.?-"
SEGMENTS = 8


def make_call(rng, seconds=8):
    """Segments of a phone call: a few formants with an envelope, plus line noise."""
    t = np.arange(RATE * seconds) / RATE
    segments = []
    for _ in range(SEGMENTS):
        wave = np.zeros_like(t)
        for base in (120, 480, 1500):
            pitch = base * (1 + 0.1 * rng.standard_normal())
            wave += np.sin(2 * np.pi * pitch * t) * (0.5 + 0.5 * np.sin(2 * np.pi * rng.uniform(1, 5) * t))
        segments.append((wave / 3 + 0.02 * rng.standard_normal(t.size)).astype(np.float32))
    return segments


def collapse(ids):
    """CTC: drop repeats, then blanks."""
    chars, previous = [], -1
    for i in ids:
        if i != previous and i != 0:
            chars.append(ALPHABET[i])
        previous = i
    return "".join(chars)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    opt = parser.parse_args()
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    config = Wav2Vec2Config(vocab_size=len(ALPHABET), hidden_size=384, num_hidden_layers=6, num_attention_heads=6,
                            intermediate_size=1536, conv_dim=(256,) * 7, pad_token_id=0)
    model = Wav2Vec2ForCTC(config).to("cuda").eval()
    extractor = Wav2Vec2FeatureExtractor(feature_size=1, sampling_rate=RATE, padding_value=0.0, do_normalize=True,
                                         return_attention_mask=False)
    calls = [make_call(rng) for _ in range(6)]

    @torch.inference_mode()
    def transcribe(call):
        inputs = extractor(call, sampling_rate=RATE, return_tensors="pt", padding=True)
        values = inputs.input_values.to("cuda")
        logits = model(values).logits
        ids = logits.argmax(-1).cpu().tolist()
        text = [collapse(row) for row in ids]
        if not opt.fixed:
            del inputs, values, logits
            gc.collect()
            torch.cuda.empty_cache()
        return text

    for i in range(3):
        transcribe(calls[i])

    times, letters, done = [], 0, 0
    begin = time.perf_counter()
    while time.perf_counter() - begin < 3.0:
        start = time.perf_counter()
        text = transcribe(calls[done % len(calls)])
        times.append(time.perf_counter() - start)
        letters += sum(map(len, text))
        done += 1
    print(f"{done} calls, {letters} letters")
    print(f"round_ms {1000 * statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
