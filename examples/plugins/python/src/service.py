"""The service impi.transport.v1.Transport over a transport."""

import os
import socket
import threading
import time

import grpc

import transport_pb2 as pb
from errors import BadSetting, Failure
from pump import Pump

MAX_WAITING = 256  # links that nobody has opened
KEPT = 1024  # answers for those who ask again
SDK = "impi-python-example/1"


class Call:
    """One request, carried out once however often it is sent."""

    def __init__(self, method):
        self.method, self.answer, self.refused = method, None, None
        self.abandoned, self.done = False, threading.Event()


class Listening:
    def __init__(self, sock, address):
        self.sock, self.address, self.stopped = sock, address, False


class Service:
    def __init__(self, transport, channel, log, leave, versions):
        self.t, self.channel, self.log, self.leave, self.versions = transport, channel, log, leave, versions
        self.lock = threading.Condition()
        self.calls, self.ended = {}, []
        self.links, self.listeners, self.pumps = {}, {}, set()
        self.room = threading.Semaphore(MAX_WAITING)
        self.last_id = self.last_event = self.dialling = 0
        self.pending = []  # events that still matter
        self.draining = False
        self.counts = dict.fromkeys(["dials", "dial_errors", "accepts", "handed_over"], 0)

    # Requests.

    def call(self, method, req, context):
        """Carries a request out, or gives the answer of the same one before."""
        key, limit = req.call.key, req.call.timeout_ms
        if not 0 < len(key) <= 64 or limit == 0:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "call needs a key of 1 to 64 bytes and a timeout_ms of 1 or more")
        with self.lock:
            c = self.calls.get(key)
            first = c is None
            if first:
                c = self.calls[key] = Call(method)
        if c.method not in (method, None):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"the key {key!r} is that of another request")
        if first:
            self._carry_out(c, key, req, time.monotonic() + min(limit / 1000, 3600))
        elif not c.done.wait(min(limit / 1000, 3600)):
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the first request of this key still runs")
        if c.abandoned:
            context.abort(grpc.StatusCode.CANCELLED, "the request was abandoned")
        if c.refused:
            context.abort(grpc.StatusCode.INTERNAL, c.refused)
        return c.answer

    def _carry_out(self, c, key, req, deadline):
        try:
            c.answer = getattr(self, "_" + c.method)(req, deadline, lambda: c.abandoned)
        except Exception as e:  # a fault of ours: the node should know
            c.refused = repr(e)
            self.log("error", "request failed", method=c.method, error=repr(e))
        with self.lock:
            undo = c.abandoned
            self._keep(key)
            c.done.set()
        if undo:
            self._undo(c.answer)

    def _keep(self, key):
        self.ended.append(key)
        if len(self.ended) > KEPT:
            self.calls.pop(self.ended.pop(0), None)

    def _Abandon(self, req, deadline, cancelled):
        with self.lock:
            c = self.calls.get(req.key)
            if c is None:  # it has not come yet
                c = self.calls[req.key] = Call(None)
                c.abandoned = True
                c.done.set()
                self._keep(req.key)
                return pb.AbandonResponse()
            again, c.abandoned = c.abandoned, True
            undo = c.done.is_set() and not again
        if undo:
            self._undo(c.answer)
        return pb.AbandonResponse()

    def _undo(self, answer):
        if isinstance(answer, pb.DialResponse) and answer.link_id:
            self._drop(answer.link_id)
        if isinstance(answer, pb.ListenResponse) and answer.listener_id:
            self._stop(answer.listener_id)

    # What the plugin is.

    def _Info(self, req, deadline, cancelled):
        return pb.InfoResponse(name=self.t.name, version=self.t.version, vendor=self.t.vendor, sdk=SDK, pid=os.getpid(),
                               protocols=self.versions)

    def _Schema(self, req, deadline, cancelled):
        out = pb.SchemaResponse()
        for name, kind, default, doc in self.t.schema:
            s = out.settings.add(name=name, type=kind, doc=doc, required=default is None)
            if default is not None:
                field = {"string": "text", "number": "number", "bool": "truth"}[kind]
                setattr(s.default, field, default)
        return out

    def _Configure(self, req, deadline, cancelled):
        settings = {}
        for name, v in req.settings.items():
            kind = v.WhichOneof("kind")
            settings[name] = list(v.list.items) if kind == "list" else getattr(v, kind)
        try:
            self.t.configure(settings)
        except BadSetting as e:
            error = pb.Error(code="internal", reason=str(e))
            error.settings.add(name=e.name, problem=e.problem, remedy=e.remedy)
            return pb.ConfigureResponse(error=error)
        return pb.ConfigureResponse()

    def _Capabilities(self, req, deadline, cancelled):
        return pb.CapabilitiesResponse(data_planes=["stream"], features=self.t.features, reach=self.t.reach)

    def _Stats(self, req, deadline, cancelled):
        with self.lock:
            return pb.StatsResponse(listeners=len(self.listeners), waiting=len(self.links), pumped=len(self.pumps), **self.counts)

    def _Health(self, req, deadline, cancelled):
        return pb.HealthResponse(problem=self.t.problem())

    # Listeners.

    def _Listen(self, req, deadline, cancelled):
        port = req.port or (self.t.port(req.reopen) if req.reopen else 0)
        try:
            self._refuse_if_draining()
            sock, address = self.t.listen(req.host, port, req.dir, req.name)
        except Failure as e:
            return pb.ListenResponse(error=wire(e))
        n = Listening(sock, address)
        with self.lock:
            self.last_id += 1
            id = self.last_id
            self.listeners[id] = n
        threading.Thread(target=self._accept, args=(id, n), daemon=True).start()
        return pb.ListenResponse(listener_id=id, address=address)

    def _accept(self, id, n):
        """Announces links as long as there is room for them."""
        while True:
            self.room.acquire()
            try:
                conn = self.t.accepted(n.sock.accept()[0])
            except OSError as e:
                self.room.release()
                if n.stopped:
                    return
                self.log("warn", "cannot accept", address=n.address, error=str(e))
                time.sleep(0.05)
                continue
            with self.lock:
                if n.stopped:
                    self.room.release()
                    conn.close()
                    return
                self.counts["accepts"] += 1
                link = self._hold(conn, id)
                self._event(accepted=pb.Accepted(listener_id=id, link_id=link))

    def _StopListen(self, req, deadline, cancelled):
        self._stop(req.listener_id)
        return pb.StopListenResponse()

    def _stop(self, id):
        with self.lock:
            n = self.listeners.pop(id, None)
            if n is None:
                return
            n.stopped = True
            waiting = [k for k, (_, listener) in self.links.items() if listener == id]
        n.sock.shutdown(socket.SHUT_RDWR)  # wakes accept
        n.sock.close()
        for link in waiting:
            self._drop(link)

    # Links.

    def _hold(self, conn, listener):
        """Keeps a link for which there is room. The caller has the lock."""
        self.last_id += 1
        self.links[self.last_id] = (conn, listener)
        return self.last_id

    def _release(self, id):
        with self.lock:
            conn, _ = self.links.pop(id, (None, 0))
            self.pending = [e for e in self.pending if e.accepted.link_id != id]
        if conn is not None:
            self.room.release()
        return conn

    def _drop(self, id):
        conn = self._release(id)
        if conn is not None:
            conn.close()

    def _CloseLink(self, req, deadline, cancelled):
        self._drop(req.link_id)
        return pb.CloseLinkResponse()

    def _Dial(self, req, deadline, cancelled):
        with self.lock:
            self.counts["dials"] += 1
            self.dialling += 1
        try:
            self._refuse_if_draining()
            conn = self.t.dial(req.address, getattr(req, "from"), deadline, cancelled)
            if not self.room.acquire(blocking=False):
                conn.close()
                raise Failure("resource", f"{MAX_WAITING} links wait in the plugin for their node to open them", True)
            with self.lock:
                return pb.DialResponse(link_id=self._hold(conn, 0))
        except Failure as e:
            with self.lock:
                self.counts["dial_errors"] += 1
            return pb.DialResponse(error=wire(e))
        finally:
            with self.lock:
                self.dialling -= 1
                self.lock.notify_all()

    def _OpenDataPlane(self, req, deadline, cancelled):
        conn = self._release(req.link_id)
        if conn is None:
            return pb.OpenDataPlaneResponse(error=pb.Error(code="internal", reason=f"link {req.link_id} does not wait here"))
        if "stream" not in req.modes:
            conn.close()
            return pb.OpenDataPlaneResponse(error=pb.Error(
                code="unsupported", reason=f"the link can do data plane stream; the node wants {', '.join(req.modes)}"))
        try:
            self._pump(req.link_id, conn)
        except OSError as e:
            conn.close()
            return pb.OpenDataPlaneResponse(error=pb.Error(code="resource", retryable=True, reason=str(e)))
        return pb.OpenDataPlaneResponse(mode="stream", reason="the link is a connection inside a plugin in Python, which can do stream only")

    def _pump(self, id, conn):
        near, theirs = socket.socketpair()
        tail, ours = os.pipe()
        try:
            self.channel.send_stream(id, [theirs.fileno(), tail])
        except OSError:
            near.close()
            os.close(ours)
            raise
        finally:  # with a copy left the node would not see the end
            theirs.close()
            os.close(tail)
        p = Pump(near, ours, conn, self._pumped)
        with self.lock:
            self.counts["handed_over"] += 1
            self.pumps.add(p)
        p.start()

    def _pumped(self, p):
        with self.lock:
            self.pumps.discard(p)

    # Events.

    def _event(self, **kind):
        """Numbers an event and publishes it. The caller has the lock."""
        self.last_event += 1
        self.pending.append(pb.Event(sequence=self.last_event, **kind))
        self.lock.notify_all()

    def events(self, req, context):
        """Reports until the node hangs up."""
        last = req.after
        context.add_callback(self._wake)
        while context.is_active():
            with self.lock:
                news = [e for e in self.pending if e.sequence > last]
                if not news:
                    self.lock.wait(1)
                    continue
            for e in news:
                yield e
                last = e.sequence

    def _wake(self):
        with self.lock:
            self.lock.notify_all()

    # The end.

    def _refuse_if_draining(self):
        if self.draining:
            raise Failure("resource", "the plugin is being stopped", True)

    def _Drain(self, req, deadline, cancelled):
        self.draining = True
        for id in list(self.listeners):
            self._stop(id)
        with self.lock:
            self.lock.wait_for(lambda: self.dialling == 0, max(0, deadline - time.monotonic()))
            return pb.DrainResponse(unfinished=self.dialling)

    def close(self):
        for id in list(self.listeners):
            self._stop(id)


def wire(e):
    return pb.Error(code=e.code, reason=e.reason, retryable=e.retryable)
