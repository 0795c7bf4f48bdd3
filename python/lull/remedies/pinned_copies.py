"""pinned-copies: large copies go through pinned memory and do not wait for the device

causes: pageable-copy, exposed-copy, copies, host-sync
exact: yes
asks: yes
write: copy from pinned memory: x.pin_memory().to(device, non_blocking=True)

pin_memory() copies at once, so the program may change its tensor afterwards; PyTorch reuses the
pinned block only after the device has read it.
"""
import functools

SMALL = 4096  # elements


def apply(trial):
    def patch(torch):
        def is_device(word):
            return str(word).startswith("cuda")

        def staged(original, target):
            @functools.wraps(original)
            def copy(self, *args, **kwargs):
                if (self.device.type == "cpu" and self.numel() > SMALL and target(args, kwargs) and not self.is_pinned()
                        and trial.changes("pinned-copies")):
                    trial.where("pinned-copies", "copy from pinned memory: .pin_memory(), then non_blocking=True")
                    trial.did("pinned-copies")
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
