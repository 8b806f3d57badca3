"""The data plane "stream": bytes between the node's socket and a connection."""

import os
import select
import socket
import struct
import threading
import time

CHUNK = 256 << 10
LINGER = 10  # seconds that the last bytes of a closed link may take
IN, OUT = select.POLLIN, select.POLLOUT
GONE = select.POLLHUP | select.POLLERR


class Pump:
    """Passes bytes both ways until both have ended, or something fails.

    near is our end of a socket pair whose other end the proc has; tail is the writing
    end of a pipe that tells the proc an orderly end from our death.
    """

    def __init__(self, near, tail, conn, ended):
        self.near, self.tail, self.conn, self.ended = near, tail, conn, ended
        near.setblocking(False)
        self.out, self.back = memoryview(b""), memoryview(b"")  # to conn, to near
        self.near_done = self.conn_done = False  # nothing more comes from there
        self.hung_up = False  # the proc has closed the link

    def start(self):
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        try:
            while not (self.near_done and self.conn_done and not self.out and not self.back):
                self._step()
                if self.hung_up:
                    self._flush()
                    break
        except OSError:
            # Bytes may be lost: our peer must not read an orderly end, and the proc does
            # not either, for the pipe ends without a byte.
            self.conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        finally:
            self.conn.close()
            self.near.close()
            os.close(self.tail)
            self.ended(self)

    def _step(self):
        """Waits until there is something to do, and does it. What is not taken on one
        side is not read on the other."""
        waiter = select.poll()
        waiter.register(self.near, (0 if self.near_done or self.out else IN) | (OUT if self.back else 0))
        events = (0 if self.conn_done or self.back else IN) | (OUT if self.out else 0)
        if events:  # or it would report its hangup again and again
            waiter.register(self.conn, events)
        ready = dict(waiter.poll())
        near, conn = ready.get(self.near.fileno(), 0), ready.get(self.conn.fileno(), 0)
        if near & GONE:
            self.hung_up = True
            return
        if near & IN:
            self._outward()
        if near & OUT:
            self._inward(b"")
        if conn & (OUT | GONE) and self.out:
            self._outward()
        if conn & (IN | GONE) and not self.back and not self.conn_done:
            try:
                data = self.conn.recv(CHUNK)
            except BlockingIOError:
                return
            self.conn_done = not data
            self._inward(data)

    def _outward(self):
        """Passes on what the proc has sent."""
        if not self.out:
            try:
                self.out = memoryview(self.near.recv(CHUNK))
            except BlockingIOError:
                return
            self.near_done = not self.out
        if self.out:
            self.out = self.out[sent(self.conn, self.out):]
        if self.near_done:
            self.conn.shutdown(socket.SHUT_WR)

    def _inward(self, data):
        """Passes on what has come, after what is left of the last time."""
        self.back = self.back or memoryview(data)
        if self.back:
            self.back = self.back[sent(self.near, self.back):]
        if self.conn_done and not self.back:
            os.write(self.tail, b"e")  # before the end, which it explains
            self.near.shutdown(socket.SHUT_WR)

    def _flush(self):
        """Passes on what a proc has sent that has closed its link."""
        deadline = time.monotonic() + LINGER
        while not self.near_done or self.out:
            if not self.out:
                self._outward()
                continue
            waiter = select.poll()
            waiter.register(self.conn, OUT)
            left = deadline - time.monotonic()
            if left <= 0 or not waiter.poll(left * 1000):
                raise TimeoutError("the peer does not read")
            self._outward()


def sent(to, data):
    """How many bytes a socket takes now."""
    try:
        return to.send(data, socket.MSG_NOSIGNAL)
    except BlockingIOError:
        return 0
