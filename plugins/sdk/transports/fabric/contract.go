package fabric

// Conn is a connection of a fabric: short messages in both directions, reliably and in order, and
// reads of memory that the other side has registered. No two of its methods are called at a time, but
// for Break: any goroutine may call it at any time, while another method is in progress and after
// Close. Calls may come from several goroutines one after the other; what one has written the next
// one sees. None of them waits. An error is final.
type Conn interface {
	// Limits returns how the connection can be used. It never changes.
	Limits() Limits

	// Send sends the bytes of batch as one message, or reports false if it has no room now. It keeps
	// no slice.
	Send(batch [][]byte) (ok bool, err error)

	// Recv copies the next message into batch, and returns its length; 0 if none has come. A message
	// that is longer than batch is an error. io.EOF means that the other side has called Close, and
	// everything that it had sent was returned.
	Recv(batch [][]byte) (n int, err error)

	// Read begins to read len(r.Into) bytes of memory of the other side, or reports false if it has
	// no room now. Completed returns r.Op when the bytes are there, and not before.
	Read(r Request) (ok bool, err error)

	// Completed returns reads that have ended since the last call, at most len(done).
	Completed(done []Completion) int

	// Handle returns a descriptor that poll(2) reports as readable when Recv or Completed may have
	// something, or Send or Read may have room again after they had none.
	Handle() int

	// Arm announces that the caller is about to sleep on Handle. If it returns true the caller must
	// not sleep: there is something to do already.
	Arm() bool

	// Close ends the connection and gives up what it holds. What Send has taken still arrives, unless
	// Break was called. No other method but Break is called afterwards. It is called once.
	Close() error

	// Break ends the connection so that the other side's Recv fails, and not with io.EOF. When it
	// returns, no read is under way any more.
	Break()
}

// Limits say how a Conn can be used.
type Limits struct {
	Message int // maximum bytes of a message, at least 2048
	Rails   int // ways by which Read can go, from 1
}

// Request is a read of the other side's memory.
type Request struct {
	Op    uint64 // its number, which its completion has
	Rail  int    // from 0
	Into  []byte // in memory of Local
	Local Registration
	Key   []byte // of the other side's registration
	From  uint64 // offset in it
}

// Completion is the end of a read. If Err is not nil nothing is known of the memory; another rail
// is tried then.
type Completion struct {
	Op  uint64
	Err error
}

// Domain is what registers memory for all connections of a transport. It may be called from several
// goroutines.
type Domain interface {
	// Register makes memory usable for reads in both directions. If it fails, because too much is
	// registered, the Cache closes a registration that no message uses and calls it again. If none is
	// left, or the hardware does not register such memory, the bytes go by Send, with two more copies
	// on the way, and Register is called again for a later message, but more and more seldom. So it
	// is fast if there is room for all memory that messages use at a time: of each connection up to 8
	// that are sent and 9 that are received, and the control region.
	Register(m Memory) (Registration, error)
}

// Memory is a file in memory, all of which is mapped. Both are valid until the Registration is
// closed.
type Memory struct {
	FD    int
	Bytes []byte
}

// Registration is registered memory.
type Registration interface {
	// Key returns what the other side's Read needs, at most 256 bytes.
	Key() []byte

	// Close ends the registration. Reads by its key fail from then on.
	Close() error
}
