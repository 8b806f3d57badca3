package dynamic

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/watchdog"
)

var (
	testToken  = Token{1, 2, 3}
	otherToken = Token{1, 2, 4}
	nonceD     = Nonce{10}
	nonceA     = Nonce{20}
	testHello  = Hello{Src: 3, Dst: 1<<31 - 1}
)

// feed passes all of b to an Input, n bytes at a time, as long as it takes any.
func feed(input func([]byte) (int, error), b []byte, n int) (left []byte, err error) {
	for len(b) > 0 {
		took, err := input(b[:min(n, len(b))])
		if b = b[took:]; err != nil || took == 0 {
			return b, err
		}
	}
	return nil, nil
}

// upToJudgement runs a greeting until the acceptor must judge, and gives what
// the dialler said.
func upToJudgement(t testing.TB, d *Dialler, a *Acceptor, piece int) (hello, challenge, proof []byte) {
	t.Helper()
	hello = d.Output()
	if _, err := feed(a.Input, hello, piece); err != nil {
		t.Fatal(err)
	}
	challenge = a.Output()
	if _, err := feed(d.Input, challenge, piece); err != nil {
		t.Fatal(err)
	}
	proof = d.Output()
	if _, err := feed(a.Input, proof, piece); err != nil {
		t.Fatal(err)
	}
	return hello, challenge, proof
}

func TestGreetingAccepted(t *testing.T) {
	for piece := range 200 {
		d, a := NewDialler(testToken, nonceD, testHello), NewAcceptor(KeysOfJob(testToken), nonceA)
		if _, ok := a.Peer(); ok || a.Done() || d.Done() {
			t.Fatal("nothing was said yet")
		}
		hello, challenge, proof := upToJudgement(t, d, a, piece+1)
		if h, ok := a.Peer(); !ok || h != testHello || a.Done() {
			t.Fatalf("peer %+v %v", h, ok)
		}
		a.Accept()
		verdict := a.Output()
		left, err := feed(d.Input, verdict, piece+1)
		if err != nil || len(left) != 0 || !d.Done() || !a.Done() {
			t.Fatalf("pieces of %d: %v, %d left", piece+1, err, len(left))
		}
		if len(hello) != helloSize || len(challenge) != challengeSize || len(proof) != proofSize || len(verdict) != verdictSize {
			t.Fatalf("messages of %d, %d, %d and %d bytes", len(hello), len(challenge), len(proof), len(verdict))
		}
	}
}

// TestGreetingLeavesThePackets: bytes after the last message are not taken, on
// either side, even when they come in the same read.
func TestGreetingLeavesThePackets(t *testing.T) {
	d, a := NewDialler(testToken, nonceD, testHello), NewAcceptor(KeysOfJob(testToken), nonceA)
	a.Input(d.Output())
	d.Input(a.Output())
	packets := []byte("packets follow")
	proof := append(d.Output(), packets...)
	n, err := a.Input(proof)
	if err != nil || !bytes.Equal(proof[n:], packets) {
		t.Fatalf("acceptor took %d of %d: %v", n, len(proof), err)
	}
	if n, err := a.Input(packets); n != 0 || err != nil {
		t.Fatalf("before its judgement the acceptor took %d: %v", n, err)
	}
	a.Accept()
	verdict := append(a.Output(), packets...)
	n, err = d.Input(verdict)
	if err != nil || !bytes.Equal(verdict[n:], packets) || !d.Done() {
		t.Fatalf("dialler took %d of %d: %v", n, len(verdict), err)
	}
	if n, err := d.Input(packets); n != 0 || err != nil {
		t.Fatalf("when done the dialler took %d: %v", n, err)
	}
}

// TestGreetingOfASpareSite: it has no rank, and its greeting says which host it wants.
func TestGreetingOfASpareSite(t *testing.T) {
	for _, to := range []wire.WorldRank{0, 5} {
		hello := Hello{Spare: true, Dst: to}
		d, a := NewDialler(testToken, nonceD, hello), NewAcceptor(KeysOfJob(testToken), nonceA)
		upToJudgement(t, d, a, 1000)
		if h, ok := a.Peer(); !ok || h != hello || !strings.Contains(h.String(), "offer of a spare site to host") {
			t.Errorf("%+v %t", h, ok)
		}
		a.Accept()
		if _, err := d.Input(a.Output()); err != nil || !d.Done() {
			t.Error(err)
		}
	}
}

