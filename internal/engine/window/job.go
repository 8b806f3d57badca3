package window

import (
	"errors"
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
)

type job struct {
	c     *client
	h     rma.Header
	stage stage
	r     *message.Request // the receive of the data or the datatype, or the send of the data
	items *proc.Stream     // of the data
	buf   []byte           // the datatype, or data that is not moved directly to or from the window
	at    rma.Items
}

type stage uint8

const (
	typing    stage = iota // for the datatype
	storing                // for data that is received into the window
	gathering              // for data that is combined once all of it has come
	leaving                // for data to be sent to the origin
	dropping               // for data of a refused operation, which is dropped
)

func (s *server) operation(c *client, h *rma.Header) error {
	if h.SeparateType {
		j := s.newJob(c, h)
		j.buf, j.stage = make([]byte, h.TypeLen), typing
		j.r = s.incomingData(c, h, &proc.Payload{Mem: j.buf})
		return nil
	}
	t, err := s.types.parse(h.Type)
	if err != nil {
		return err
	}
	return s.perform(c, h, t)
}

func (s *server) incomingData(c *client, h *rma.Header, in *proc.Payload) *message.Request {
	return s.w.Process.Irecv(s.w.incoming(wire.CommRank(c.rank), h.DataTag()), c.peer, in)
}

// perform begins an operation whose datatype is known. An error means that the origin does not
// follow the protocol.
func (s *server) perform(c *client, h *rma.Header, t *proc.Datatype) error {
	if h.Passive && s.locks.Excludes(c.rank) {
		return s.refuse(c, h, rma.Conflicting)
	}
	mem, err := s.w.memory.place(h.Disp, h.Count, t)
	switch {
	case s.w.flavor == WinFlavorDynamic && errors.Is(err, rma.ErrRange):
		return s.refuse(c, h, rma.OutOfRange)
	case err != nil:
		return err
	}
	at := rma.Items{Mem: mem, Count: int(h.Count), Type: t, Rep: s.w.Process.Data.DataOf(c.peer)}
	if err := fitting(h, &at); err != nil {
		return err
	}
	switch h.Kind {
	case rma.Put:
		s.store(c, h, at)
	case rma.Get:
		s.fetch(c, h, at)
	case rma.CompareAndSwap:
		old := make([]byte, len(h.Data)/2)
		lock := s.w.memory.lock(s.w.c.Rank())
		at.CompareAndSwap(h.Data, old)
		lock.release()
		s.reply(c, h.AnswerTag(), proc.Payload{Mem: old, Count: 1, Dtype: uint64(datatype.Byte)})
	default:
		return s.combine(c, h, at)
	}
	return nil
}

func fitting(h *rma.Header, at *rma.Items) error {
	size := at.Size()
	var ok bool
	switch h.Kind {
	case rma.Put:
		ok = h.Len <= size
	case rma.Get:
		ok = h.Len == 0
	case rma.CompareAndSwap:
		k, predefined := at.Type.Kind()
		ok = predefined && rma.Swappable(k) && h.Len == 2*size
	default:
		if err := h.Op.CheckAccumulate(at.Type); err != nil {
			return err
		}
		ok = (h.Len == size || h.Op == datatype.NoOp && h.Len == 0) && at.PacksWithinSpan()
	}
	if !ok {
		return fmt.Errorf("%w: %d bytes of data for %d items of %v, which are %d", rma.ErrHeader, h.Len, at.Count, at.Type, size)
	}
	return nil
}

func (s *server) store(c *client, h *rma.Header, at rma.Items) {
	if h.Data != nil {
		var carry datatype.Carry
		at.Type.Decode(at.Rep, at.Mem, at.Count, 0, h.Data, &carry)
		return
	}
	j := s.newJob(c, h)
	in := s.w.Process.Data.Exactly(c.peer, buffer(&at))
	j.stage, j.items = storing, in.Items
	j.r = s.incomingData(c, h, &in)
}

func buffer(at *rma.Items) proc.Buffer {
	return proc.At(at.Mem, at.Count, at.Type)
}

func (s *server) fetch(c *client, h *rma.Header, at rma.Items) {
	out := s.w.Process.Data.Exactly(c.peer, buffer(&at))
	r := s.w.Process.Isend(c.peer, s.w.c.Envelope(int(h.AnswerTag())), message.Standard, &out, false)
	if r.Done() {
		_ = s.w.Process.End(r, out.Items) // an error means that the origin is down
		return
	}
	j := s.newJob(c, h)
	j.stage, j.r, j.items = leaving, r, out.Items
}

