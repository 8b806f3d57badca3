package job

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// Foreign says how a site differs from ours. All differences are legal: the private version is
// never listed, and no card is sent.
//
// The dialect of the draft of 1999 is not among the differences, because all sites of a job must
// have the same: P_PID has another width in it, so that a client could not parse the server's
// answer, and agents pass packets on as they are.
type Foreign struct {
	Skip     []wire.Label // optional labels that the client does not send
	Eager    bool         // sends everything without waiting for answers
	Habits   bool         // uses legal forms that our clients never use
	Extra    []wire.Label // labels beyond IMPI 0.0 that the client sends
	FalseLen bool         // writes arbitrary lengths into packets without data
}

// The commands of the server's protocol. IMPI ch.2, Startup.
const (
	sayAuth = 0x41555448
	sayIMPI = 0x494D5049
	sayColl = 0x434F4C4C
	sayDone = 0x444F4E45
	sayFini = 0x46494E49
	sayINIF = 0x494E4946 // FINI as some little-endian clients send it
	sayFail = 0x4641494C // our extension: a reason for a failure, unknown to other MPIs
	sayXtra = 0x58545241 // a command that nothing sends
)

var errForeign = errors.New("foreign client")

// foreignClient is the startup of a client that is not ours. It is written independently from the
// text of the protocol, and shares only types with core/startup.
type foreignClient struct {
	cfg      startup.ClientConfig
	f        Foreign
	in, out  []byte
	deadline time.Time
	labels   []wire.Label // labels to send; the first has been sent unless Eager
	phase    phase
	size     int // number of clients
	answers  map[wire.Label]answer
	job      *startup.Job
	hint     string // the server's reason for closing the connection
	err      error
}

type phase uint8

const (
	forChoice phase = iota
	forSize
	forAnswers
	forNothing
)

type answer struct {
	mask uint32
	data []byte
}

func newForeignClient(cfg startup.ClientConfig, f Foreign) *foreignClient {
	x := &foreignClient{cfg: cfg, f: f, answers: make(map[wire.Label]answer)}
	for _, l := range order {
		if !slices.Contains(f.Skip, l.label) {
			x.labels = append(x.labels, l.label)
		}
	}
	x.labels = append(x.labels, f.Extra...)
	slices.Sort(x.labels)
	return x
}

func (x *foreignClient) say(command uint32, payload []byte) {
	x.out = binary.BigEndian.AppendUint32(x.out, command)
	x.out = binary.BigEndian.AppendUint32(x.out, uint32(len(payload)))
	x.out = append(x.out, payload...)
}

func number(v int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// Start offers the authentication mechanisms.
func (x *foreignClient) Start(now time.Time) {
	x.deadline = now.Add(x.cfg.Limit + startup.Grace)
	mask := 0
	if x.cfg.Auth.None {
		mask |= 1
	}
	if x.cfg.Auth.HasKey {
		mask |= 2
	}
	x.say(sayAuth, number(mask))
	if x.f.Eager && !x.cfg.Auth.HasKey {
		x.introduce()
	}
}

// introduce sends the client rank and, if the client does not wait for answers, everything else.
func (x *foreignClient) introduce() {
	x.say(sayIMPI, number(int(x.cfg.Rank)))
	if !x.f.Eager {
		return
	}
	for len(x.labels) > 0 {
		x.submit()
		x.labels = x.labels[1:]
	}
	x.say(sayDone, nil)
}

func (x *foreignClient) submit() {
	if x.f.Habits && len(x.labels)%3 == 0 {
		x.say(sayXtra, make([]byte, len(x.labels)))
	}
	l := x.labels[0]
	x.say(sayColl, append(number(int(l)), x.values(l)...))
}

func (x *foreignClient) next() {
	if x.f.Eager {
		return
	}
	if len(x.labels) > 0 {
		x.submit()
	} else {
		x.say(sayDone, nil)
	}
}

// Output returns the bytes to send.
func (x *foreignClient) Output() []byte {
	b := x.out
	x.out = nil
	return b
}

// Deadline returns when the client gives up.
func (x *foreignClient) Deadline() (time.Time, bool) {
	return x.deadline, x.phase != forNothing && x.err == nil
}

// Job returns the job, once startup is over.
func (x *foreignClient) Job() (*startup.Job, bool) { return x.job, x.job != nil }

// Err returns the error that ended the client.
func (x *foreignClient) Err() error { return x.err }

// Tick makes the client fail if its deadline has passed.
func (x *foreignClient) Tick(now time.Time) error {
	if at, ok := x.Deadline(); ok && !now.Before(at) {
		x.fail("waited too long")
	}
	return x.err
}

// Closed handles that the server has closed the connection.
func (x *foreignClient) Closed(cause error) error {
	x.fail("the server is gone: %v %s", cause, x.hint)
	return x.err
}

func (x *foreignClient) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf("%w %d: "+format, append([]any{errForeign, x.cfg.Rank}, args...)...)
	}
}

// Receive handles bytes from the server.
func (x *foreignClient) Receive(b []byte, now time.Time) error {
	x.in = append(x.in, b...)
	for x.err == nil && len(x.in) >= 8 {
		command, size := binary.BigEndian.Uint32(x.in), int(binary.BigEndian.Uint32(x.in[4:]))
		if x.phase == forChoice && command != sayFail { // the answer to AUTH has no such header
			x.in = x.in[8:]
			x.choice(command)
			continue
		}
		if len(x.in) < 8+size {
			break
		}
		payload := x.in[8 : 8+size]
		x.in = x.in[8+size:]
		x.hear(command, payload, now)
	}
	return x.err
}

