"""Generate text greedily with a small GPT and a key/value cache."""
import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads, max_len):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        shape = (1, heads, max_len, dim // heads)
        self.register_buffer("k_cache", torch.zeros(shape))
        self.register_buffer("v_cache", torch.zeros(shape))

    def forward(self, x, pos, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        self.k_cache.index_copy_(2, pos, k)
        self.v_cache.index_copy_(2, pos, v)
        y = F.scaled_dot_product_attention(q, self.k_cache, self.v_cache, attn_mask=mask)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads, max_len):
        super().__init__()
        self.ln1 = nn.LayerNorm(dim)
        self.att = Attention(dim, heads, max_len)
        self.ln2 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x, pos, mask):
        x = x + self.att(self.ln1(x), pos, mask)
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Decoder(nn.Module):
    def __init__(self, vocab=32000, dim=768, heads=12, layers=8, max_len=512):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(max_len, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, max_len) for _ in range(layers))
        self.ln = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.register_buffer("slots", torch.arange(max_len))

    def forward(self, token, pos):
        x = self.tok(token) + self.pos(pos)
        mask = (self.slots <= pos).view(1, 1, 1, -1)
        for block in self.blocks:
            x = block(x, pos, mask)
        return self.head(self.ln(x))[:, -1].argmax(-1, keepdim=True)


class Generator:
    def __init__(self, model, use_graph):
        self.model = model
        self.token = torch.zeros(1, 1, dtype=torch.long, device="cuda")
        self.pos = torch.zeros(1, dtype=torch.long, device="cuda")
        self.graph = self.capture() if use_graph else None

    def step(self):
        self.token.copy_(self.model(self.token, self.pos))
        self.pos.add_(1)

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph

    def next(self):
        if self.graph is not None:
            self.graph.replay()
        else:
            self.step()
        return self.token.clone()


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100, help="tokens to generate (at most 500)")
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(11)
    with torch.device("cuda"):
        model = Decoder().to(torch.bfloat16).eval()
    gen = Generator(model, use_graph=args.fixed)
    gen.token.fill_(17)
    gen.pos.zero_()
    tokens = []
    warm = args.steps // 4
    for i in range(args.steps):
        if i == warm:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        tokens.append(gen.next())
    torch.cuda.synchronize()
    dt = time.perf_counter() - t0
    print("tokens:", torch.cat(tokens, 1)[0, :12].tolist())
    print(f"round_ms {dt * 1e3 / (args.steps - warm):.4f}")


if __name__ == "__main__":
    main()
