"""The plugin's side of docs/plugin-protocol.md, versions 1 and 2, with grpcio alone.

serve(transport) starts it. AutoMTLS is not supported: the job file has to say
auto_mtls = false.
"""

import json
import os
import shutil
import socket
import struct
import sys
import threading
import time
from concurrent import futures

import grpc

import transport_pb2 as pb
from service import Service

COOKIE = ("IMPI_TRANSPORT_PLUGIN", "7d1f0d0e3b5c4a6f9a41c8c2d2f6be11")
VERSIONS = ["1", "2"]  # the newest one last
LEVELS = ["trace", "debug", "info", "warn", "error", "off"]
MAX_MESSAGE = 2 << 20


def log(level, message, **fields):
    """Writes a line that the node logs at this level."""
    wanted = os.environ.get("IMPI_PLUGIN_LOG_LEVEL", "info")
    if LEVELS.index(level) >= (LEVELS.index(wanted) if wanted in LEVELS else 2):
        line = json.dumps({"@level": level, "@message": message, **fields})
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class Channel:
    """Descriptor 3: carries links to the node, and ends when the node does."""

    HEADER = struct.Struct(">4sHHQHHIII")

    def __init__(self):
        os.set_inheritable(3, False)
        self.sock = socket.socket(fileno=3)
        self.lock = threading.Lock()

    def send_stream(self, link, fds):
        """Hands a link over for the data plane "stream"."""
        record = self.HEADER.pack(b"IMPF", 1, 1, link, 4, len(fds), 0, 0, 0)
        with self.lock:
            socket.send_fds(self.sock, [record], fds)

    def wait(self):
        """Returns when the node has died or wants no more."""
        while True:
            try:
                if not self.sock.recv(1 << 17):  # records are for later versions
                    return
            except OSError:
                return


def handlers(service):
    """The gRPC methods: ours, and those that a node of go-plugin wants."""

    def unary(method, request):
        def handle(req, context):
            return service.call(method, req, context)

        return grpc.unary_unary_rpc_method_handler(
            handle, request_deserializer=request.FromString, response_serializer=lambda m: m.SerializeToString())

    names = ["Info", "Schema", "Configure", "Capabilities", "Listen", "StopListen", "Dial", "Abandon",
             "OpenDataPlane", "CloseLink", "Drain", "Stats", "Health"]
    ours = {n: unary(n, getattr(pb, n + "Request")) for n in names}
    ours["Events"] = grpc.unary_stream_rpc_method_handler(
        service.events, request_deserializer=pb.EventsRequest.FromString,
        response_serializer=lambda m: m.SerializeToString())
    raw = grpc.unary_unary_rpc_method_handler
    serving = raw(lambda req, context: b"\x08\x01")  # HealthCheckResponse{status: SERVING}
    stop = raw(lambda req, context: service.leave() or b"")
    return [
        grpc.method_handlers_generic_handler("impi.transport.v1.Transport", ours),
        grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": serving}),
        grpc.method_handlers_generic_handler("plugin.GRPCController", {"Shutdown": stop}),
    ]


def serve(transport):
    """Serves the transport until the node has no more use for it. It does not return."""
    if os.environ.get(COOKIE[0]) != COOKIE[1]:
        sys.exit(f"{sys.argv[0]} is a transport plugin of impi: impi-node starts it when a job's config says so.")
    offered = os.environ.get("PLUGIN_PROTOCOL_VERSIONS", "1").split(",")
    shared = [v for v in VERSIONS if v in offered]
    # Without one in common the node is told our newest, and explains it to the operator.
    version = (shared or VERSIONS)[-1]
    del os.environ[COOKIE[0]]  # processes that we start are no plugins
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed becomes log lines
    channel = Channel()
    directory = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], f"python{os.getpid()}")
    os.mkdir(directory, 0o700)

    def leave():
        def end():
            time.sleep(0.05)  # an answer may be on its way
            service.close()
            shutil.rmtree(directory, ignore_errors=True)
            os._exit(0)

        threading.Thread(target=end, daemon=True).start()

    service = Service(transport, channel, log, leave, [int(v) for v in VERSIONS])
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64), handlers=handlers(service), options=[
        ("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.so_reuseport", 0)])
    path = os.path.join(directory, "s")
    server.add_insecure_port("unix:" + path)
    server.start()
    print(f"1|{version}|unix|{path}|grpc|", file=out, flush=True)
    channel.wait()
    leave()
    threading.Event().wait()  # leave ends the process
