"""Keyword detection over HTTP: pooled http.server, one acoustic model on the GPU, local load clients."""
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import http.server
import socketserver
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn as nn

RATE, SECONDS, MELS, CLIENTS, WORKERS = 16000, 20, 80, 12, 16


class AcousticModel(nn.Module):
    def __init__(self, width=384, words=40):
        super().__init__()
        blocks, cin = [], MELS
        for _ in range(5):
            blocks += [nn.Conv1d(cin, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU()]
            cin = width
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(width, words)

    def forward(self, mel):
        return self.head(self.body(mel).amax(-1)).softmax(-1)


class Detector:
    def __init__(self, narrow_lock):
        self.model = AcousticModel().cuda().eval()
        self.window = torch.hann_window(1024)
        self.filters = torch.rand(MELS, 513) / 513
        self.lock = threading.Lock()
        self.narrow_lock = narrow_lock

    def features(self, body):
        wave = torch.from_numpy(np.frombuffer(body, dtype=np.float32).copy())
        wave = wave[1:] - 0.97 * wave[:-1]
        power = torch.stft(wave, 1024, 160, window=self.window, return_complex=True).abs().square()
        mel = torch.log(self.filters @ power + 1e-6)
        return (mel - mel.mean(1, keepdim=True)) / (mel.std(1, keepdim=True) + 1e-3)

    def score(self, mel):
        return self.model(mel.unsqueeze(0).cuda())[0].cpu()

    @torch.inference_mode()
    def detect(self, body):
        if self.narrow_lock:
            mel = self.features(body)
            with self.lock:
                return self.score(mel)
        with self.lock:
            return self.score(self.features(body))


class PooledServer(http.server.HTTPServer):
    request_queue_size = 128

    def __init__(self, handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="worker")

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def process_request(self, request, client_address):
        self.pool.submit(self.handle_one, request, client_address)

    def handle_one(self, request, client_address):
        try:
            self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)


def make_handler(detector):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            reply = detector.detect(body).numpy().tobytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *args):
            pass

    return Handler


class Load:
    def __init__(self, url):
        self.url, self.stop, self.finished = url, threading.Event(), [0] * CLIENTS
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def client(self, index):
        clip = np.random.default_rng(index).standard_normal(RATE * SECONDS, dtype=np.float32).tobytes()
        while not self.stop.is_set():
            with self.opener.open(urllib.request.Request(self.url, data=clip), timeout=30) as r:
                np.frombuffer(r.read(), dtype=np.float32)
            self.finished[index] += 1


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(2)
    server = PooledServer(make_handler(Detector(args.fixed)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    load = Load(f"http://127.0.0.1:{server.server_port}/detect")
    threads = [threading.Thread(target=load.client, args=(i,)) for i in range(CLIENTS)]
    for t in threads:
        t.start()
    load.stop.wait(1.0)
    t0, before = time.perf_counter(), sum(load.finished)
    load.stop.wait(2.2)
    t1, after = time.perf_counter(), sum(load.finished)
    load.stop.set()
    for t in threads:
        t.join()
    server.shutdown()
    server.pool.shutdown()
    print(f"requests {after - before}")
    print(f"round_ms {(t1 - t0) * 1e3 / max(after - before, 1):.4f}")


if __name__ == "__main__":
    main()
