"""Serve sentence embeddings over HTTP to a few clients."""
import argparse
import http.client
import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
import torch.nn as nn


class Embedder(nn.Module):
    def __init__(self, vocab=20000, dim=768, layers=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 12, 4 * dim, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids):
        return nn.functional.normalize(self.enc(self.emb(ids)).mean(1), dim=-1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    model = None
    lock = threading.Lock()

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        ids = json.loads(self.rfile.read(size))["ids"]
        with self.lock, torch.inference_mode():
            vec = self.model(torch.tensor(ids, device="cuda").clamp(max=19999))
            body = json.dumps({"embedding": vec.float().cpu()[:, :16].tolist()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, fmt, *args):
        pass


def client(port, n, seed, latencies):
    rng = random.Random(seed)
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for _ in range(n):
        time.sleep(rng.expovariate(1 / 0.12))
        payload = json.dumps({"ids": [[rng.randrange(20000) for _ in range(64)] for _ in range(8)]})
        t0 = time.perf_counter()
        conn.request("POST", "/embed", payload, {"Content-Type": "application/json"})
        resp = conn.getresponse()
        resp.read()
        latencies.append((t0, time.perf_counter() - t0))
    conn.close()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=66, help="requests in all")
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(0)
    Handler.model = Embedder().cuda().to(torch.bfloat16).eval()
    with torch.inference_mode():
        Handler.model(torch.zeros(8, 64, dtype=torch.long, device="cuda")).cpu()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    port = server.server_address[1]
    latencies = []
    clients = [threading.Thread(target=client, args=(port, max(1, args.steps // 3), s, latencies)) for s in range(3)]
    for c in clients:
        c.start()
    for c in clients:
        c.join()
    server.shutdown()
    thread.join()
    server.server_close()
    latencies.sort()
    kept = [d for _, d in latencies[len(latencies) // 4:]]
    print(f"served {len(latencies)} requests")
    print(f"round_ms {1e3 * sum(kept) / len(kept):.3f}")


if __name__ == "__main__":
    main()
