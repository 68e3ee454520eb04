"""Hears what another process sends away. Usage: listen.py FOLDER SETTINGS READY

FOLDER becomes the working folder and gets the Unix sockets `stream` and `datagram`; an abstract one and a TCP and a UDP port on the
loopback interface are there too. What comes in is appended to FOLDER/heard, as is what others put into our memory (once a SIGTERM ends
this). SETTINGS gets lines for a shell: SLY_PID, SLY_ADDRESS (64 bytes of this process), SLY_TCP, SLY_UDP; then READY, a FIFO, gets one.
"""
import ctypes
import os
import selectors
import signal
import socket
import sys

folder, settings, ready = sys.argv[1:]
os.chdir(folder)
memory = ctypes.create_string_buffer(64)
ears = selectors.DefaultSelector()


def hear(data):
    with open("heard", "ab") as file:
        file.write(data)


def end(*_):
    hear(memory.raw)
    os._exit(0)


def open_ear(family, kind, address):
    ear = socket.socket(family, kind)
    ear.bind(address)
    if kind == socket.SOCK_STREAM:
        ear.listen(16)
    ears.register(ear, selectors.EVENT_READ, "listener" if kind == socket.SOCK_STREAM else "talk")
    return ear


signal.signal(signal.SIGTERM, end)
open_ear(socket.AF_UNIX, socket.SOCK_STREAM, "stream")
open_ear(socket.AF_UNIX, socket.SOCK_DGRAM, "datagram")
open_ear(socket.AF_UNIX, socket.SOCK_STREAM, f"\0sly-{os.getpid()}")
tcp = open_ear(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
udp = open_ear(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
with open(settings, "w", encoding="ascii") as file:
    file.write(f"export SLY_PID={os.getpid()} SLY_ADDRESS={ctypes.addressof(memory)} SLY_TCP={tcp.getsockname()[1]} SLY_UDP={udp.getsockname()[1]}\n")
with open(ready, "w", encoding="ascii") as file:
    file.write("ready\n")
while True:
    for key, _ in ears.select():
        if key.data == "listener":
            ears.register(key.fileobj.accept()[0], selectors.EVENT_READ, "talk")
            continue
        data = key.fileobj.recv(65536)
        hear(data)
        if not data and key.fileobj.type == socket.SOCK_STREAM:
            ears.unregister(key.fileobj)
            key.fileobj.close()
