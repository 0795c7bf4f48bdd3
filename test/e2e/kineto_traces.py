"""Traces as torch.profiler writes them: of several versions, and of loops that it is used for.

Times are in microseconds. A trace has one thread that launches and one device; the device does what was launched, in
order. What versions differ in is what importers meet: names of categories, threads of streams, times.
"""
import gzip
import json
import random

OLD = (1, 11)  # the last version with the first names of categories
OLD_NAMES = {"cpu_op": "Operator", "user_annotation": "Operator", "kernel": "Kernel", "cuda_runtime": "Runtime",
             "gpu_memcpy": "Memcpy", "gpu_memset": "Memset"}
PID = 4242


class Trace:
    def __init__(self, version="2.4", seed=1):
        self.version = tuple(map(int, version.split(".")))
        self.is_old = self.version[:2] <= OLD
        self.events, self.correlation, self.external = [], 0, 0
        self.now, self.free = 1000.0, 1000.0
        self.rng = random.Random(seed)
        # Since 2.2 times count from baseTimeNanoseconds, with nanoseconds behind the point.
        self.base = 5e9 if self.version >= (2, 2) else 1.7e15

    def about(self, us):
        return us * self.rng.uniform(0.9, 1.1)

    def put(self, category, name, start, end, args=None, on_device=False):
        digits = 3 if self.version >= (2, 2) else 0
        start, end = round(self.base + start, digits), round(self.base + end, digits)
        self.events.append({
            "ph": "X", "cat": OLD_NAMES.get(category, category) if self.is_old else category, "name": name,
            "pid": 0 if on_device else PID,
            "tid": ("stream 7" if on_device else str(PID)) if self.is_old else 7 if on_device else PID,
            "ts": start, "dur": round(end - start, digits), "args": args or {}})

    def call(self, name, us, correlation=0):
        start = self.now
        self.now += self.about(us)
        self.put("cuda_runtime", name, start, self.now, {"correlation": correlation or 90000 + len(self.events)})

    def work(self, category, name, us, correlation, **args):
        start = max(self.now + 2, self.free)
        self.free = start + self.about(us)
        self.put(category, name, start, self.free,
                 dict({"device": 0, "context": 1, "stream": 7, "correlation": correlation}, **args), True)

    def launch(self, kernel, us, call="cudaLaunchKernel"):
        self.correlation += 1
        self.call(call, 6, self.correlation)
        self.work("kernel", kernel, us, self.correlation, grid=[128, 1, 1], block=[256, 1, 1])

    def graph(self, kernels, is_recorded=True):
        self.correlation += 1
        self.call("cudaGraphLaunch", 30, self.correlation)
        for name, us in kernels:
            if is_recorded:
                self.work("kernel", name, us, self.correlation)
            else:
                self.free = max(self.now + 2, self.free) + us

    def wait(self, name="cudaStreamSynchronize"):
        start, self.now = self.now, max(self.now + 3, self.free + 2)
        self.put("cuda_runtime", name, start, self.now, {"correlation": 90000 + len(self.events)})

    def inside(self, category, name, body, args=None):
        self.external += 1
        start, external = self.now, self.external
        self.now += 3
        body()
        self.now += 2
        self.put(category, name, start, self.now, dict({"External id": external}, **(args or {})))

    def op(self, name, *kernels):
        self.inside("cpu_op", name, lambda: [self.launch(k, us) for k, us in kernels])

    def range(self, name, body):
        self.inside("user_annotation", name, body)

    def module(self, name, body):
        self.inside("python_function", "nn.Module: " + name, body)

    def copy_in(self, us=30):
        def body():
            self.correlation += 1
            self.call("cudaMemcpyAsync", 8, self.correlation)
            self.work("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", us, self.correlation, bytes=1 << 20)
        self.inside("cpu_op", "aten::copy_", body)

    def item(self):
        def body():
            self.correlation += 1
            self.call("cudaMemcpyAsync", 8, self.correlation)
            self.work("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 2, self.correlation, bytes=8)
            self.wait()
        self.inside("cpu_op", "aten::_local_scalar_dense", body)

    def json(self, **more):
        head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100", "computeMajor": 8,
                                                          "computeMinor": 0, "numSms": 108}]}
        if self.version >= (2, 2):
            head["baseTimeNanoseconds"] = 1700000000000000000
        return json.dumps(dict(head, traceEvents=self.events, **more))

    def write(self, path, **more):
        with gzip.open(path, "wt") as f:
            f.write(self.json(**more))


# ---- parts of loops ----

def layer(t, us=20):
    t.op("aten::addmm", ("ampere_sgemm_128x64_tn", us))
    t.op("aten::scaled_dot_product_attention", ("flash_fwd_kernel", 2 * us))
    t.op("aten::addmm", ("ampere_sgemm_128x64_tn", us))
    t.op("aten::relu", ("vectorized_elementwise_kernel", us / 4))


def forward(t, n_layers=8, us=20, has_modules=False):
    def block(i):
        if has_modules:
            t.module("Block_%d" % i, lambda: layer(t, us))
        else:
            layer(t, us)

    def body():
        t.op("aten::embedding", ("indexSelect", 3))
        for i in range(n_layers):
            block(i)
        t.op("aten::argmax", ("reduce_kernel", 4))
    if has_modules:
        t.module("Net_0", body)
    else:
        body()


def train_step(t, n_layers=8, us=20):
    t.now += t.about(200)
    t.copy_in()
    forward(t, n_layers, us)
    for _ in range(n_layers):
        t.op("AddmmBackward0", ("ampere_sgemm_128x64_nn", us), ("ampere_sgemm_128x64_nt", us))
        t.op("FlashBackward0", ("flash_bwd_kernel", 3 * us))
    t.op("aten::_foreach_add_", ("multi_tensor_apply_kernel<adam>", 15), ("multi_tensor_apply_kernel<adam>", 15))


# ---- loops ----

def train(version="2.4", n=5, is_marked=True, first=0, **how):
    t = Trace(version)
    for i in range(n):
        if is_marked:
            t.range("ProfilerStep#%d" % (first + i), lambda: train_step(t, **how))
        else:
            train_step(t, **how)
    t.wait("cudaDeviceSynchronize")
    return t


def infer(version="2.4", n=8, has_modules=False):
    t = Trace(version)
    for _ in range(n):
        t.now += t.about(300)
        t.copy_in()
        forward(t, has_modules=has_modules)
        t.item()
    return t


def decode(n=40, name=None, graphs=None):
    """A prefill and then one token after the other."""
    t = Trace("2.6")

    def token(i):
        if graphs is None or not i:
            forward(t, us=8 if i else 40)
        else:
            t.op("aten::embedding", ("indexSelect", 3))
            t.graph([("cutlass_gemm", 80), ("flash_fwd_splitkv_kernel", 40)] * 8, graphs == "nodes")
            t.op("aten::argmax", ("reduce_kernel", 4))
        t.item()
        t.now += t.about(60)
    for i in range(n):
        if name:
            t.range(name(i), lambda: token(i))
        else:
            token(i)
    return t
