"""Tagging clinical notes of very different lengths with a small JAX transformer encoder."""
import argparse
import os
import statistics
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--seconds", type=float, default=3.0)
args = parser.parse_args()

VOCAB, DIM, HEADS, LAYERS, TAGS, BATCH = 8000, 256, 4, 2, 12, 16
BUCKETS = (512, 1024)


def init_params(key):
    def mat(k, *shape):
        return jax.random.normal(k, shape) * 0.02

    ks = iter(jax.random.split(key, 4 + LAYERS * 4))
    return {
        "tok": mat(next(ks), VOCAB, DIM),
        "pos": mat(next(ks), 1024, DIM),
        "out": mat(next(ks), DIM, TAGS),
        "layers": [
            {"qkv": mat(next(ks), DIM, 3 * DIM), "proj": mat(next(ks), DIM, DIM),
             "up": mat(next(ks), DIM, 4 * DIM), "down": mat(next(ks), 4 * DIM, DIM)}
            for _ in range(LAYERS)
        ],
    }


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def encode(params, ids, mask):
    b, t = ids.shape
    h = params["tok"][ids] + params["pos"][:t]
    bias = jnp.where(mask[:, None, None, :], 0.0, -1e9)
    for lyr in params["layers"]:
        q, k, v = jnp.split(norm(h) @ lyr["qkv"], 3, axis=-1)
        q, k, v = (a.reshape(b, t, HEADS, -1).transpose(0, 2, 1, 3) for a in (q, k, v))
        att = jax.nn.softmax(q @ k.swapaxes(-1, -2) / (DIM // HEADS) ** 0.5 + bias, axis=-1)
        h = h + (att @ v).transpose(0, 2, 1, 3).reshape(b, t, DIM) @ lyr["proj"]
        h = h + jax.nn.gelu(norm(h) @ lyr["up"]) @ lyr["down"]
    return norm(h) @ params["out"]


def loss_fn(params, ids, tags, mask):
    logp = jax.nn.log_softmax(encode(params, ids, mask))
    nll = -jnp.take_along_axis(logp, tags[..., None], axis=-1)[..., 0]
    return jnp.sum(nll * mask) / jnp.sum(mask)


@jax.jit
def train_step(params, ids, tags, mask):
    loss, grads = jax.value_and_grad(loss_fn)(params, ids, tags, mask)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss


def note_batches(rng):
    """Notes grouped by length, as a length-grouped sampler would return them."""
    while True:
        centre = rng.integers(80, 1000)
        lengths = np.clip(rng.integers(centre - 40, centre + 24, BATCH), 16, 1024)
        yield [rng.integers(1, VOCAB, n).astype(np.int32) for n in lengths]


def collate(notes, length):
    ids = np.zeros((len(notes), length), np.int32)
    mask = np.zeros((len(notes), length), bool)
    for row, note in enumerate(notes):
        ids[row, : len(note)] = note
        mask[row, : len(note)] = True
    return ids, ids % TAGS, mask


def padded_length(notes):
    longest = max(len(n) for n in notes)
    if args.fixed:
        return next(b for b in BUCKETS if b >= longest)
    return longest


def main():
    params = init_params(jax.random.key(0))
    batches = note_batches(np.random.default_rng(7))
    if args.fixed:
        for size in BUCKETS:
            params, loss = train_step(params, *collate([np.ones(size, np.int32)] * BATCH, size))
    for _ in range(2):
        notes = next(batches)
        params, loss = train_step(params, *collate(notes, padded_length(notes)))
    loss.block_until_ready()
    times = []
    end = time.perf_counter() + args.seconds
    while time.perf_counter() < end:
        t0 = time.perf_counter()
        notes = next(batches)
        params, loss = train_step(params, *collate(notes, padded_length(notes)))
        loss.block_until_ready()
        times.append((time.perf_counter() - t0) * 1e3)
    print(f"{len(times)} batches, loss {float(loss):.3f}")
    print(f"round_ms {statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
