"""near-cpus: the program runs on the CPUs that are nearest to the device

causes: os-scheduling, pageable-copy, exposed-copy, launch-bound
exact: yes
mend: near-cpus
asks: yes
write: start the program with numactl --cpunodebind=N --membind=N, where N is the node of the device
"""
import os


def cpus_of(text):
    """The numbers of a list such as 0-3,8."""
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            found.update(range(int(first), int(last or first) + 1))
    return found


def near(properties):
    """CPUs of the node of a device; none where the machine has one node only."""
    place = f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"
    with open(f"/sys/bus/pci/devices/{place}/numa_node", encoding="ascii") as f:
        node = int(f.read())
    if node < 0:
        return set()
    with open(f"/sys/devices/system/node/node{node}/cpulist", encoding="ascii") as f:
        return cpus_of(f.read())


def apply(trial):
    def change(module):
        import torch
        own = os.sched_getaffinity(0)
        wanted = near(torch.cuda.get_device_properties(torch.cuda.current_device())) & own
        if wanted and wanted != own and trial.changes("near-cpus"):
            # Threads that it starts later inherit it.
            for thread in os.listdir("/proc/self/task"):
                os.sched_setaffinity(int(thread), wanted)
            trial.did("near-cpus")
        return True
    trial.model.append(change)
