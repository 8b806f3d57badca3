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

func (p *process) bufferAttach(size int) error { return p.buffer().attach(size) }

func (p *process) bufferDetach() (size int, err error) { return p.buffer().detach() }

// buffer is what BufferAttach and its like are about.
func (p *process) buffer() *SendBuffer { return &SendBuffer{p: p, room: p.eng.Room()} }

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

func (p *process) bufferFlush() error { return p.buffer().flush("BufferFlush") }

func (p *process) bufferIflush() Request { return p.buffer().iflush("BufferIflush") }
