"""Photometric redshift regression with a deep residual MLP in JAX."""
import argparse
import os
import statistics
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--depth", type=int, default=24)
parser.add_argument("--width", type=int, default=384)
parser.add_argument("--seconds", type=float, default=3.0)
args = parser.parse_args()

N_OBJECTS, N_BANDS, BATCH, LR = 200_000, 32, 512, 3e-4
STEPS_PER_ROUND = 20


def make_catalogue(key):
    k1, k2, k3 = jax.random.split(key, 3)
    mags = jax.random.normal(k1, (N_OBJECTS, N_BANDS))
    w = jax.random.normal(k2, (N_BANDS,)) / N_BANDS**0.5
    z = jnp.tanh(mags @ w) + 0.05 * jax.random.normal(k3, (N_OBJECTS,))
    return mags, z


def init_params(key):
    keys = jax.random.split(key, args.depth + 2)
    dense = lambda k, i, o: {"w": jax.random.normal(k, (i, o)) / i**0.5, "b": jnp.zeros(o)}
    return {
        "embed": dense(keys[0], N_BANDS, args.width),
        "blocks": [dense(k, args.width, args.width) for k in keys[1:-1]],
        "head": dense(keys[-1], args.width, 1),
    }


def forward(params, x):
    h = x @ params["embed"]["w"] + params["embed"]["b"]
    for blk in params["blocks"]:
        r = h / jnp.sqrt(jnp.mean(h * h, axis=-1, keepdims=True) + 1e-6)
        h = h + 0.3 * jax.nn.gelu(r @ blk["w"] + blk["b"])
    return (h @ params["head"]["w"] + params["head"]["b"])[:, 0]


def loss_fn(params, x, y):
    err = forward(params, x) - y
    return jnp.mean(err**2), jnp.mean(jnp.abs(err) > 0.15)


@jax.jit
def train_step(params, momentum, key, mags, z):
    key, sub = jax.random.split(key)
    idx = jax.random.randint(sub, (BATCH,), 0, N_OBJECTS)
    (loss, outliers), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, mags[idx], z[idx])
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
    params = jax.tree.map(lambda p, m: p - LR * m, params, momentum)
    metrics = {"loss": loss, "outlier_rate": outliers}
    for i, g in enumerate(grads["blocks"]):
        metrics[f"grad_norm/block{i}"] = jnp.linalg.norm(g["w"])
        metrics[f"weight_norm/block{i}"] = jnp.linalg.norm(params["blocks"][i]["w"])
    return params, momentum, key, metrics


def main():
    key = jax.random.key(0)
    mags, z = make_catalogue(key)
    params = init_params(jax.random.key(1))
    momentum = jax.tree.map(jnp.zeros_like, params)
    history = []

    def epoch(params, momentum, key):
        for step in range(STEPS_PER_ROUND):
            params, momentum, key, metrics = train_step(params, momentum, key, mags, z)
            if not args.fixed or step == STEPS_PER_ROUND - 1:
                history.append({name: float(v) for name, v in metrics.items()})
        return params, momentum, key

    for _ in range(3):
        params, momentum, key = epoch(params, momentum, key)
    rounds = []
    stop = time.perf_counter() + args.seconds
    while time.perf_counter() < stop:
        t0 = time.perf_counter()
        params, momentum, key = epoch(params, momentum, key)
        rounds.append((time.perf_counter() - t0) * 1e3)
    print(f"loss {history[0]['loss']:.4f} -> {history[-1]['loss']:.4f}")
    print(f"round_ms {statistics.median(rounds):.3f}")


if __name__ == "__main__":
    main()