func TestGreetingRefused(t *testing.T) {
	for _, why := range []Verdict{UnknownRank, TieLost, Leaving, NotAllowed, Busy, UnknownLink, 99} {
		d, a := NewDialler(testToken, nonceD, testHello), NewAcceptor(KeysOfJob(testToken), nonceA)
		upToJudgement(t, d, a, 1000)
		a.Refuse(why)
		_, err := d.Input(a.Output())
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Verdict != why || refused.Hello != testHello || !refused.Proven || d.Done() || a.Done() {
			t.Errorf("%v: %v", why, err)
		}
	}
}

// TestGreetingWrongJob: the token of another job ends at the first message, and
// the refusal says so though it cannot be proven.
func TestGreetingWrongJob(t *testing.T) {
	d, a := NewDialler(otherToken, nonceD, testHello), NewAcceptor(KeysOfJob(testToken), nonceA)
	if _, err := a.Input(d.Output()); !errors.Is(err, ErrJob) {
		t.Errorf("acceptor: %v", err)
	}
	if _, ok := a.Peer(); ok {
		t.Error("a stranger got through")
	}
	_, err := d.Input(a.Output())
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Verdict != WrongJob || refused.Proven {
		t.Errorf("dialler: %v", err)
	}
}

// TestGreetingReplay: a recording of a good dialler is of no use, because the
// challenge differs; and one of a good acceptor, because the nonce does.
func TestGreetingReplay(t *testing.T) {
	d, a := NewDialler(testToken, nonceD, testHello), NewAcceptor(KeysOfJob(testToken), nonceA)
	hello, challenge, proof := upToJudgement(t, d, a, 1000)
	a.Accept()
	verdict := a.Output()

	again := NewAcceptor(KeysOfJob(testToken), Nonce{21})
	if _, err := again.Input(append(bytes.Clone(hello), proof...)); !errors.Is(err, ErrToken) {
		t.Errorf("acceptor: %v", err)
	}
	if _, ok := again.Peer(); ok {
		t.Error("a recording got through")
	}

	victim := NewDialler(testToken, Nonce{11}, testHello)
	if _, err := victim.Input(append(bytes.Clone(challenge), verdict...)); !errors.Is(err, ErrToken) {
		t.Errorf("dialler: %v", err)
	}
}

// TestGreetingForgedAcceptor: whoever does not have the token cannot say yes,
// with or without a challenge, and not by reflecting the dialler's own words.
func TestGreetingForgedAcceptor(t *testing.T) {
	yes := append(append(appendHead(nil, kindVerdict), 0, 0, 0, 0), make([]byte, macSize)...)
	d := NewDialler(testToken, nonceD, testHello)
	if _, err := d.Input(yes); !errors.Is(err, ErrToken) {
		t.Errorf("at once: %v", err)
	}
	d = NewDialler(testToken, nonceD, testHello)
	d.Output()
	d.Input(append(appendHead(nil, kindChallenge), nonceA[:]...))
	copy(yes[headSize+4:], d.Output()[headSize:])
	if _, err := d.Input(yes); !errors.Is(err, ErrToken) || d.Done() {
		t.Errorf("with the dialler's own proof: %v", err)
	}
}

// TestGreetingRefusalCannotBecomeYes: the code is under the MAC.
func TestGreetingRefusalCannotBecomeYes(t *testing.T) {
	d, a := NewDialler(testToken, nonceD, testHello), NewAcceptor(KeysOfJob(testToken), nonceA)
	upToJudgement(t, d, a, 1000)
	a.Refuse(TieLost)
	b := a.Output()
	b[headSize+3] = 0
	if _, err := d.Input(b); !errors.Is(err, ErrToken) || d.Done() {
		t.Errorf("%v", err)
	}
}

// TestGreetingBitFlips: no bit of any message can be changed.
func TestGreetingBitFlips(t *testing.T) {
	run := func(flip func(message int, b []byte)) (ok bool) {
		d, a := NewDialler(testToken, nonceD, testHello), NewAcceptor(KeysOfJob(testToken), nonceA)
		for message := 0; message < 4; message += 2 {
			up := d.Output()
			flip(message, up)
			if _, err := a.Input(up); err != nil {
				return false
			}
			if _, there := a.Peer(); there {
				a.Accept()
			}
			down := a.Output()
			flip(message+1, down)
			if _, err := d.Input(down); err != nil {
				return false
			}
		}
		return d.Done() && a.Done()
	}
	if !run(func(int, []byte) {}) {
		t.Fatal("the greeting itself")
	}
	for message, size := range []int{helloSize, challengeSize, proofSize, verdictSize} {
		for bit := range size * 8 {
			if run(func(m int, b []byte) {
				if m == message {
					b[bit/8] ^= 1 << (bit % 8)
				}
			}) {
				t.Fatalf("bit %d of message %d does not matter", bit, message)
			}
		}
	}
}

