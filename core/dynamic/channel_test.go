package dynamic

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

func channelEnds() (a, b ChannelEnd) {
	return ChannelEnd{Rank: 1, Address: wire.HostID{12: 10, 15: 1}, Port: 5001}, ChannelEnd{Rank: 2, Address: wire.HostID{12: 10, 15: 2}, Port: 5002}
}

// TestChannelBytes fixes what both ends must find.
func TestChannelBytes(t *testing.T) {
	a, b := channelEnds()
	token := testToken.Channel(a, b)
	if got, want := hex.EncodeToString(token[:]), "0281d4e21618169e0960c84f9839ec56c7cec791384f063c122fb01b526fafe9"; got != want {
		t.Errorf("token %s, want %s", got, want)
	}
	session := token.ChannelResumableID()
	if got, want := hex.EncodeToString(session[:]), "8cf4a8c7b74a5bbc47f16d1d1f541ae4"; got != want {
		t.Errorf("session %s, want %s", got, want)
	}
	if testToken.Channel(b, a) != token {
		t.Error("the order of the ends matters")
	}
}

// channelGreeting plays the greeting of host 2, which believes in the ends dialled,
// with host 1, which believes in the ends accepted and knows no other channel. It gives what
// either end makes of it.
func channelGreeting(dialler, acceptor *Token) (dialled, accepted error) {
	hello := Hello{Src: 2, Dst: 1, ResumableID: dialler.ChannelResumableID(), Resumes: true, Hosts: true}
	d := NewDialler(*dialler, nonceD, hello)
	a := NewAcceptor(func(name WorldID, of Purpose) (Token, bool) {
		return *acceptor, of == OfChannel && name == acceptor.World()
	}, nonceA)
	for range 2 {
		if accepted == nil {
			_, accepted = a.Input(d.Output())
		}
		if _, dialled = d.Input(a.Output()); dialled != nil {
			return dialled, accepted
		}
	}
	if _, ok := a.Peer(); ok {
		a.Accept()
	}
	_, dialled = d.Input(a.Output())
	return dialled, accepted
}

// TestProofIsForOneChannel: whoever has the token of a channel can prove nothing about
// one whose ends have another rank, address or port.
func TestProofIsForOneChannel(t *testing.T) {
	a, b := channelEnds()
	right := testToken.Channel(a, b)
	if d, x := channelGreeting(&right, &right); d != nil || x != nil {
		t.Fatalf("the right one: %v, %v", d, x)
	}
	for name, change := range map[string]func(a, b *ChannelEnd){
		"the dialler's rank":     func(_, b *ChannelEnd) { b.Rank = 3 },
		"the dialler's address":  func(_, b *ChannelEnd) { b.Address[15]++ },
		"the dialler's port":     func(_, b *ChannelEnd) { b.Port++ },
		"the acceptor's rank":    func(a, _ *ChannelEnd) { a.Rank = 0 },
		"the acceptor's address": func(a, _ *ChannelEnd) { a.Address[0]++ },
		"the acceptor's port":    func(a, _ *ChannelEnd) { a.Port-- },
		"both addresses":         func(a, b *ChannelEnd) { a.Address, b.Address = b.Address, a.Address },
	} {
		x, y := channelEnds()
		change(&x, &y)
		wrong := testToken.Channel(x, y)
		d, acc := channelGreeting(&wrong, &right)
		var refused *RefusedError
		if !errors.Is(acc, ErrJob) || !errors.As(d, &refused) || refused.Proven {
			t.Errorf("%s: the dialler hears %v, the acceptor %v", name, d, acc)
		}
	}
	other := otherToken.Channel(a, b)
	if _, err := channelGreeting(&other, &right); !errors.Is(err, ErrJob) {
		t.Errorf("another secret: %v", err)
	}
}

// TestReplayedProof: what a host of ours has once said opens no second channel.
func TestReplayedProof(t *testing.T) {
	a, b := channelEnds()
	token := testToken.Channel(a, b)
	keys := func(name WorldID, of Purpose) (Token, bool) { return token, of == OfChannel && name == token.World() }
	hello := Hello{Src: 2, Dst: 1, ResumableID: token.ChannelResumableID(), Resumes: true, Hosts: true}
	first := NewAcceptor(keys, nonceA)
	recorded, _, proof := upToJudgement(t, NewDialler(token, nonceD, hello), first, 1000)
	if _, ok := first.Peer(); !ok {
		t.Fatal("the recorded one failed")
	}
	second := NewAcceptor(keys, Nonce{31: 99})
	if _, err := second.Input(recorded); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Input(proof); !errors.Is(err, ErrToken) {
		t.Errorf("%v", err)
	}
}

// TestAttackerWhoAccepts: an attacker at a host's TCP port, without the token of the channel,
// cannot accept.
func TestAttackerWhoAccepts(t *testing.T) {
	a, b := channelEnds()
	token, guess := testToken.Channel(a, b), otherToken.Channel(a, b)
	d := NewDialler(token, nonceD, Hello{Src: 2, Dst: 1, ResumableID: token.ChannelResumableID(), Resumes: true, Hosts: true})
	x := NewAcceptor(func(WorldID, Purpose) (Token, bool) { return guess, true }, nonceA)
	_, _ = x.Input(d.Output())
	_, _ = d.Input(x.Output())
	said := x.transcript
	body := append(appendHead(nil, kindVerdict), 0, 0, 0, 0)
	if _, err := d.Input(append(body, sign(&guess, "verdict", append(said, body...))...)); !errors.Is(err, ErrToken) || d.Done() {
		t.Errorf("%v", err)
	}
}

func TestBeginsGreeting(t *testing.T) {
	for b, want := range map[[4]byte]bool{
		{0x49, 0x44, 0x4c, 1}: true, {0x49, 0x44, 0x4c, 2}: true,
		{0x49, 0x44, 0x4d, 1}: false, {}: false, {0, 0, 0, 1}: false, {0, 0x10}: false,
	} {
		if BeginsGreeting(b) != want {
			t.Errorf("%x: %v", b, !want)
		}
	}
}
