package interpreter

import (
	"fmt"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpi"
)

type (
	sendCall  = func(c *mpi.Comm, b mpi.Buffer, dst, tag int) error
	isendCall = func(c *mpi.Comm, b mpi.Buffer, dst, tag int) (mpi.Request, error)
)

var sends = map[string]sendCall{
	"send": (*mpi.Comm).Send, "ssend": (*mpi.Comm).Ssend, "bsend": (*mpi.Comm).Bsend, "rsend": (*mpi.Comm).Rsend,
}

var isends = map[string]isendCall{
	"isend": (*mpi.Comm).Isend, "issend": (*mpi.Comm).Issend, "ibsend": (*mpi.Comm).Ibsend, "irsend": (*mpi.Comm).Irsend,
}

func (in *interpreter) pointToPoint(word string, a *arguments) (string, error) {
	if f := sends[word]; f != nil {
		return "", f(in.comm(a, "comm"), a.outgoing(a.num("n", 0)).items(), a.num("dst", 0), a.num("tag", 0))
	}
	if f := isends[word]; f != nil {
		b := a.outgoing(a.num("n", 0))
		q, err := f(in.comm(a, "comm"), b.items(), a.num("dst", 0), a.num("tag", 0))
		in.requests[a.num("req", 0)] = &request{q, b, false}
		return "", err
	}
	switch word {
	case "recv", "irecv":
		return in.receive(word, a)
	case "wait", "test", "cancel":
		return in.request(word, a)
	case "probe", "iprobe":
		return in.probe(word, a)
	case "sendrecv":
		out, into := a.outgoing(a.num("n", 0)), a.buffer(a.num("rn", 0))
		st, err := in.comm(a, "comm").Sendrecv(out.items(), a.num("dst", 0), a.num("stag", 0),
			into.items(), a.wild("src", mpi.AnySource), a.wild("rtag", mpi.AnyTag))
		return received(st, into), err
	}
	return "", errUnknown
}

func (in *interpreter) receive(word string, a *arguments) (string, error) {
	b := a.buffer(a.num("n", 0))
	c, src, tag := in.comm(a, "comm"), a.wild("src", mpi.AnySource), a.wild("tag", mpi.AnyTag)
	if word == "recv" {
		st, err := c.Recv(b.items(), src, tag)
		return received(st, b), err
	}
	q, err := c.Irecv(b.items(), src, tag)
	in.requests[a.num("req", 0)] = &request{q, b, true}
	return "", err
}

func received(st mpi.Status, b *buffer) string {
	n, _ := st.Count(datatype.Basic(b.kind)) // no error: the type is valid
	return fmt.Sprintf(" source=%d tag=%d count=%d%s", st.Source, st.Tag, n, b.tell(n))
}

func (in *interpreter) request(word string, a *arguments) (string, error) {
	id := a.num("req", 0)
	q := in.requests[id]
	if q == nil {
		return "", fmt.Errorf("there is no request %d", id)
	}
	switch word {
	case "cancel":
		return "", q.Cancel()
	case "test":
		done, st, err := q.Test()
		if err != nil || !done {
			return " done=0", err
		}
		delete(in.requests, id)
		return " done=1" + q.told(st), nil
	}
	st, err := q.Wait()
	delete(in.requests, id)
	return q.told(st), err
}

func (q *request) told(st mpi.Status) string {
	out := fmt.Sprintf(" cancelled=%d", map[bool]int{true: 1}[st.Cancelled()])
	if q.recv && !st.Cancelled() {
		out += received(st, q.buf)
	}
	return out
}

func (in *interpreter) probe(word string, a *arguments) (string, error) {
	c, src, tag := in.comm(a, "comm"), a.wild("src", mpi.AnySource), a.wild("tag", mpi.AnyTag)
	found := true
	var st mpi.Status
	var err error
	if word == "probe" {
		st, err = mpi.Probe(c, src, tag)
	} else {
		found, st, err = mpi.Iprobe(c, src, tag)
	}
	if err != nil || !found {
		return " found=0", err
	}
	n, err := st.Count(datatype.Basic(a.buffer(0).kind))
	return fmt.Sprintf(" found=1 source=%d tag=%d count=%d", st.Source, st.Tag, n), err
}