// TestGreetingTruncated: no prefix is enough, and none is an error by itself.
func TestGreetingTruncated(t *testing.T) {
	d, a := NewDialler(testToken, nonceD, testHello), NewAcceptor(KeysOfJob(testToken), nonceA)
	hello, _, proof := upToJudgement(t, d, a, 1000)
	all := append(hello, proof...)
	for n := range all {
		b := NewAcceptor(KeysOfJob(testToken), nonceA)
		if took, err := b.Input(all[:n]); took != n || err != nil {
			t.Fatalf("%d bytes: %d taken, %v", n, took, err)
		}
		if _, ok := b.Peer(); ok {
			t.Fatalf("%d bytes are enough", n)
		}
	}
}

func TestGreetingMalformed(t *testing.T) {
	for name, b := range map[string][]byte{
		"a packet":           make([]byte, 128),
		"another version":    {'I', 'D', 'L', 2, 0, 0, 0, 1},
		"unknown kind":       {'I', 'D', 'L', 1, 0, 0, 0, 99},
		"kind out of place":  {'I', 'D', 'L', 1, 0, 0, 0, 3},
		"a web browser":      []byte("GET / HTTP/1.1\r\n\r\n"),
		"an acceptor's word": appendHead(nil, kindChallenge),
	} {
		a := NewAcceptor(KeysOfJob(testToken), nonceA)
		if _, err := a.Input(b); !errors.Is(err, ErrGreeting) {
			t.Errorf("%s: acceptor: %v", name, err)
		}
		out := a.Output()
		if v := Verdict(out[headSize+3]); v != Malformed {
			t.Errorf("%s: the dialler hears %v", name, v)
		}
		if n, err := a.Input([]byte{1}); n != 0 || !errors.Is(err, ErrGreeting) || a.Output() != nil {
			t.Errorf("%s: the first error is not final: %d %v", name, n, err)
		}
		if name == "an acceptor's word" {
			continue
		}
		if _, err := NewDialler(testToken, nonceD, testHello).Input(b); !errors.Is(err, ErrGreeting) {
			t.Errorf("%s: dialler: %v", name, err)
		}
	}
}

// TestGreetingSecondChallenge: one proof per greeting.
func TestGreetingSecondChallenge(t *testing.T) {
	d := NewDialler(testToken, nonceD, testHello)
	c := append(appendHead(nil, kindChallenge), nonceA[:]...)
	if _, err := d.Input(append(bytes.Clone(c), c...)); !errors.Is(err, ErrGreeting) {
		t.Errorf("%v", err)
	}
}