// choice handles the answer to AUTH: the number of a mechanism.
func (x *foreignClient) choice(mechanism uint32) {
	x.phase = forSize
	waited := !x.f.Eager || x.cfg.Auth.HasKey
	switch {
	case mechanism == 1 && x.cfg.Auth.HasKey:
		x.out = binary.BigEndian.AppendUint64(x.out, x.cfg.Auth.Key)
	case mechanism != 0 || !x.cfg.Auth.None:
		x.fail("the server chose mechanism %d", mechanism)
		return
	}
	if waited {
		x.introduce()
	}
}

func (x *foreignClient) hear(command uint32, payload []byte, now time.Time) {
	switch {
	case command == sayFail:
		x.hint = string(payload) // the server closes the connection now
	case command == sayIMPI && x.phase == forSize && len(payload) == 4:
		x.size = int(binary.BigEndian.Uint32(payload))
		x.phase, x.deadline = forAnswers, now.Add(x.cfg.Limit+startup.Grace)
		x.next()
	case command == sayColl && x.phase == forAnswers && len(payload) >= 8:
		x.take(payload)
	case command == sayDone && x.phase == forAnswers:
		x.phase = forNothing
		job, err := x.derive()
		if err != nil {
			x.fail("%w", err)
			return
		}
		x.job = job
	default:
		x.fail("the server said %x with %d bytes", command, len(payload))
	}
}

// take keeps the answer to a label, whoever sent it.
func (x *foreignClient) take(payload []byte) {
	l := wire.Label(binary.BigEndian.Uint32(payload))
	if _, twice := x.answers[l]; twice {
		x.fail("two answers to label %x", uint32(l))
		return
	}
	x.answers[l] = answer{binary.BigEndian.Uint32(payload[4:]), slices.Clone(payload[8:])}
	if !x.f.Eager && len(x.labels) > 0 && l == x.labels[0] {
		x.labels = x.labels[1:]
		x.next()
	}
}

// Finish reports to the server that all procs have finished.
func (x *foreignClient) Finish() error {
	if x.f.Habits {
		x.say(sayINIF, nil)
	} else {
		x.say(sayFini, nil)
	}
	return x.err
}

// Fail ends the client with an error. A foreign client cannot send the reason.
func (x *foreignClient) Fail(reason error) { x.fail("%w", reason) }

// falseLengths writes false lengths into packets that have no data, as LAM/MPI does. It changes
// bytes, but never how many there are.
type falseLengths struct {
	*kernel.End
	truth   scan
	scratch []byte
	seed    uint64
	only    func(wire.PacketType) bool // whether packets of a type get false lengths
}

// newFalseLengths wraps the link of an end. seed decides the false lengths of each packet, so that
// sending the same packet again gives the same bytes.
func newFalseLengths(e *kernel.End, seed uint64, only func(wire.PacketType) bool) *falseLengths {
	return &falseLengths{End: e, seed: seed, only: only}
}

var _ link.Link = (*falseLengths)(nil)

// Send sends batch with false lengths.
func (x *falseLengths) Send(batch [][]byte) (int, error) {
	x.scratch = x.scratch[:0]
	for _, b := range batch {
		x.scratch = append(x.scratch, b...)
	}
	s := x.truth
	s.walk(x.scratch, x.lie)
	n, err := x.End.Send([][]byte{x.scratch})
	for rest := n; rest > 0 && len(batch) > 0; batch = batch[1:] {
		b := batch[0][:min(rest, len(batch[0]))]
		rest -= len(b)
		x.truth.walk(b, nil)
	}
	return n, err
}

func (x *falseLengths) lie(s *scan, was byte) byte {
	t := wire.PacketType(s.kind)
	if t.HasData() || !x.only(t) || !lenField.has(s.at) && !msgLenField.has(s.at) {
		return was
	}
	h := (x.seed ^ s.packets) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	if h&1 == 0 { // as LAM/MPI does
		if s.at == lenField.end()-1 || s.at == msgLenField.end()-1 {
			return headerSize
		}
		return 0
	}
	return byte(h >> (8 * (uint(s.at) % 8)))
}

type field struct{ at, size int }

func (f field) end() int        { return f.at + f.size }
func (f field) has(at int) bool { return at >= f.at && at < f.end() }

const headerSize = 128

var (
	typeField   = field{0, 4}
	lenField    = field{4, 4}
	msgLenField = field{72, 8}
)

type scan struct {
	at      int    // offset in the header
	kind    uint32 // pk_type, as far as it was read
	length  uint32 // pk_len, as far as it was read
	data    int    // bytes of data before the next header
	packets uint64 // number of complete packets before this one
}

// walk follows b. If change is not nil, it returns the new value of each byte of a header.
func (s *scan) walk(b []byte, change func(*scan, byte) byte) {
	for i := 0; i < len(b); {
		if s.data > 0 {
			n := min(s.data, len(b)-i)
			i, s.data = i+n, s.data-n
			continue
		}
		was := b[i]
		switch {
		case typeField.has(s.at):
			s.kind = s.kind<<8 | uint32(was)
		case lenField.has(s.at):
			s.length = s.length<<8 | uint32(was)
		}
		if change != nil {
			b[i] = change(s, was)
		}
		i++
		if s.at++; s.at == headerSize {
			if wire.PacketType(s.kind).HasData() {
				s.data = int(s.length)
			}
			s.at, s.kind, s.length, s.packets = 0, 0, 0, s.packets+1
		}
	}
}
