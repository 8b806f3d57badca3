package dynamic

import (
	"crypto/hmac"
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// Acceptor is the greeting at the end that accepts the connection, as a state machine. When Peer
// returns a Hello, the owner must call Accept or Refuse. The first error is final; Output then
// returns the refusal, which the owner sends before it closes the link.
type Acceptor struct {
	keys       Keys
	token      Token // set when the dialler has named it
	nonce      Nonce
	hello      Hello
	named      bool   // hello has a session
	worldless  bool   // hello is of another world, and says of none
	transcript []byte // all bytes sent by both ends, covered by the next MAC
	out        []byte
	in         inbox
	state      acceptorState
	err        error
}

type acceptorState uint8

const (
	wantHello acceptorState = iota
	wantProof
	wantJudgement
	judged
)

// Keys looks up the token for a purpose by its name; ok is false if there is none.
type Keys func(name WorldID, of Purpose) (Token, bool)

// KeysOfJob returns Keys with the token of a job alone, for links between its procs and requests to
// spawn: no ports, and no other worlds.
func KeysOfJob(token Token) Keys {
	name := token.World()
	return func(w WorldID, of Purpose) (Token, bool) { return token, of == OfJob && w == name }
}

// NewAcceptor begins a greeting. The nonce must be random and never used before.
func NewAcceptor(keys Keys, nonce Nonce) *Acceptor {
	return &Acceptor{keys: keys, nonce: nonce}
}

// Output returns the bytes to send now, and returns them only once.
func (a *Acceptor) Output() []byte {
	b := a.out
	a.out = nil
	return b
}

// Done reports whether the link was accepted and packets may follow.
func (a *Acceptor) Done() bool { return a.state == judged && a.err == nil }

// Peer returns the dialler's request; ok is false until the dialler has proven that it has the
// token.
func (a *Acceptor) Peer() (hello Hello, ok bool) {
	return a.hello, a.state >= wantJudgement && a.err == nil
}

// Input consumes bytes from the dialler and returns the number of them that belonged to the
// greeting. The errors wrap ErrGreeting, ErrJob or ErrToken. Between its proof and the verdict the
// dialler has nothing to send; bytes that it sends then are not consumed.
func (a *Acceptor) Input(b []byte) (consumed int, err error) {
	for a.state < wantJudgement && a.err == nil && consumed < len(b) {
		n, complete, err := a.in.take(b[consumed:], a.sizeOf)
		consumed += n
		if err != nil {
			a.refuse(Malformed, err)
		} else if complete {
			a.message(a.in.message())
		}
	}
	return consumed, a.err
}

func (a *Acceptor) sizeOf(k kind) int {
	switch {
	case a.state == wantHello:
		return helloSizeOf(k)
	case k == kindProof && a.state == wantProof:
		return proofSize
	}
	return 0
}

func (a *Acceptor) message(m []byte) {
	if a.state == wantHello {
		a.takeHello(m)
	} else {
		a.takeProof(m)
	}
}

func (a *Acceptor) takeHello(m []byte) {
	a.transcript = append(a.transcript, m...)
	k, _ := parseHead(m) // sizeOf has checked the head
	a.readHello(k, m[headSize+jobIDSize+NonceSize:])
	name := WorldID(m[headSize : headSize+jobIDSize])
	var known bool
	if a.token, known = a.keys(name, k.purpose()); !known {
		a.refuse(unknown(k), a.fault(ErrJob))
		return
	}
	if k == kindConnect {
		a.hello.Port = name
	}
	challenge := append(appendHead(nil, kindChallenge), a.nonce[:]...)
	a.transcript = append(a.transcript, challenge...)
	a.out = append(a.out, challenge...)
	a.state = wantProof
}

func (a *Acceptor) readHello(k kind, b []byte) {
	a.hello.set(k)
	a.hello.Src = wire.WorldRank(binary.BigEndian.Uint32(b))
	a.hello.Dst = wire.WorldRank(binary.BigEndian.Uint32(b[4:]))
	b = b[8:]
	if k.hasWorld() {
		b = b[copy(a.hello.World[:], b):]
		a.worldless = a.hello.World == WorldID{}
	}
	if len(b) > 0 {
		a.named = true
		b = b[copy(a.hello.ResumableID[:], b):]
	}
	if a.hello.Lost {
		a.hello.Epoch = binary.BigEndian.Uint64(b)
	}
}

// unknown returns the verdict for a dialler whose token is not known here.
func unknown(k kind) Verdict {
	if k == kindConnect {
		return ClosedPort
	}
	return WrongJob
}

func (a *Acceptor) takeProof(m []byte) {
	if !hmac.Equal(m[headSize:], sign(&a.token, "proof", a.transcript)) {
		a.refuse(BadToken, a.fault(ErrToken))
		return
	}
	a.transcript = append(a.transcript, m...)
	a.state = wantJudgement
	h := &a.hello
	switch {
	case h.Connect:
	case a.worldless:
		a.refuse(WrongJob, a.fault(ErrGreeting)) // it would be one inside this job
	case h.Src < 0 || h.Dst < 0 || h.Src == h.Dst && h.World == WorldID{} && !h.Spare:
		a.refuse(UnknownRank, a.fault(ErrGreeting))
	case a.named && a.hello.ResumableID == ResumableID{}:
		a.refuse(UnknownLink, a.fault(ErrGreeting))
	}
}

// fault adds the ranks that the dialler claims to an error.
func (a *Acceptor) fault(err error) error {
	switch {
	case a.hello.Connect:
		return fmt.Errorf("dynamic: connect to a port: %w", err)
	case a.hello.Hosts:
		return fmt.Errorf("dynamic: channel that claims to be from host %d to host %d: %w", a.hello.Src, a.hello.Dst, err)
	}
	return fmt.Errorf("dynamic: direct link that claims to be from rank %d to rank %d: %w", a.hello.Src, a.hello.Dst, err)
}

// Accept accepts the link. It panics unless Peer has returned a Hello and no verdict was given.
func (a *Acceptor) Accept() {
	a.mustJudge()
	a.judge(Accepted)
}

// Refuse refuses the link. It panics unless Peer has returned a Hello and no verdict was given, and
// if why is Accepted.
func (a *Acceptor) Refuse(why Verdict) {
	a.mustJudge()
	if why == Accepted {
		panic("dynamic: a refusal that says accepted")
	}
	a.refuse(why, &RefusedError{Hello: a.hello, Verdict: why, Proven: true})
}

func (a *Acceptor) mustJudge() {
	if a.state != wantJudgement || a.err != nil {
		panic("dynamic: an acceptor was judged out of turn")
	}
}

func (a *Acceptor) refuse(why Verdict, err error) {
	a.err = err
	a.judge(why)
}

// judge sends the verdict, signed only for a dialler that has proven itself.
func (a *Acceptor) judge(v Verdict) {
	body := binary.BigEndian.AppendUint32(appendHead(nil, kindVerdict), uint32(v))
	mac := make([]byte, macSize)
	if a.state == wantJudgement {
		mac = sign(&a.token, "verdict", append(a.transcript, body...))
	}
	a.out = append(append(a.out, body...), mac...)
	a.state = judged
}