func TestGreetingBadRanks(t *testing.T) {
	for _, h := range []Hello{{Src: -1}, {Dst: -1}, {Src: 5, Dst: 5}, {Src: 5, Dst: 5, Probe: true}} {
		d, a := NewDialler(testToken, nonceD, h), NewAcceptor(KeysOfJob(testToken), nonceA)
		a.Input(d.Output())
		d.Input(a.Output())
		if _, err := a.Input(d.Output()); !errors.Is(err, ErrGreeting) {
			t.Errorf("%+v: %v", h, err)
		}
		var refused *RefusedError
		if _, err := d.Input(a.Output()); !errors.As(err, &refused) || refused.Verdict != UnknownRank || !refused.Proven {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

// TestProbeIsNoLink: a probe is known as one, and nobody on the way can make one
// of a link, or a link of one.
func TestProbeIsNoLink(t *testing.T) {
	probe := testHello
	probe.Probe = true
	for _, said := range []Hello{testHello, probe} {
		d, a := NewDialler(testToken, nonceD, said), NewAcceptor(KeysOfJob(testToken), nonceA)
		upToJudgement(t, d, a, 1000)
		if h, ok := a.Peer(); !ok || h != said {
			t.Errorf("%+v arrives as %+v, %v", said, h, ok)
		}
		d, a = NewDialler(testToken, nonceD, said), NewAcceptor(KeysOfJob(testToken), nonceA)
		hello := d.Output()
		copy(hello, appendHead(nil, kindHello+kindProbe-kind(hello[headSize-1])))
		a.Input(hello)
		d.Input(a.Output())
		if _, err := a.Input(d.Output()); !errors.Is(err, ErrToken) {
			t.Errorf("%+v with its kind changed: %v", said, err)
		}
	}
}

// TestSessions: what a resumable link is for arrives as it was said, and a byte of
// the session cannot be changed on the way, nor one kind be made of another.
func TestSessions(t *testing.T) {
	session := ResumableID{1, 15: 2}
	all := []Hello{
		{Src: 3, Dst: 4, ResumableID: session},
		{Src: 3, Dst: 4, ResumableID: session, Resumes: true},
		{Src: 3, Dst: 4, ResumableID: session, Resumes: true, Hosts: true},
		{Src: 3, Dst: 4, ResumableID: session, Lost: true, Epoch: 1<<40 + 7},
		{Src: 3, Dst: 3, World: WorldID{9}, ResumableID: session},
		{Src: 3, Dst: 4, World: WorldID{9}, ResumableID: session, Resumes: true},
		{Src: 3, Dst: 4, World: WorldID{9}, ResumableID: session, Lost: true, Epoch: 1<<40 + 7},
	}
	for _, said := range all {
		for _, piece := range []int{1, 7, 1000} {
			d, a := NewDialler(testToken, nonceD, said), NewAcceptor(anyPurpose, nonceA)
			hello, _, _ := upToJudgement(t, d, a, piece)
			if h, ok := a.Peer(); !ok || h != said || len(hello) != helloSizeOf(said.kind()) {
				t.Errorf("%+v arrives as %+v, %v, in %d bytes", said, h, ok, len(hello))
			}
			a.Refuse(UnknownLink)
			_, err := d.Input(a.Output())
			var refused *RefusedError
			if !errors.As(err, &refused) || !refused.Proven || refused.Verdict != UnknownLink {
				t.Errorf("%+v: %v", said, err)
			}
		}
		for at := range ResumableIDSize + 1 {
			d, a := NewDialler(testToken, nonceD, said), NewAcceptor(anyPurpose, nonceA)
			hello := d.Output()
			if at < ResumableIDSize {
				hello[len(hello)-1-at] ^= 1
			} else if said.Lost {
				continue // no other kind is as long
			} else if said.World != (WorldID{}) {
				hello[headSize-1] ^= byte(kindMeetResumable ^ kindMeetAgain)
			} else if hello[headSize-1]++; hello[headSize-1] > byte(kindHosts) {
				hello[headSize-1] = byte(kindResumable)
			}
			a.Input(hello)
			d.Input(a.Output())
			if _, err := a.Input(d.Output()); !errors.Is(err, ErrToken) {
				t.Errorf("%+v, changed at %d: %v", said, at, err)
			}
		}
	}
}

func TestSessionMustNotBeZero(t *testing.T) {
	d, a := NewDialler(testToken, nonceD, Hello{Src: 1, Dst: 2, ResumableID: ResumableID{1}}), NewAcceptor(anyPurpose, nonceA)
	d.hello.ResumableID = ResumableID{}
	hello := d.Output()
	copy(hello[helloSize:], make([]byte, ResumableIDSize))
	d.transcript = bytes.Clone(hello) // so that the MAC is right
	a.Input(hello)
	d.Input(a.Output())
	if _, err := a.Input(d.Output()); !errors.Is(err, ErrGreeting) {
		t.Errorf("%v", err)
	}
}

func TestGreetingJudgedOutOfTurn(t *testing.T) {
	a := NewAcceptor(anyPurpose, nonceA)
	for name, f := range map[string]func(){"accept": a.Accept, "refuse": func() { a.Refuse(TieLost) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s without a peer", name)
				}
			}()
			f()
		}()
	}
}

// fuzzedHellos are what the fuzzed greetings are about.
var fuzzedHellos = []Hello{
	testHello, {Src: 2, Dst: 1, ResumableID: ResumableID{7}, Resumes: true, Hosts: true},
	{Src: 2, Dst: 1, World: WorldID{9}, ResumableID: ResumableID{7}, Lost: true, Epoch: 3},
}

func FuzzAcceptor(f *testing.F) {
	var good [][]byte
	for _, h := range fuzzedHellos {
		d, a := NewDialler(testToken, nonceD, h), NewAcceptor(anyPurpose, nonceA)
		hello, _, proof := upToJudgement(f, d, a, 1000)
		all := append(hello, proof...)
		good = append(good, all)
		f.Add(all, uint8(255))
		f.Add(all[:70], uint8(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		defer watchdog.Start()()
		a := NewAcceptor(anyPurpose, nonceA)
		left, err := feed(a.Input, b, int(piece)+1)
		used := b[:len(b)-len(left)]
		isGood := slices.ContainsFunc(good, func(g []byte) bool { return bytes.Equal(used, g) })
		if _, ok := a.Peer(); ok != isGood {
			t.Fatalf("%x: peer %v", b, ok)
		}
		if len(used) > meetLostSize+proofSize {
			t.Fatalf("%d bytes taken", len(used))
		}
		if err == nil && len(left) > 0 && !isGood {
			t.Fatalf("stuck with %d bytes left", len(left))
		}
	})
}

func FuzzDialler(f *testing.F) {
	var good [][]byte
	for _, h := range fuzzedHellos {
		d, a := NewDialler(testToken, nonceD, h), NewAcceptor(anyPurpose, nonceA)
		_, challenge, _ := upToJudgement(f, d, a, 1000)
		a.Accept()
		good = append(good, append(challenge, a.Output()...))
		f.Add(good[len(good)-1], uint8(255))
	}
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		defer watchdog.Start()()
		for i, h := range fuzzedHellos {
			d := NewDialler(testToken, nonceD, h)
			left, err := feed(d.Input, b, int(piece)+1)
			used := b[:len(b)-len(left)]
			if d.Done() != bytes.Equal(used, good[i]) || d.Done() && err != nil {
				t.Fatalf("%x: done %v, %v", b, d.Done(), err)
			}
		}
	})
}

