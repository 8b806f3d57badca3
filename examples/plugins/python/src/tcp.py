"""A transport over TCP. Write your own with the same methods."""

import errno
import ipaddress
import select
import socket
import time

from errors import BadSetting, Failure


class Transport:
    name, version, vendor = "python", "1.0.0", "the impi examples"
    reach = "network"
    features = []

    # name, type, default, what it does
    schema = [("nodelay", "bool", True, "send small packets at once (TCP_NODELAY)")]

    def __init__(self):
        self.nodelay = True

    def configure(self, settings):
        """Takes all settings, or raises BadSetting and takes none."""
        nodelay = settings.get("nodelay", True)
        if not isinstance(nodelay, bool):
            raise BadSetting("nodelay", "is neither true nor false", "write nodelay = true")
        self.nodelay = nodelay

    def problem(self):
        """What works less well than it could; empty: all is well."""
        return ""

    def listen(self, host, port, directory, name):
        """Gives a listening socket and the address that peers are to dial."""
        try:
            ip = ipaddress.ip_address(host)
        except ValueError:
            raise Failure("address", f"{host[:100]!r} is no IP address") from None
        s = socket.socket(socket.AF_INET6 if ip.version == 6 else socket.AF_INET)
        try:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((host, port))
            s.listen(socket.SOMAXCONN)
        except OSError as e:
            s.close()
            raise failure(e) from None
        bound = s.getsockname()
        return s, f"[{bound[0]}]:{bound[1]}" if ip.version == 6 else f"{bound[0]}:{bound[1]}"

    def accepted(self, conn):
        """Prepares a connection that a peer has made."""
        self._prepare(conn)
        return conn

    def port(self, address):
        """The port of an address that listen has given."""
        return int(address.rsplit(":", 1)[1])

    def dial(self, address, source, deadline, cancelled):
        """Connects. It ends by the deadline (time.monotonic) or soon after cancelled()."""
        host, port = parse(address)
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        try:
            s.setblocking(False)
            if source:
                s.bind((source, 0))
            result = s.connect_ex((host, port))
            while result in (errno.EINPROGRESS, errno.EINTR):
                left = deadline - time.monotonic()
                if left <= 0 or cancelled():
                    raise Failure("timeout", "no answer in time", True)
                waiter = select.poll()
                waiter.register(s, select.POLLOUT)
                if waiter.poll(min(left, 0.05) * 1000):
                    result = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if result:
                raise OSError(result, errno.errorcode.get(result, "?"))
            self._prepare(s)
            return s
        except OSError as e:
            s.close()
            raise failure(e) from None
        except Failure:
            s.close()
            raise

    def _prepare(self, conn):
        conn.setblocking(False)
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(self.nodelay))


def parse(address):
    """Judges an address, which comes from another site."""
    host, colon, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        if len(address) > 100 or not colon or not port.isascii() or not port.isdigit():
            raise ValueError
        if not 0 < int(port) < 65536:
            raise ValueError
        return str(ipaddress.ip_address(host)), int(port)
    except ValueError:
        raise Failure("address", 'it should be "ip:port"') from None


CODES = {
    errno.ECONNREFUSED: ("refused", "nobody listens there"),
    errno.ECONNRESET: ("refused", "the other side hung up at once"),
    errno.EHOSTUNREACH: ("unreachable", "the host cannot be reached"),
    errno.ENETUNREACH: ("unreachable", "there is no route to that network"),
    errno.ETIMEDOUT: ("timeout", "the host does not answer"),
    errno.EADDRNOTAVAIL: ("address", "this machine does not have that address"),
    errno.EADDRINUSE: ("resource", "the address is in use"),
    errno.EMFILE: ("resource", "too many descriptors are open; raise ulimit -n"),
    errno.ENFILE: ("resource", "too many descriptors are open on this machine"),
}


def failure(e):
    """Makes the protocol's error of the system's."""
    code, reason = CODES.get(e.errno, ("internal", str(e)))
    return Failure(code, reason, code in ("refused", "unreachable", "timeout", "resource"))
