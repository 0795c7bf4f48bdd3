"""A loop of Python that leaves the device idle, each time for another reason: loop_guest.py HOW [ROUNDS].

    collect   runs the garbage collector over many objects
    lock      takes a lock that another thread holds while it sleeps
    queue     waits for what another thread puts into a queue
    sleep     sleeps
    read      reads a file
    accept    waits for a client
    item      waits for the device after a few kernels, at two lines
Threads that the loop waits for begin when it wants something: it waits for them on any machine, also on one where the loop
itself is slow.
Status 77: there is no driver.
"""
import ctypes
import gc
import queue
import socket
import sys
import tempfile
import threading
import time

PTX = b".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n"
how, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit(77)


def do(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    assert result == 0, f"{name} gave {result}"


def start_cuda():
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    do("cuInit", 0)
    do("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    do("cuCtxSetCurrent", context)
    do("cuModuleLoadData", ctypes.byref(module), PTX)
    do("cuModuleGetFunction", ctypes.byref(kernel), module, b"nothing")
    return kernel


def launch_kernels(kernel):
    for _ in range(10):
        do("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    do("cuCtxSynchronize")


class Collect:
    def __init__(self):
        self.objects = [[i] for i in range(200000)]

    def round(self):
        gc.collect()


class Lock:
    def __init__(self):
        self.lock, self.wanted, self.held = threading.Lock(), threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self.hold, daemon=True).start()

    def hold(self):
        while True:
            self.wanted.acquire()
            with self.lock:
                self.held.release()
                time.sleep(0.006)

    def round(self):
        self.wanted.release()
        self.held.acquire()
        with self.lock:
            pass


class Queue:
    def __init__(self):
        self.queue, self.wanted = queue.Queue(1), threading.Semaphore(0)
        threading.Thread(target=self.fill, daemon=True).start()

    def fill(self):
        while self.wanted.acquire():
            time.sleep(0.005)
            self.queue.put(bytes(1000))

    def round(self):
        self.wanted.release()
        self.queue.get()


class Sleep:
    def round(self):
        time.sleep(0.004)


class Read:
    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(dir=".")
        self.file.write(bytes(16 << 20))
        self.file.flush()

    def round(self):
        with open(self.file.name, "rb") as file:
            file.read()


class Accept:
    def __init__(self):
        self.listener, self.wanted = socket.create_server(("127.0.0.1", 0)), threading.Semaphore(0)
        threading.Thread(target=self.ask, daemon=True).start()

    def ask(self):
        while self.wanted.acquire():
            time.sleep(0.006)
            socket.create_connection(self.listener.getsockname()).close()

    def round(self):
        self.wanted.release()
        self.listener.accept()[0].close()


class Item:
    def round(self):
        for _ in range(5):
            do("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
            cuda.cuCtxSynchronize()  # waits in the loop
        cuda.cuCtxSynchronize()


work = {"item": Item, "collect": Collect, "lock": Lock, "queue": Queue, "sleep": Sleep, "read": Read, "accept": Accept}[how]()
kernel = start_cuda()
for _ in range(rounds):
    launch_kernels(kernel)
    work.round()