// anyPurpose has the test's token for everything.
func anyPurpose(name WorldID, _ Purpose) (Token, bool) { return testToken, testToken.World() == name }

// keysOf has each token for one purpose only.
func keysOf(job, port, world, channel Token) Keys {
	return func(name WorldID, of Purpose) (Token, bool) {
		t := map[Purpose]Token{OfJob: job, OfPort: port, OfWorld: world, OfChannel: channel}[of]
		return t, t.World() == name
	}
}

// TestGreetingPurposes: what a token is for decides what its owner can ask for.
func TestGreetingPurposes(t *testing.T) {
	job, port := testToken, otherToken
	channel := job.Channel(ChannelEnd{}, ChannelEnd{Rank: 1})
	hosts := Hello{Src: 1, ResumableID: ResumableID{1}, Resumes: true, Hosts: true}
	keys := keysOf(job, port, job.Meeting(), channel)
	for _, c := range []struct {
		token Token
		hello Hello
		want  Verdict
	}{
		{job, Hello{Src: 1, Dst: 2}, Accepted},
		{job, Hello{Src: 1, Dst: 2, Spawn: true}, Accepted},
		{job, Hello{Src: 1, Dst: 2, Status: true}, Accepted},
		{job.Meeting(), Hello{Src: 1, Dst: 2, Status: true}, WrongJob},
		{job, Hello{Connect: true}, ClosedPort},
		{job, Hello{Src: 1, Dst: 2, World: WorldID{9}}, WrongJob},
		{port, Hello{Connect: true, Port: port.World()}, Accepted},
		{port, Hello{Src: 1, Dst: 2}, WrongJob},
		{port, Hello{Src: 1, Dst: 2, World: WorldID{9}}, WrongJob},
		{job.Meeting(), Hello{Src: 2, Dst: 2, World: WorldID{9}}, Accepted},
		{job.Meeting(), Hello{Src: 2, Dst: 2, World: WorldID{9}, ResumableID: ResumableID{1}, Resumes: true}, Accepted},
		{job, Hello{Src: 2, Dst: 2, World: WorldID{9}, ResumableID: ResumableID{1}, Lost: true}, WrongJob},
		{job.Meeting(), Hello{Src: 1, Dst: 2}, WrongJob},
		{job.Meeting(), Hello{Src: 1, Dst: 2, Probe: true}, WrongJob},
		{job.Meeting(), Hello{Connect: true}, ClosedPort},
		{job.Meeting(), Hello{Src: -1, Dst: 2, World: WorldID{9}}, UnknownRank},
		{job.Meeting(), Hello{Src: 2, Dst: 2, World: WorldID{9}, ResumableID: ResumableID{1}, Lost: true}, Accepted},
		{channel, hosts, Accepted},
		{channel, Hello{Src: 1, Dst: 2}, WrongJob},
		{channel, Hello{Src: 1, Dst: 2, ResumableID: ResumableID{1}, Resumes: true}, WrongJob},
		{job, hosts, WrongJob},
	} {
		d, a := NewDialler(c.token, nonceD, c.hello), NewAcceptor(keys, nonceA)
		for range 2 {
			a.Input(d.Output())
			d.Input(a.Output())
		}
		got := Accepted
		if h, ok := a.Peer(); ok {
			if h != c.hello {
				t.Errorf("%v arrived as %v", &c.hello, &h)
			}
			a.Accept()
		}
		_, err := d.Input(a.Output())
		var refused *RefusedError
		if errors.As(d.err, &refused) {
			got = refused.Verdict
		}
		if got != c.want || d.Done() != (c.want == Accepted) {
			t.Errorf("%v: %v, want %v: %v", &c.hello, got, c.want, err)
		}
	}
}

