"""Keyword spotting: train a small transformer on log-mel features (JAX).

Clips are one second at 16 kHz. Every batch is augmented (time shift, gain,
background noise) before the features are taken.
"""
from argparse import ArgumentParser
from functools import partial
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

RATE, CLIP = 16000, 16000
WIN, HOP, NFFT, NMEL = 400, 160, 512, 64
FRAMES = 1 + (CLIP - WIN) // HOP
CLASSES = 35
WIDTH, HEADS, LAYERS = 512, 8, 6


def mel_filters():
    mel = lambda f: 2595.0 * np.log10(1.0 + f / 700.0)
    inv = lambda m: 700.0 * (10.0 ** (m / 2595.0) - 1.0)
    edges = inv(np.linspace(mel(40.0), mel(RATE / 2), NMEL + 2))
    freqs = np.arange(NFFT // 2 + 1) * RATE / NFFT
    up = (freqs[:, None] - edges[None, :-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[None, 2:] - freqs[:, None]) / (edges[2:] - edges[1:-1])
    return np.maximum(0.0, np.minimum(up, down)).astype(np.float32)


WINDOW = np.hanning(WIN).astype(np.float32)
MEL = mel_filters()


# ---- data ------------------------------------------------------------------
def synthetic_speech(count, rng):
    t = np.arange(CLIP, dtype=np.float32) / RATE
    labels = rng.integers(0, CLASSES, count).astype(np.int32)
    clips = np.empty((count, CLIP), np.int16)
    for i, c in enumerate(labels):
        f0 = 120.0 + 22.0 * c + rng.normal(0.0, 5.0)
        sweep = 40.0 * ((c % 5) - 2)
        phase = np.float32(2 * np.pi) * (np.float32(f0) * t + np.float32(sweep) * t * t)
        env = np.exp(-((t - 0.5) ** 2) / np.float32(0.04))
        clips[i] = (9000.0 * env * (np.sin(phase) + 0.5 * np.sin((2 + c % 3) * phase))).astype(np.int16)
    noise = (rng.standard_normal(60 * RATE) * 900.0).astype(np.int16)
    return clips, labels, noise


def draw_augmentation(rng, n, noise_len):
    """Random parameters of one batch: shift (samples), gain, noise level, noise offset."""
    return (rng.integers(-1600, 1601, n).astype(np.int32),
            rng.uniform(0.5, 1.3, n).astype(np.float32),
            rng.uniform(0.0, 0.6, n).astype(np.float32),
            rng.integers(0, noise_len - CLIP, n).astype(np.int32))


def features_host(clips, noise, aug):
    waves = []
    for clip, shift, gain, level, off in zip(clips, *aug):
        w = np.roll(clip.astype(np.float32), shift) * gain
        w += level * noise[off:off + CLIP].astype(np.float32)
        waves.append(w / 32768.0)
    x = np.stack(waves)
    x = np.concatenate([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], axis=1)
    frames = np.lib.stride_tricks.sliding_window_view(x, WIN, axis=1)[:, ::HOP]
    spec = np.abs(np.fft.rfft(frames * WINDOW, n=NFFT)) ** 2
    mel = np.log(spec @ MEL + 1e-6)
    mel -= mel.mean(axis=1, keepdims=True)
    return mel.astype(np.float32)


def features_device(clips, noise, aug):
    shift, gain, level, off = aug
    pos = jnp.arange(CLIP)
    w = jnp.take_along_axis(clips, (pos[None, :] - shift[:, None]) % CLIP, axis=1)
    w = w.astype(jnp.float32) * gain[:, None]
    w = w + level[:, None] * noise[off[:, None] + pos[None, :]].astype(jnp.float32)
    x = w / 32768.0
    x = jnp.concatenate([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], axis=1)
    at = HOP * jnp.arange(FRAMES)[:, None] + jnp.arange(WIN)[None, :]
    spec = jnp.abs(jnp.fft.rfft(x[:, at] * WINDOW, n=NFFT)) ** 2
    mel = jnp.log(spec @ MEL + 1e-6)
    return mel - mel.mean(axis=1, keepdims=True)


# ---- model -----------------------------------------------------------------
def init_params(key):
    k = iter(jax.random.split(key, 8))
    mat = lambda *s: jax.random.normal(next(k), s, jnp.float32) / np.sqrt(s[-2])
    block = dict(qkv=mat(LAYERS, WIDTH, 3 * WIDTH), out=mat(LAYERS, WIDTH, WIDTH),
                 up=mat(LAYERS, WIDTH, 4 * WIDTH), down=mat(LAYERS, 4 * WIDTH, WIDTH),
                 g1=jnp.ones((LAYERS, WIDTH)), g2=jnp.ones((LAYERS, WIDTH)))
    return dict(inp=mat(NMEL, WIDTH), pos=0.02 * mat(FRAMES, WIDTH), block=block,
                head=mat(WIDTH, CLASSES))


def rms(x, g):
    return x * g * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def forward(params, feats):
    x = feats @ params["inp"] + params["pos"]
    b, t, _ = x.shape

    def layer(x, p):
        q, k, v = jnp.split((rms(x, p["g1"]) @ p["qkv"]).reshape(b, t, 3 * HEADS, WIDTH // HEADS), 3, axis=2)
        a = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(WIDTH // HEADS), axis=-1)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", a, v).reshape(b, t, WIDTH) @ p["out"]
        x = x + jax.nn.gelu(rms(x, p["g2"]) @ p["up"]) @ p["down"]
        return x, None

    x, _ = jax.lax.scan(layer, x, params["block"])
    return x.mean(axis=1) @ params["head"]


def loss_fn(params, feats, labels):
    logp = jax.nn.log_softmax(forward(params, feats))
    return -jnp.mean(jnp.take_along_axis(logp, labels[:, None], axis=1))


def adam(state, feats, labels, lr=2e-4, b1=0.9, b2=0.98):
    loss, g = jax.value_and_grad(loss_fn)(state["p"], feats, labels)
    t = state["t"] + 1
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state["m"], g)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, state["v"], g)
    c1, c2 = 1 - b1 ** t.astype(jnp.float32), 1 - b2 ** t.astype(jnp.float32)
    p = jax.tree.map(lambda p, m, v: p - lr * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), state["p"], m, v)
    return dict(p=p, m=m, v=v, t=t), loss


@partial(jax.jit, donate_argnums=0)
def train_on_features(state, feats, labels):
    return adam(state, feats, labels)


@partial(jax.jit, donate_argnums=0)
def train_on_clips(state, clips, noise, index, aug, labels):
    return adam(state, features_device(clips[index], noise, aug), labels)


def main():
    ap = ArgumentParser()
    ap.add_argument("--steps", type=int, default=170)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--clips", type=int, default=2048)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    rng = np.random.default_rng(3)
    clips, labels, noise = synthetic_speech(args.clips, rng)
    params = init_params(jax.random.PRNGKey(0))
    state = dict(p=params, m=jax.tree.map(jnp.zeros_like, params),
                 v=jax.tree.map(jnp.zeros_like, params), t=jnp.zeros((), jnp.int32))
    if args.fixed:
        clips_dev, noise_dev = jax.device_put(clips), jax.device_put(noise)

    def one_step(state):
        index = rng.integers(0, args.clips, args.batch)
        aug = draw_augmentation(rng, args.batch, len(noise))
        if args.fixed:
            return train_on_clips(state, clips_dev, noise_dev, index.astype(np.int32), aug, labels[index])
        feats = features_host(clips[index], noise, aug)
        return train_on_features(state, jnp.asarray(feats), labels[index])

    state, loss = one_step(state)
    jax.block_until_ready(loss)
    print(f"{args.clips} clips, {FRAMES}x{NMEL} features, backend {jax.default_backend()}, first loss {float(loss):.3f}")

    skip = args.steps // 4
    t0 = perf_counter()
    for step in range(args.steps):
        if step == skip:
            jax.block_until_ready(state)
            t0 = perf_counter()
        state, loss = one_step(state)
        if step % 50 == 49:
            print(f"step {step + 1}  loss {float(loss):.4f}", flush=True)
    jax.block_until_ready(state)
    print(f"round_ms {1e3 * (perf_counter() - t0) / (args.steps - skip):.4f}")


if __name__ == "__main__":
    main()