func (s *server) combine(c *client, h *rma.Header, at rma.Items) error {
	if h.Data != nil || h.Len == 0 {
		return s.accumulated(c, h, &at, h.Data)
	}
	j := s.newJob(c, h)
	j.stage, j.at, j.buf = gathering, at, make([]byte, h.Len)
	j.r = s.incomingData(c, h, &proc.Payload{Mem: j.buf})
	return nil
}

func (s *server) accumulated(c *client, h *rma.Header, at *rma.Items, data []byte) error {
	var old []byte
	if h.Kind == rma.GetAccumulate {
		old = make([]byte, at.Size())
	}
	if s.scratch == nil {
		s.scratch = new(rma.Scratch)
	}
	lock := s.w.memory.lock(s.w.c.Rank())
	err := at.Accumulate(h.Op, data, old, s.scratch)
	lock.release()
	if err != nil {
		return err
	}
	if old != nil {
		s.reply(c, h.AnswerTag(), proc.Payload{Mem: old, Count: int64(len(old)), Dtype: uint64(datatype.Byte)})
	}
	return nil
}

// refuse skips an operation that turns out to be invalid at the target. The origin gets the code at
// once if it waits for data, otherwise with the next answer.
func (s *server) refuse(c *client, h *rma.Header, code rma.Code) error {
	if c.code == rma.Done && !h.Kind.HasAnswer() {
		c.code = code
	}
	if h.Kind.HasAnswer() {
		s.reply(c, h.AnswerTag(), proc.Payload{Dtype: uint64(datatype.Byte)})
	}
	if h.Data == nil && h.Len > 0 {
		j := s.newJob(c, h)
		j.stage = dropping
		j.r = s.incomingData(c, h, &proc.Payload{})
	}
	return nil
}

func (s *server) newJob(c *client, h *rma.Header) *job {
	j := &job{}
	if n := len(s.idle); n > 0 {
		j, s.idle = s.idle[n-1], s.idle[:n-1]
	}
	j.c, j.h = c, *h
	j.h.Type, j.h.Data = nil, nil // they are in memory that the next header overwrites
	c.jobs++
	if h.Kind.Atomic() {
		c.atomics++
	}
	s.jobs = append(s.jobs, j)
	return j
}

func (s *server) finishJobs() (progress bool) {
	s.answers = slices.DeleteFunc(s.answers, func(r construct.Sending) bool {
		if !r.Done() {
			return false
		}
		_ = s.w.Process.End(r, nil)
		return true
	})
	for i := 0; i < len(s.jobs) && !s.over; {
		j := s.jobs[i]
		if !j.r.Done() {
			i++
			continue
		}
		progress = true
		s.jobs = slices.Delete(s.jobs, i, i+1)
		s.finish(j)
	}
	return progress
}

func (s *server) finish(j *job) {
	c := j.c
	n := j.r.Result().Len
	err := s.w.Process.End(j.r, j.items)
	c.jobs--
	if j.h.Kind.Atomic() {
		c.atomics--
	}
	switch {
	case j.stage == leaving, j.stage == dropping, errors.Is(err, message.ErrPeerDown):
		err = nil // the origin is down, which calls that wait for it report
	case err == nil && n != j.length():
		err = fmt.Errorf("%w: %d bytes instead of %d", rma.ErrHeader, n, j.length())
	case err == nil && j.stage == gathering:
		err = s.accumulated(c, &j.h, &j.at, j.buf)
	case err == nil && j.stage == typing:
		err = s.typed(j)
	}
	if err != nil {
		s.broken(c.rank, fmt.Errorf("%v: %w", j.h.Kind, err))
		return
	}
	*j = job{}
	s.idle = append(s.idle, j)
	s.goOn(c)
}

func (j *job) length() int64 {
	if j.stage == typing {
		return j.h.TypeLen
	}
	return j.h.Len
}

func (s *server) typed(j *job) error {
	t, err := s.types.parse(j.buf)
	if err != nil {
		return err
	}
	return s.perform(j.c, &j.h, t)
}

// typeCache has datatypes that origins have sent, by their encoded form.
type typeCache struct{ known map[string]*proc.Datatype }

const cachedTypes = 64

// parse decodes a datatype. Its displacements are not trusted before it is placed in a window.
func (x *typeCache) parse(form []byte) (*proc.Datatype, error) {
	if t := x.known[string(form)]; t != nil {
		return t, nil
	}
	t, rest, err := datatype.ParseType(form)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return nil, fmt.Errorf("%w: %d bytes behind a datatype", rma.ErrHeader, len(rest))
	}
	if t.Named() {
		return t, nil
	}
	if err := t.Commit(); err != nil {
		return nil, err
	}
	if x.known == nil || len(x.known) >= cachedTypes {
		x.known = make(map[string]*proc.Datatype)
	}
	if len(form) <= rma.HeaderSize {
		x.known[string(form)] = t
	}
	return t, nil
}
