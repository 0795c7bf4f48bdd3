"""pinned-copies: large copies go through pinned memory and do not wait for the device

causes: pageable-copy, exposed-copy, copies, host-sync
exact: yes
asks: yes
write: copy from pinned memory: x.pin_memory().to(device, non_blocking=True)

The bytes are copied before the call returns, so the program may change its tensor afterwards. The largest tensors go through
a ring of pinned pieces, which stay in the CPU's cache; the others through pin_memory(). Pinned memory is used again once the
device has read it.
"""
import functools
import threading

SMALL = 4096  # elements
PIECE = 8 << 20  # bytes; on an H200, 4 MB copy as fast at times, at times a tenth slower, 2 MB and 64 MB too; 1 MB half as fast
N_PIECES = 4


class Ring:
    """Pinned pieces for copies to one device."""

    def __init__(self, torch):
        self.torch, self.lock, self.n = torch, threading.Lock(), 0
        with torch.inference_mode(False):
            self.pieces = [(torch.empty(PIECE, dtype=torch.uint8, device="cpu", pin_memory=True), torch.cuda.Event())
                           for _ in range(N_PIECES)]

    def copy(self, target, source):
        """Copy one to the other, both as bytes. The device fetches a piece while the next one is filled."""
        stream = self.torch.cuda.current_stream(target.device)
        with self.lock, self.torch.cuda.stream(stream):
            for at in range(0, source.numel(), PIECE):
                piece, is_read = self.pieces[self.n % N_PIECES]
                self.n += 1
                is_read.synchronize()
                part = source[at:at + PIECE]
                piece = piece[:part.numel()].copy_(part)
                target[at:at + PIECE].copy_(piece, non_blocking=True)
                is_read.record(stream)


class Rings:
    """A ring for each device that large tensors are copied to."""

    def __init__(self, torch):
        self.torch, self.rings, self.lock = torch, {}, threading.Lock()

    def can_take(self, tensor):
        torch = self.torch
        return (type(tensor) is getattr(torch, "Tensor", None) and tensor.numel() * tensor.element_size() > 2 * PIECE
                and tensor.layout is torch.strided and tensor.is_contiguous() and not tensor.is_quantized
                and not tensor.is_conj() and not tensor.is_neg() and not tensor.requires_grad
                and not torch.cuda.is_current_stream_capturing())

    def copy(self, tensor, device):
        torch = self.torch
        out = torch.empty_like(tensor, device=device)
        with self.lock:
            ring = self.rings.get(out.device)
            if ring is None:
                ring = self.rings[out.device] = Ring(torch)
        ring.copy(out.view(-1).view(torch.uint8), tensor.view(-1).view(torch.uint8))
        return out


def apply(trial):
    def patch(torch):
        weight = getattr(getattr(torch, "nn", None), "Parameter", ())
        rings = Rings(torch)

        def is_device(word):
            return str(word).startswith("cuda")

        def staged(original, target):
            @functools.wraps(original)
            def copy(self, *args, **kwargs):
                # Weights are copied once, before the steps.
                if (self.device.type == "cpu" and self.numel() > SMALL and not isinstance(self, weight) and target(args, kwargs)
                        and not self.is_pinned() and trial.changes("pinned-copies")):
                    trial.where("pinned-copies", "copy from pinned memory: .pin_memory(), then non_blocking=True")
                    trial.did("pinned-copies")
                    if not set(kwargs) - {"device", "non_blocking"} and rings.can_take(self):
                        device = args[0] if args else kwargs.get("device")
                        return rings.copy(self, "cuda" if device is None else device)
                    kwargs["non_blocking"] = True
                    return original(self.pin_memory(), *args[:1], **kwargs)
                return original(self, *args, **kwargs)
            return copy

        def to_device(args, kwargs):
            return len(args) <= 1 and "dtype" not in kwargs and is_device(args[0] if args else kwargs.get("device"))

        def cuda_device(args, kwargs):
            return len(args) <= 1
        torch.Tensor.to = staged(torch.Tensor.to, to_device)
        torch.Tensor.cuda = staged(torch.Tensor.cuda, cuda_device)
    trial.when_loaded("torch", patch)
