package dynamic

import (
	"bytes"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
)

// Dialler is the greeting at the end that made the connection, as a state machine. It has output
// from the start. The first error is final.
type Dialler struct {
	token      Token
	hello      Hello
	transcript []byte // all bytes sent by both ends, covered by the next MAC
	out        []byte
	in         inbox
	proved     bool // Output has returned the proof, or will: before that the acceptor cannot have accepted
	done       bool
	err        error
}

// NewDialler begins a greeting. The nonce must be random and never used before.
func NewDialler(token Token, nonce Nonce, hello Hello) *Dialler {
	id := jobID(&token)
	k := hello.kind()
	b := append(appendHead(nil, k), id[:]...)
	b = append(b, nonce[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(hello.Src))
	b = binary.BigEndian.AppendUint32(b, uint32(hello.Dst))
	if k.hasWorld() {
		b = append(b, hello.World[:]...)
	}
	if len(b) < helloSizeOf(k) {
		b = append(b, hello.ResumableID[:]...)
	}
	if hello.Lost && len(b) < helloSizeOf(k) {
		b = binary.BigEndian.AppendUint64(b, hello.Epoch)
	}
	return &Dialler{token: token, hello: hello, transcript: bytes.Clone(b), out: b}
}

// Output returns the bytes to send now, and returns them only once.
func (d *Dialler) Output() []byte {
	b := d.out
	d.out = nil
	return b
}

// Done reports whether the link is accepted and packets may follow.
func (d *Dialler) Done() bool { return d.done }

// Input consumes bytes from the acceptor and returns the number of them that belonged to the
// greeting: the rest is the beginning of the packets. A refusal is a *RefusedError; other errors
// wrap ErrGreeting or ErrToken.
func (d *Dialler) Input(b []byte) (consumed int, err error) {
	for !d.done && d.err == nil && consumed < len(b) {
		n, complete, err := d.in.take(b[consumed:], d.sizeOf)
		consumed += n
		if err == nil && complete {
			err = d.message(d.in.message())
		}
		d.err = err
	}
	return consumed, d.err
}

func (d *Dialler) sizeOf(k kind) int {
	switch {
	case k == kindVerdict:
		return verdictSize
	case k == kindChallenge && !d.proved:
		return challengeSize
	}
	return 0
}

func (d *Dialler) message(m []byte) error {
	if k, _ := parseHead(m); k == kindVerdict {
		return d.verdict(m)
	}
	d.transcript = append(d.transcript, m...)
	proof := append(appendHead(nil, kindProof), sign(&d.token, "proof", d.transcript)...)
	d.transcript = append(d.transcript, proof...)
	d.out = append(d.out, proof...)
	d.proved = true
	return nil
}

// verdict ends the greeting. The verdict Accepted counts only if its MAC proves that the
// acceptor has the token.
func (d *Dialler) verdict(m []byte) error {
	v := Verdict(binary.BigEndian.Uint32(m[headSize:]))
	body, mac := m[:headSize+4], m[headSize+4:]
	proven := d.proved && hmac.Equal(mac, sign(&d.token, "verdict", append(d.transcript, body...)))
	switch {
	case v != Accepted:
		return &RefusedError{Hello: d.hello, Verdict: v, Proven: proven}
	case !proven:
		return fmt.Errorf("dynamic: %v: %w", &d.hello, ErrToken)
	}
	d.done = true
	return nil
}

// Failed returns the result of a dial whose greeting ended by err. hungUp is true if the acceptor
// closed the connection, or it broke, and false if the greeting failed otherwise.
func (d *Dialler) Failed(err error, hungUp bool) DialResult {
	a := DialResult{Err: err, Verdict: VerdictOf(err)}
	if a.Verdict == Accepted {
		a.Failure = GreetingFailed(d.proved, hungUp, d.hello.ResumableID != ResumableID{})
	}
	return a
}

// GreetingFailed returns how a dial has failed whose greeting ended without a proven verdict. proved
// is true if the dialler has sent its proof, hungUp is as in Failed, and session is true if the link
// resumes. An acceptor that hangs
// up before the dialler has proved itself closes connections that it has no room for. Whether it
// has accepted a link that resumes is then not known: its proc may have it.
func GreetingFailed(proved, hungUp, session bool) (f DialFailure) {
	if !proved && hungUp {
		f |= NoRoom
	}
	if session {
		f |= Uncertain
	}
	return f
}

// VerdictOf returns the verdict of a peer that has proved itself, or Accepted if err is any other
// error.
func VerdictOf(err error) Verdict {
	if r, ok := errors.AsType[*RefusedError](err); ok && r.Proven {
		return r.Verdict
	}
	return Accepted
}
