"""Mixture model of star positions: NUTS for the cluster parameters, Gibbs for the memberships (numpyro)."""
import argparse
import os
import statistics
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer.hmc import hmc
from numpyro.infer.util import initialize_model

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--stars", type=int, default=400_000)
parser.add_argument("--clusters", type=int, default=8)
parser.add_argument("--seconds", type=float, default=3.0)
args = parser.parse_args()
K = args.clusters


def make_stars(rng):
    centres = rng.uniform(-10, 10, (K, 2))
    member = rng.integers(0, K, args.stars)
    x = centres[member] + rng.normal(0, 1.0, (args.stars, 2))
    return x.astype(np.float32), member.astype(np.int32)


def model(x, member):
    centre = numpyro.sample("centre", dist.Normal(0, 10).expand([K, 2]).to_event(2))
    log_scale = numpyro.sample("log_scale", dist.Normal(0, 1))
    loc = jnp.dot(jax.nn.one_hot(member, K), centre, precision="highest")
    numpyro.sample("x", dist.Normal(loc, jnp.exp(log_scale)).to_event(2), obs=x)


def membership_logits(xp, x, centre, log_scale):
    d2 = ((x[:, None, :] - centre[None, :, :]) ** 2).sum(-1)
    return -0.5 * d2 * xp.exp(-2 * log_scale)


def sample_members_host(rng, x, params):
    logits = membership_logits(np, x, np.asarray(params["centre"]), np.asarray(params["log_scale"]))
    return np.argmax(logits + rng.gumbel(size=logits.shape), axis=1).astype(np.int32)


@jax.jit
def sample_members_device(key, x, params):
    logits = membership_logits(jnp, x, params["centre"], params["log_scale"])
    return jax.random.categorical(key, logits, axis=1).astype(jnp.int32)


def main():
    rng = np.random.default_rng(11)
    x_host, member = make_stars(rng)
    x, member = jnp.asarray(x_host), jnp.asarray(member)
    info = initialize_model(jax.random.PRNGKey(0), model, dynamic_args=True, model_args=(x, member))
    init_kernel, sample_kernel = hmc(potential_fn_gen=info.potential_fn, algo="NUTS")
    state = init_kernel(info.param_info, num_warmup=60, step_size=0.01, max_tree_depth=4,
                        model_args=(x, member), rng_key=jax.random.PRNGKey(1))

    @jax.jit
    def draw(state, x, member):
        pe, grad = jax.value_and_grad(info.potential_fn(x, member))(state.z)
        state = state._replace(potential_energy=pe, z_grad=grad)
        return sample_kernel(state, model_args=(x, member), model_kwargs={})

    for _ in range(60):
        state = draw(state, x, member)

    def sweep(state, key):
        if args.fixed:
            member = sample_members_device(key, x, state.z)
        else:
            member = jnp.asarray(sample_members_host(rng, x_host, state.z))
        state = draw(state, x, member)
        trace.append(float(state.z["log_scale"]))
        return state

    trace, times = [], []
    keys = iter(jax.random.split(jax.random.PRNGKey(2), 20_000))
    for _ in range(3):
        state = sweep(state, next(keys))
    stop = time.perf_counter() + args.seconds
    while time.perf_counter() < stop:
        t0 = time.perf_counter()
        state = sweep(state, next(keys))
        times.append((time.perf_counter() - t0) * 1e3)
    print(f"{len(times)} sweeps, scale {np.exp(np.mean(trace)):.3f}, accept {float(state.mean_accept_prob):.2f}")
    print(f"round_ms {statistics.median(times):.3f}")


if __name__ == "__main__":
    main()
