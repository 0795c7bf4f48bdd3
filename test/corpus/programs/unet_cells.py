"""Segment cells in microscope tiles with a UNet; watch weights and gradients closely."""
import argparse
import collections
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

CFG = dict(tile=160, batch=6, base=32, depth=4, lr=5e-4, warm=15, seconds=2.3, show_every=50)


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, base, depth):
        super().__init__()
        chans = [base * 2 ** k for k in range(depth + 1)]
        self.down = nn.ModuleList([double_conv(1, base)] + [double_conv(a, b) for a, b in zip(chans, chans[1:])])
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(chans, chans[1:]))
        self.join = nn.ModuleList(double_conv(2 * a, a) for a in chans[:-1])
        self.out = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        kept = []
        for k, block in enumerate(self.down):
            x = block(x if k == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        x = kept.pop()
        for up, join in zip(reversed(self.up), reversed(self.join)):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.out(x)


def paint_cells(count, tile):
    grid = torch.arange(tile, device="cuda", dtype=torch.float32)
    mask = torch.zeros(count, tile, tile, dtype=torch.bool, device="cuda")
    for _ in range(12):
        cy, cx = torch.rand(2, count, 1, 1, device="cuda") * tile
        r = torch.rand(count, 1, 1, device="cuda") * 10 + 5
        mask |= (grid[None, :, None] - cy) ** 2 + (grid[None, None, :] - cx) ** 2 < r * r
    target = mask.float().unsqueeze(1)
    return target * 0.8 + 0.3 * torch.randn_like(target), target


def dice_bce(logits, target):
    p = torch.sigmoid(logits)
    dice = 1 - (2 * (p * target).sum() + 1) / (p.sum() + target.sum() + 1)
    return dice + F.binary_cross_entropy_with_logits(logits, target)


class History:
    """Curves for the dashboard."""

    def __init__(self):
        self.curves = collections.defaultdict(list)

    def put(self, name, value):
        self.curves[name].append(value)

    def watch_each(self, model):
        for name, p in model.named_parameters():
            grad_norm = p.grad.norm().item()
            weight_norm = p.detach().norm().item()
            self.put("grad_norm/" + name, grad_norm)
            self.put("weight_norm/" + name, weight_norm)
            self.put("grad_max/" + name, p.grad.abs().max().item())
            self.put("ratio/" + name, grad_norm / (weight_norm + 1e-12))

    def watch_together(self, model):
        names, params = zip(*model.named_parameters())
        grads = [p.grad for p in params]
        table = torch.stack([torch.stack(torch._foreach_norm(grads)),
                             torch.stack(torch._foreach_norm([p.detach() for p in params])),
                             torch.stack(torch._foreach_norm(grads, float("inf")))]).tolist()
        for name, grad_norm, weight_norm, largest in zip(names, *table):
            self.put("grad_norm/" + name, grad_norm)
            self.put("weight_norm/" + name, weight_norm)
            self.put("grad_max/" + name, largest)
            self.put("ratio/" + name, grad_norm / (weight_norm + 1e-12))


def learn(net, images, masks, opt, sched, history, fixed):
    step, t0 = 0, None
    while True:
        if step == CFG["warm"]:
            torch.cuda.synchronize()
            t0 = time.perf_counter()
        pick = torch.randint(0, images.shape[0], (CFG["batch"],), device="cuda")
        loss = dice_bce(net(images[pick]), masks[pick])
        opt.zero_grad(set_to_none=True)
        if not fixed:
            history.put("loss", loss.item())
        loss.backward()
        if not fixed:
            history.watch_each(net)
        elif step % CFG["show_every"] == 0:
            history.put("loss", loss.item())
            history.watch_together(net)
        opt.step()
        sched.step()
        step += 1
        if step % CFG["show_every"] == 0:
            print(f"step {step} loss {history.curves['loss'][-1]:.4f}")
        if t0 is not None and time.perf_counter() - t0 > CFG["seconds"]:
            break
    torch.cuda.synchronize()
    return (time.perf_counter() - t0) * 1000 / (step - CFG["warm"])


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--fixed", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(14)
    images, masks = paint_cells(256, CFG["tile"])
    net = UNet(CFG["base"], CFG["depth"]).cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=CFG["lr"], fused=True)
    sched = torch.optim.lr_scheduler.StepLR(opt, 200, 0.7)
    history = History()
    ms = learn(net, images, masks, opt, sched, history, args.fixed)
    print(f"{len(history.curves)} curves kept")
    print(f"round_ms {ms:.4f}")


if __name__ == "__main__":
    main()
