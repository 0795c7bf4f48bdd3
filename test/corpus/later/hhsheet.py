#!/usr/bin/env python3
"""Hodgkin-Huxley neurons on a cortical sheet, coupled by a Mexican-hat kernel.

The synaptic current is the FFT convolution of the gating variable with a
difference of Gaussians; membranes and gates advance by (exponential) Euler.
Units: mV, ms, mS/cm2, uA/cm2.
"""
import argparse
import time

import cupy as cp

C_M = 1.0
G_NA, G_K, G_L = 120.0, 36.0, 0.3
E_NA, E_K, E_L = 50.0, -77.0, -54.4
TAU_SYN = 6.0


def alpha_beta(v):
    """Rates of the three gates at potential v."""
    am = 0.1 * (v + 40.001) / (1.0 - cp.exp(-(v + 40.001) / 10.0))
    bm = 4.0 * cp.exp(-(v + 65.0) / 18.0)
    ah = 0.07 * cp.exp(-(v + 65.0) / 20.0)
    bh = 1.0 / (1.0 + cp.exp(-(v + 35.0) / 10.0))
    an = 0.01 * (v + 55.001) / (1.0 - cp.exp(-(v + 55.001) / 10.0))
    bn = 0.125 * cp.exp(-(v + 65.0) / 80.0)
    return am, bm, ah, bh, an, bn


def relax(x, a, b, dt):
    """Exponential Euler for dx/dt = a (1 - x) - b x."""
    rate = a + b
    inf = a / rate
    return inf + (x - inf) * cp.exp(-dt * rate)


def advance(v, m, h, n, s, i_ext, dt):
    am, bm, ah, bh, an, bn = alpha_beta(v)
    m = relax(m, am, bm, dt)
    h = relax(h, ah, bh, dt)
    n = relax(n, an, bn, dt)
    i_na = G_NA * m ** 3 * h * (v - E_NA)
    i_k = G_K * n ** 4 * (v - E_K)
    i_l = G_L * (v - E_L)
    v = cp.clip(v + dt * (i_ext - i_na - i_k - i_l) / C_M, -100.0, 70.0)
    release = 1.0 / (1.0 + cp.exp(-(v - 2.0) / 4.0))
    s = s + dt * (release * (1.0 - s) - s / TAU_SYN)
    return v, m, h, n, s


ADVANCE_SRC = """
    const T x = v + (T)40.001, y = v + (T)55.001;
    const T am = (T)0.1 * x / ((T)1 - exp(-x / (T)10));
    const T bm = (T)4 * exp(-(v + (T)65) / (T)18);
    const T ah = (T)0.07 * exp(-(v + (T)65) / (T)20);
    const T bh = (T)1 / ((T)1 + exp(-(v + (T)35) / (T)10));
    const T an = (T)0.01 * y / ((T)1 - exp(-y / (T)10));
    const T bn = (T)0.125 * exp(-(v + (T)65) / (T)80);
    const T mi = am / (am + bm), hi = ah / (ah + bh), ni = an / (an + bn);
    const T m2 = mi + (gm - mi) * exp(-dt * (am + bm));
    const T h2 = hi + (gh - hi) * exp(-dt * (ah + bh));
    const T n2 = ni + (gn - ni) * exp(-dt * (an + bn));
    const T i_na = (T)%(gna)r * m2 * m2 * m2 * h2 * (v - (T)%(ena)r);
    const T i_k = (T)%(gk)r * n2 * n2 * n2 * n2 * (v - (T)(%(ek)r));
    const T i_l = (T)%(gl)r * (v - (T)(%(el)r));
    T v2 = v + dt * (i_ext - i_na - i_k - i_l) / (T)%(cm)r;
    v2 = min(max(v2, (T)-100), (T)70);
    const T rel = (T)1 / ((T)1 + exp(-(v2 - (T)2) / (T)4));
    vo = v2; mo = m2; ho = h2; no = n2;
    so = syn + dt * (rel * ((T)1 - syn) - syn / (T)%(tau)r);
""" % dict(gna=G_NA, ena=E_NA, gk=G_K, ek=E_K, gl=G_L, el=E_L, cm=C_M, tau=TAU_SYN)

advance_kernel = cp.ElementwiseKernel(
    "T v, T gm, T gh, T gn, T syn, T i_ext, float32 dt",
    "T vo, T mo, T ho, T no, T so",
    ADVANCE_SRC, "hh_advance")


class Sheet:
    def __init__(self, rows, cols, dt, seed):
        self.shape, self.dt = (rows, cols), dt
        rng = cp.random.RandomState(seed)
        full = lambda x: cp.full(self.shape, x, dtype=cp.float32)
        self.v = full(-65.0) + 4.0 * rng.standard_normal(self.shape, dtype=cp.float32)
        self.m, self.h, self.n, self.s = full(0.053), full(0.596), full(0.317), full(0.0)
        self.drive = full(7.0) + 3.0 * rng.random_sample(self.shape).astype(cp.float32)
        y = cp.minimum(cp.arange(rows), rows - cp.arange(rows))[:, None]
        x = cp.minimum(cp.arange(cols), cols - cp.arange(cols))[None, :]
        r2 = (x * x + y * y).astype(cp.float32)
        hat = 1.6 * cp.exp(-r2 / 50.0) / 157.0 - 1.1 * cp.exp(-r2 / 450.0) / 1414.0
        self.kernel_f = cp.fft.rfft2(22.0 * hat.astype(cp.float32))

    def synaptic_current(self):
        field = cp.fft.rfft2(self.s)
        field *= self.kernel_f
        return cp.fft.irfft2(field, s=self.shape)

    def step(self, fixed):
        i_ext = self.synaptic_current()
        i_ext += self.drive
        state = (self.v, self.m, self.h, self.n, self.s)
        if fixed:
            state = advance_kernel(*state, i_ext, self.dt)
        else:
            state = advance(*state, i_ext, self.dt)
        self.v, self.m, self.h, self.n, self.s = state


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--rows", type=int, default=3072)
    ap.add_argument("--cols", type=int, default=4096)
    ap.add_argument("--dt", type=float, default=0.02)
    ap.add_argument("--steps", type=int, default=1700)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()

    sheet = Sheet(args.rows, args.cols, args.dt, args.seed)
    sheet.step(args.fixed)
    cp.cuda.Device().synchronize()
    print(f"sheet {args.rows}x{args.cols}, {args.rows * args.cols / 1e6:.1f} M neurons, dt {args.dt} ms")

    skip = args.steps // 4
    start = time.perf_counter()
    for k in range(args.steps):
        if k == skip:
            cp.cuda.Device().synchronize()
            start = time.perf_counter()
        sheet.step(args.fixed)
        if k % 200 == 0:
            print(f"t={k * args.dt:7.2f} ms  <v>={float(sheet.v.mean()):7.2f} mV  "
                  f"firing={float((sheet.v > 0).mean()):.4f}", flush=True)
    cp.cuda.Device().synchronize()
    print(f"round_ms {(time.perf_counter() - start) * 1e3 / (args.steps - skip):.4f}")


if __name__ == "__main__":
    main()
