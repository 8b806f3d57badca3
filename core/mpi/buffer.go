package mpi

// BsendOverhead is what each Bsend takes of the attached memory besides its
// data, in bytes (MPI_BSEND_OVERHEAD).
const BsendOverhead = 512

// BufferAttach gives size bytes of memory to Bsend. A Bsend takes its message's
// size and BsendOverhead out of them until the message has left. One buffer can
// be attached at a time.
func BufferAttach(size int) error {
	p, err := current()
	if err != nil {
		return failed("BufferAttach", err)
	}
	return p.failed("BufferAttach", p.bufferAttach(size))
}

// BufferDetach blocks until all messages of Bsends have left, takes the memory
// back and tells how much it was.
func BufferDetach() (size int, err error) {
	p, err := current()
	if err != nil {
		return 0, failed("BufferDetach", err)
	}
	size, err = p.bufferDetach()
	return size, p.failed("BufferDetach", err)
}

func (p *process) bufferAttach(size int) error {
	p.lock()
	defer p.unlock()
	return p.eng.AttachBuffer(size)
}

func (p *process) bufferDetach() (size int, err error) {
	p.lock()
	defer p.unlock()
	for p.failure == nil {
		size, done := p.eng.DetachBuffer()
		if done {
			return size, nil
		}
		p.turn()
	}
	return 0, p.failure
}

// BufferFlush blocks until all messages of Bsends have left (MPI_Buffer_flush).
func BufferFlush() error {
	p, err := current()
	if err != nil {
		return failed("BufferFlush", err)
	}
	return p.failed("BufferFlush", p.bufferFlush())
}

// BufferIflush begins a BufferFlush.
func BufferIflush() (Request, error) {
	p, err := current()
	if err != nil {
		return Request{}, failed("BufferIflush", err)
	}
	return p.bufferIflush(), nil
}

func (p *process) bufferFlush() error {
	q := p.bufferIflush()
	_, err := q.complete()
	return err
}

func (p *process) bufferIflush() Request { return p.begun(nil, "BufferIflush", &flush{p: p}) }

// flush is complete once no buffered send is on its way.
type flush struct {
	steady
	p *process
}

func (f *flush) done() bool { return f.p.eng.Buffered() == 0 }

func (f *flush) status() (Status, error) { return emptyStatus, nil }

func (f *flush) finish() (Status, error) {
	f.gen++
	if !f.done() {
		return Status{}, f.p.failure
	}
	return emptyStatus, nil
}

// current is the program's process while it may use MPI.
func current() (*process, error) {
	theLock.Lock()
	defer theLock.Unlock()
	switch {
	case the == nil:
		return nil, ErrNotInitialized
	case phase(the.state.Load()) == finalized:
		return nil, ErrFinalized
	}
	return the, nil
}
