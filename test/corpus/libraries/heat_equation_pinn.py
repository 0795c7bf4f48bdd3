"""Physics-informed network for the 1D heat equation, trained with hand-written Adam."""
import argparse
import os
import statistics
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--layers", type=int, default=8)
parser.add_argument("--width", type=int, default=128)
parser.add_argument("--points", type=int, default=2048)
parser.add_argument("--seconds", type=float, default=3.0)
args = parser.parse_args()

ALPHA = 0.05
B1, B2, EPS, LR = 0.9, 0.999, 1e-8, 1e-3


def init_mlp(key):
    sizes = [2] + [args.width] * args.layers + [1]
    params = []
    for k, (i, o) in zip(jax.random.split(key, len(sizes)), zip(sizes[:-1], sizes[1:])):
        params.append((jax.random.normal(k, (i, o)) * (2.0 / (i + o)) ** 0.5, jnp.zeros(o)))
    return params


def u(params, x, t):
    h = jnp.stack([x, t])
    for w, b in params[:-1]:
        h = jnp.tanh(h @ w + b)
    w, b = params[-1]
    return (h @ w + b)[0]


def residual(params, x, t):
    u_t = jax.grad(u, 2)(params, x, t)
    u_xx = jax.grad(jax.grad(u, 1), 1)(params, x, t)
    return u_t - ALPHA * u_xx


def loss_fn(params, xs, ts):
    pde = jax.vmap(residual, (None, 0, 0))(params, xs, ts)
    start = jax.vmap(u, (None, 0, None))(params, xs, 0.0) - jnp.sin(jnp.pi * xs)
    left = jax.vmap(u, (None, None, 0))(params, 0.0, ts)
    right = jax.vmap(u, (None, None, 0))(params, 1.0, ts)
    return jnp.mean(pde**2) + jnp.mean(start**2) + jnp.mean(left**2) + jnp.mean(right**2)


loss_and_grad = jax.jit(jax.value_and_grad(loss_fn))


def adam(params, grads, m, v, step):
    m = jax.tree.map(lambda a, g: B1 * a + (1 - B1) * g, m, grads)
    v = jax.tree.map(lambda a, g: B2 * a + (1 - B2) * g * g, v, grads)
    c1, c2 = 1 - B1**step, 1 - B2**step
    params = jax.tree.map(
        lambda p, a, b: p - LR * (a / c1) / (jnp.sqrt(b / c2) + EPS), params, m, v)
    return params, m, v


if args.fixed:
    adam = jax.jit(adam, donate_argnums=(0, 2, 3))


def main():
    key = jax.random.key(42)
    params = init_mlp(key)
    m = jax.tree.map(jnp.zeros_like, params)
    v = jax.tree.map(jnp.zeros_like, params)
    kx, kt = jax.random.split(jax.random.key(1))
    xs = jax.random.uniform(kx, (args.points,))
    ts = jax.random.uniform(kt, (args.points,))

    step, rounds, losses = 0, [], []
    stop = None
    while stop is None or time.perf_counter() < stop:
        t0 = time.perf_counter()
        for _ in range(10):
            step += 1
            loss, grads = loss_and_grad(params, xs, ts)
            params, m, v = adam(params, grads, m, v, float(step))
        losses.append(float(loss))
        jax.block_until_ready(params)
        if len(losses) > 4:
            rounds.append((time.perf_counter() - t0) * 100)
        elif len(losses) == 4:
            stop = time.perf_counter() + args.seconds
    print(f"{step} steps, loss {losses[0]:.4f} -> {losses[-1]:.5f}")
    print(f"round_ms {statistics.median(rounds):.3f}")


if __name__ == "__main__":
    main()
