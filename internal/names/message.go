package names

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Bounds of what is said, in bytes.
const (
	MaxScope   = 64
	MaxService = 255
	MaxPort    = 1023 // MPI_MAX_PORT_NAME, less C's terminator
	maxFrame   = 2048 // of a request or an answer, without its length
	maxText    = 1023 // of an answer
)

// ErrMessage means bytes that are no request or answer.
var ErrMessage = errors.New("malformed message about names")

// Op is what a request wants.
type Op uint8

// The requests.
const (
	OpPing      Op = iota // nothing: the connection is to stay
	OpPublish             // Service stands for Port
	OpRenew               // the same, in the place of what the same owner published before
	OpUnpublish           // Service stands for nothing any more
	OpLookup              // what does Service stand for
	opEnd
)

// String names the operation.
func (o Op) String() string {
	if o >= opEnd {
		return fmt.Sprintf("operation %d", uint8(o))
	}
	return [...]string{"ping", "publish", "renew", "unpublish", "look up"}[o]
}

// Owner proves of which job a request is. All sites of a job have the same, and
// nobody else knows it.
type Owner [32]byte

// Request is what a client asks.
type Request struct {
	Op      Op
	Owner   Owner
	Scope   string // names of different scopes have nothing to do with each other
	Service string
	Port    string
}

// String tells what is asked, without owner and port, which are secrets.
func (r Request) String() string { return fmt.Sprintf("%v %q of scope %q", r.Op, r.Service, r.Scope) }

// GoString is String, so that no verb shows the secrets.
func (r Request) GoString() string { return r.String() }

// Code is how a request ended.
type Code uint8

// The codes.
const (
	CodeOK        Code = iota
	CodePublished      // the service is published already
	CodeUnknown        // there is no such service to unpublish, or it is another job's
	CodeNotFound       // there is no such service to look up
	CodeFull           // there is no room for more names
	CodeBad            // the request cannot be carried out by anybody
	CodeDenied         // who asks has not proved to have the key
	codeEnd
)

// Answer is how a request ended: the port that was looked up, or the reason.
type Answer struct {
	Code Code
	Text string
}

// String tells the code, and the reason; a port is a secret.
func (a Answer) String() string {
	if a.Code == CodeOK {
		return "done"
	}
	return fmt.Sprintf("code %d: %s", a.Code, a.Text)
}

// GoString is String, so that no verb shows a port.
func (a Answer) GoString() string { return a.String() }

// Check tells what is wrong with the names of a request, if anything is.
func (r *Request) Check() error {
	switch {
	case r.Op >= opEnd:
		return fmt.Errorf("%w: %v", ErrMessage, r.Op)
	case r.Op == OpPing:
		return nil
	case len(r.Scope) > MaxScope:
		return fmt.Errorf("%w: a scope of %d bytes, at most %d", ErrMessage, len(r.Scope), MaxScope)
	case r.Service == "" || len(r.Service) > MaxService:
		return fmt.Errorf("%w: a service's name of %d bytes, 1 to %d are possible", ErrMessage, len(r.Service), MaxService)
	case len(r.Port) > MaxPort:
		return fmt.Errorf("%w: a port's name of %d bytes, at most %d", ErrMessage, len(r.Port), MaxPort)
	case strings.ContainsRune(r.Scope+r.Service+r.Port, 0):
		return fmt.Errorf("%w: a zero byte in a name", ErrMessage)
	}
	return nil
}

// Append appends the request as it is sent.
//
//	length of the rest (2) | op (1) | owner (32) | scope | service | port
//
// Texts have their length in two bytes before them. All numbers are big endian.
func (r *Request) Append(b []byte) []byte {
	at := len(b)
	b = append(b, 0, 0, byte(r.Op))
	b = append(b, r.Owner[:]...)
	for _, s := range []string{r.Scope, r.Service, r.Port} {
		b = appendText(b, s)
	}
	binary.BigEndian.PutUint16(b[at:], uint16(len(b)-at-2))
	return b
}

// ParseRequest reads what Append has appended, without the first length. It keeps
// nothing of b.
func ParseRequest(b []byte) (r Request, err error) {
	if len(b) < 1+len(r.Owner) || len(b) > maxFrame {
		return r, fmt.Errorf("%w: a request of %d bytes", ErrMessage, len(b))
	}
	r.Op = Op(b[0])
	rest := b[1+copy(r.Owner[:], b[1:]):]
	for _, s := range []*string{&r.Scope, &r.Service, &r.Port} {
		if *s, rest, err = takeText(rest); err != nil {
			return Request{}, err
		}
	}
	if len(rest) > 0 {
		return Request{}, fmt.Errorf("%w: %d bytes behind a request", ErrMessage, len(rest))
	}
	if err := r.Check(); err != nil {
		return Request{}, err
	}
	return r, nil
}

// Append appends the answer as it is sent: length of the rest (2) | code (1) | text.
// A text that is too long is cut.
func (a *Answer) Append(b []byte) []byte {
	text := a.Text[:min(len(a.Text), maxText)]
	b = binary.BigEndian.AppendUint16(b, uint16(1+2+len(text)))
	return appendText(append(b, byte(a.Code)), text)
}

// ParseAnswer reads what Append has appended, without the first length. It keeps
// nothing of b.
func ParseAnswer(b []byte) (Answer, error) {
	if len(b) < 1 || len(b) > maxFrame || Code(b[0]) >= codeEnd {
		return Answer{}, fmt.Errorf("%w: an answer of %d bytes", ErrMessage, len(b))
	}
	text, rest, err := takeText(b[1:])
	switch {
	case err != nil:
		return Answer{}, err
	case len(rest) > 0 || len(text) > maxText:
		return Answer{}, fmt.Errorf("%w: an answer with a text of %d bytes and %d behind it", ErrMessage, len(text), len(rest))
	}
	return Answer{Code(b[0]), text}, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

func takeText(b []byte) (text string, rest []byte, err error) {
	if len(b) < 2 {
		return "", nil, fmt.Errorf("%w: it ends before a text", ErrMessage)
	}
	n := int(binary.BigEndian.Uint16(b))
	if n > len(b)-2 {
		return "", nil, fmt.Errorf("%w: a text of %d bytes where %d are left", ErrMessage, n, len(b)-2)
	}
	return string(b[2 : 2+n]), b[2+n:], nil
}
