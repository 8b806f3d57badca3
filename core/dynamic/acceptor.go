package dynamic

import (
	"crypto/hmac"
	"encoding/binary"
	"fmt"

	"github.com/openimpi/impi/core/wire"
)

// Acceptor is the greeting at the end that was connected to. Once Peer gives a Hello, the
// owner must call Accept or Refuse. The first error is final; Output then has the refusal,
// which the owner sends before it closes the link.
type Acceptor struct {
	keys  Keys
	token Token // once the dialler has said which
	nonce Nonce
	hello Hello
	named bool   // hello has a session
	said  []byte // everything, both ways, that the next MAC covers
	out   []byte
	in    inbox
	state acceptorState
	err   error
}

type acceptorState uint8

const (
	wantHello acceptorState = iota
	wantProof
	wantJudgement
	judged
)

// Keys finds the token for a purpose by its name; ok is false if there is none.
type Keys func(name World, of Purpose) (Token, bool)

// KeysOfJob has the token of a job, for its own procs and for nodes that spawn. It has no
// ports and knows no other world.
func KeysOfJob(token Token) Keys {
	name := token.World()
	return func(w World, of Purpose) (Token, bool) { return token, of == OfJob && w == name }
}

// NewAcceptor begins a greeting. The nonce must be random and never used before.
func NewAcceptor(keys Keys, nonce Nonce) *Acceptor {
	return &Acceptor{keys: keys, nonce: nonce}
}

// Output takes the bytes that are to be sent now.
func (a *Acceptor) Output() []byte {
	b := a.out
	a.out = nil
	return b
}

// Done reports whether the link was accepted and packets may follow.
func (a *Acceptor) Done() bool { return a.state == judged && a.err == nil }

// Peer gives what the dialler wants, once it has proven that it has the token.
func (a *Acceptor) Peer() (hello Hello, ok bool) {
	return a.hello, a.state >= wantJudgement && a.err == nil
}

// Input takes bytes from the dialler and says how many of them belonged to the
// greeting. ErrGreeting, ErrJob and ErrToken are the faults. Before Accept the
// dialler has nothing to send; what it sends then is not consumed.
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
	a.said = append(a.said, m...)
	k, _ := parseHead(m) // sizeOf has seen it
	a.readHello(k, m[headSize+jobIDSize+NonceSize:])
	name := World(m[headSize : headSize+jobIDSize])
	var known bool
	if a.token, known = a.keys(name, k.purpose()); !known {
		a.refuse(unknown(k), a.fault(ErrJob))
		return
	}
	if k == kindCall {
		a.hello.Port = name
	}
	challenge := append(appendHead(nil, kindChallenge), a.nonce[:]...)
	a.said = append(a.said, challenge...)
	a.out = append(a.out, challenge...)
	a.state = wantProof
}

// readHello reads what follows the nonce.
func (a *Acceptor) readHello(k kind, b []byte) {
	a.hello.set(k)
	a.hello.Src = wire.WorldRank(binary.BigEndian.Uint32(b))
	a.hello.Dst = wire.WorldRank(binary.BigEndian.Uint32(b[4:]))
	b = b[8:]
	switch {
	case k == kindMeet:
		copy(a.hello.World[:], b)
	case len(b) > 0:
		a.named = true
		b = b[copy(a.hello.Session[:], b):]
	}
	if k == kindLost {
		a.hello.Epoch = binary.BigEndian.Uint64(b)
	}
}

// unknown is the verdict for a dialler whose token is not known here.
func unknown(k kind) Verdict {
	if k == kindCall {
		return ClosedPort
	}
	return WrongJob
}

func (a *Acceptor) takeProof(m []byte) {
	if !hmac.Equal(m[headSize:], sign(&a.token, "proof", a.said)) {
		a.refuse(BadToken, a.fault(ErrToken))
		return
	}
	a.said = append(a.said, m...)
	a.state = wantJudgement
	h := &a.hello
	switch {
	case h.Call:
	case h.Src < 0 || h.Dst < 0 || h.Src == h.Dst && h.World == World{}:
		a.refuse(UnknownRank, a.fault(ErrGreeting))
	case a.named && a.hello.Session == Session{}:
		a.refuse(UnknownLink, a.fault(ErrGreeting))
	}
}

// fault names the ranks that the dialler claims.
func (a *Acceptor) fault(err error) error {
	switch {
	case a.hello.Call:
		return fmt.Errorf("dynamic: a call of a port: %w", err)
	case a.hello.Hosts:
		return fmt.Errorf("dynamic: channel that claims to be from host %d to host %d: %w", a.hello.Src, a.hello.Dst, err)
	}
	return fmt.Errorf("dynamic: direct link that claims to be from rank %d to rank %d: %w", a.hello.Src, a.hello.Dst, err)
}

// Accept takes the link. It panics unless Peer is there and has not been judged.
func (a *Acceptor) Accept() {
	a.mustJudge()
	a.judge(Accepted)
}

// Refuse turns the dialler away. It panics unless Peer is there and has not
// been judged, and for Accepted.
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
		mac = sign(&a.token, "verdict", append(a.said, body...))
	}
	a.out = append(append(a.out, body...), mac...)
	a.state = judged
}
