package rendezvous

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/wire"
)

// The handshake of our clients and our server, before IMPI's AUTH. The client sends the preface in
// clear, with which no IMPI client begins, and TLS 1.3 follows at once. Inside TLS the client sends
// hello, and the server answers or sends FAIL. docs/wire.md has the bytes. No library does this:
// the first byte must distinguish the preface from AUTH, and sizes are fixed for clients that have
// not proved anything yet.
const (
	prefaceSize = 8
	prefaceByte = 'S' // no IMPI command that may come first begins with it

	protocol     = "impi-server/1" // in TLS's ALPN
	bindingLabel = "EXPORTER-impi-server"
	secretLabel  = "EXPORTER-impi-server-session"

	helloVersion = 1
	helloSize    = 88
	answerSize   = 72
	headSize     = wire.CommandSize // of hello and answer, like IMPI's commands
)

var (
	preface   = [prefaceSize]byte{'S', 'T', 'L', 'S'}
	helloHead = [4]byte{'S', 'E', 'S', 'S'}
)

var errPreface = errors.New("the beginning of the connection is malformed")

// Flags of hello and answer.
const (
	flagKey    = 1 << iota // the proof of the key is there
	flagResume             // hello only: the connection continues a session
)

// mac is the proof of a key or a secret. The zero mac stands for none.
type mac [sha256.Size]byte

type hello struct {
	flags   uint8
	limit   time.Duration // maximum time to keep the session without a connection; 0: not at all
	session resume.ResumableID
	key     mac // with flagKey
	secret  mac // with flagResume
}

func (h *hello) append(b []byte) []byte {
	b = append(b, helloHead[:]...)
	b = binary.BigEndian.AppendUint32(b, helloSize)
	b = append(b, helloVersion, h.flags, 0, 0)
	b = binary.BigEndian.AppendUint32(b, millis(h.limit))
	b = append(b, h.session[:]...)
	b = append(b, h.key[:]...)
	return append(b, h.secret[:]...)
}

// readHello reads a client's hello and nothing after it.
func readHello(r io.Reader) (h hello, err error) {
	var b [headSize + helloSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return h, err
	}
	p := b[headSize:]
	switch {
	case !bytes.Equal(b[:4], helloHead[:]) || binary.BigEndian.Uint32(b[4:]) != helloSize:
		return h, fmt.Errorf("%w: %x instead of SESS with %d bytes", errPreface, b[:headSize], helloSize)
	case p[0] != helloVersion:
		return h, fmt.Errorf("%w: version %d, and only %d is known", errPreface, p[0], helloVersion)
	case p[1]&^(flagKey|flagResume) != 0 || p[2]|p[3] != 0:
		return h, fmt.Errorf("%w: flags %x", errPreface, p[1:4])
	}
	h.flags = p[1]
	h.limit = time.Duration(binary.BigEndian.Uint32(p[4:])) * time.Millisecond
	copy(h.session[:], p[8:])
	copy(h.key[:], p[24:])
	copy(h.secret[:], p[56:])
	return h, nil
}

type answer struct {
	flags  uint8
	limit  time.Duration // time that the server keeps the session; 0: not at all
	key    mac           // with flagKey
	secret mac           // answers a hello with flagResume
}

func (a *answer) append(b []byte) []byte {
	b = append(b, helloHead[:]...)
	b = binary.BigEndian.AppendUint32(b, answerSize)
	b = append(b, helloVersion, a.flags, 0, 0)
	b = binary.BigEndian.AppendUint32(b, millis(a.limit))
	b = append(b, a.key[:]...)
	return append(b, a.secret[:]...)
}

// refusal is the error for a FAIL of the server.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

const maxRefusal = 4 << 10

// readAnswer reads the server's answer and nothing after it. A FAIL is a *refusal.
func readAnswer(r io.Reader) (a answer, err error) {
	var b [headSize + answerSize]byte
	if _, err := io.ReadFull(r, b[:headSize]); err != nil {
		return a, err
	}
	if text, ok := readFail(b[:headSize], r); ok {
		return a, &refusal{text}
	}
	if !bytes.Equal(b[:4], helloHead[:]) || binary.BigEndian.Uint32(b[4:]) != answerSize {
		return a, fmt.Errorf("%w: %x instead of SESS with %d bytes", errPreface, b[:headSize], answerSize)
	}
	p := b[headSize:]
	if _, err := io.ReadFull(r, p); err != nil {
		return a, err
	}
	switch {
	case p[0] != helloVersion:
		return a, fmt.Errorf("%w: version %d, and only %d is known", errPreface, p[0], helloVersion)
	case p[1]&^flagKey != 0 || p[2]|p[3] != 0:
		return a, fmt.Errorf("%w: flags %x", errPreface, p[1:4])
	}
	a.flags = p[1]
	a.limit = time.Duration(binary.BigEndian.Uint32(p[4:])) * time.Millisecond
	copy(a.key[:], p[8:])
	copy(a.secret[:], p[40:])
	return a, nil
}

// readFail reads the text of a FAIL whose header has come; ok reports whether it is one.
func readFail(head []byte, r io.Reader) (text string, ok bool) {
	cmd, n := wire.ParseCommand(head)
	if cmd != wire.CmdFail || n < 0 {
		return "", false
	}
	b := make([]byte, min(int(n), maxRefusal))
	k, _ := io.ReadFull(r, b) // a part of the text is better than none
	return printable(b[:k]), true
}

func printable(b []byte) string {
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return '?'
		}
		return r
	}, bytes.TrimRight(b, "\x00")))
}

// millis returns d as it is sent; a value that does not fit is reduced.
func millis(d time.Duration) uint32 {
	return uint32(min(max(d.Milliseconds(), 0), 1<<32-1))
}

// keyProof proves that side has the job's key and is an end of the connection that binding
// belongs to.
func keyProof(key uint64, side string, binding []byte, h *hello) mac {
	var k [8]byte
	binary.BigEndian.PutUint64(k[:], key)
	return prove(k[:], "impi server key: "+side, binding, h)
}

// secretProof proves that side was an end of the session's first connection.
func secretProof(secret []byte, side string, binding []byte, h *hello) mac {
	return prove(secret, "impi server session: "+side, binding, h)
}

// prove returns the MAC over all of a hello except the proofs.
func prove(key []byte, text string, binding []byte, h *hello) (m mac) {
	x := hmac.New(sha256.New, key)
	x.Write([]byte(text))
	x.Write([]byte{0, h.flags})
	x.Write(binary.BigEndian.AppendUint32(nil, millis(h.limit)))
	x.Write(h.session[:])
	x.Write(binding)
	x.Sum(m[:0])
	return m
}

func (m mac) is(o mac) bool { return hmac.Equal(m[:], o[:]) }