// TestGreetingFailed: whether a dial is made again, and whether its link is asked for, depends on
// when its greeting ended and how.
func TestGreetingFailed(t *testing.T) {
	for _, c := range []struct {
		proved, hungUp, session bool
		want                    DialFailure
	}{
		{false, false, false, 0},
		{false, true, false, NoRoom},
		{false, true, true, NoRoom | Uncertain},
		{true, true, false, 0},
		{true, true, true, Uncertain},
		{true, false, true, Uncertain},
	} {
		if got := GreetingFailed(c.proved, c.hungUp, c.session); got != c.want {
			t.Errorf("%+v: %b", c, got)
		}
		hello := Hello{Src: 1, Dst: 2}
		if c.session {
			hello.ResumableID = ResumableID{1}
		}
		d := NewDialler(Token{1}, Nonce{2}, hello)
		if c.proved {
			a := NewAcceptor(func(WorldID, Purpose) (Token, bool) { return Token{1}, true }, Nonce{3})
			_, _ = a.Input(d.Output())
			if _, err := d.Input(a.Output()); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.Failed(errDial, c.hungUp); got != (DialResult{Err: errDial, Failure: c.want}) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	for _, proven := range []bool{false, true} {
		d := NewDialler(Token{1}, Nonce{2}, Hello{Src: 1, Dst: 2, ResumableID: ResumableID{1}})
		want := DialResult{Err: &RefusedError{Verdict: Leaving, Proven: proven}, Verdict: Leaving}
		if !proven { // anybody could have sent that
			want.Verdict, want.Failure = Accepted, Uncertain
		}
		if got := d.Failed(want.Err, false); got != want {
			t.Errorf("a refusal, proven %v: %+v", proven, got)
		}
	}
}

// TestGreetingOfNoWorld: who proves the secret of those that meet, and names no world, gets no link
// between procs of this job.
func TestGreetingOfNoWorld(t *testing.T) {
	world, none := WorldID{9, 8, 7}, WorldID{}
	for _, hello := range []Hello{
		{Src: 1, Dst: 2, World: world},
		{Src: 1, Dst: 2, World: world, ResumableID: ResumableID{1}},
		{Src: 1, Dst: 2, World: world, ResumableID: ResumableID{1}, Resumes: true},
		{Src: 1, Dst: 2, World: world, ResumableID: ResumableID{1}, Lost: true, Epoch: 1},
	} {
		meeting := testToken.Meeting()
		d, a := NewDialler(meeting, nonceD, hello), NewAcceptor(keysOf(testToken, otherToken, meeting, Token{}), nonceA)
		d.out, d.transcript = bytes.Replace(d.out, world[:], none[:], 1), bytes.Replace(d.transcript, world[:], none[:], 1)
		for range 2 {
			a.Input(d.Output())
			d.Input(a.Output())
		}
		var refused *RefusedError
		if h, ok := a.Peer(); ok || !errors.As(d.err, &refused) || refused.Verdict != WrongJob {
			t.Errorf("%v arrived as %v (%t): %v", &hello, &h, ok, d.err)
		}
	}
}
