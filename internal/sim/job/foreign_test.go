package job

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/sim/kernel"
)

// optional are the labels that clients in the field leave out.
func optional() (all []wire.Label) {
	for _, l := range wire.StandardLabels() {
		if l.Optional {
			all = append(all, l.Label)
		}
	}
	return all
}

// foreign makes a random foreign site.
func foreign(rng *rand.Rand) Site {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	f := &Foreign{Eager: one(2), Habits: one(2), FalseLen: one(2)}
	marks := one(3) // an ackmark is of no use without a hiwater
	for _, l := range optional() {
		if l == wire.LabelAckMark || l == wire.LabelHiWater {
			if marks {
				f.Skip = append(f.Skip, l)
			}
		} else if one(3) {
			f.Skip = append(f.Skip, l)
		}
	}
	for _, l := range []wire.Label{0x0001, 0x1150, 0x2401, 0x3200, 0x7fffffff} {
		if one(4) {
			f.Extra = append(f.Extra, l)
		}
	}
	p := startup.DefaultParams()
	p.DataLen = []uint32{1, 2, 100, 5000}[rng.IntN(4)]
	p.TagUB = wire.Tag(32767 + rng.IntN(3))
	p.HiWater = 1 + rng.Uint32N(3)
	p.AckMark = 1 + rng.Uint32N(p.HiWater)
	return Site{Hosts: []int{2, 1}[:1+rng.IntN(2)], Foreign: f, Params: p}
}

// TestForeignSites: jobs with sites that do whatever the protocol allows.
func TestForeignSites(t *testing.T) {
	for seed := range seeds(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		size := 1 + rng.IntN(60)
		cfg := twoSites(func(e Env) error { return ringOf(e, size) })
		cfg.Sites = append(cfg.Sites, foreign(rng))
		if rng.IntN(3) == 0 {
			cfg.Sites = append(cfg.Sites, foreign(rng))
		}
		rng.Shuffle(len(cfg.Sites), func(i, j int) { cfg.Sites[i], cfg.Sites[j] = cfg.Sites[j], cfg.Sites[i] })
		if rng.IntN(3) == 0 {
			cfg.Auth = startup.Auth{HasKey: true, Key: 7, None: rng.IntN(2) == 0}
		}
		clean(t, seed, simulate(t, seed, cfg))
	}
}

// TestForeignSitesAlone: a job without clients of ours comes to the same result.
func TestForeignSitesAlone(t *testing.T) {
	for seed := range seeds(30) {
		rng := rand.New(rand.NewPCG(seed, 2))
		cfg := Config{Links: rough(), Program: func(e Env) error { return ringOf(e, 10) }}
		for range 2 + rng.IntN(3) {
			s := foreign(rng)
			s.Foreign.Skip = slices.DeleteFunc(s.Foreign.Skip, func(l wire.Label) bool {
				return l == wire.LabelDataLen || l == wire.LabelAckMark || l == wire.LabelHiWater
			})
			cfg.Sites = append(cfg.Sites, s)
		}
		clean(t, seed, simulate(t, seed, cfg))
	}
}

func TestFaultsOfForeignSites(t *testing.T) {
	for seed := range seeds(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		cfg := twoSites(func(e Env) error { return ringOf(e, 20) })
		cfg.Sites[seed%2] = foreign(rng)
		kind := []FaultKind{CrashProc, CrashNode, CutLink, HalfClose}[seed%4]
		simulate(t, seed, cfg, somewhere(t, seed, kind, cfg))
	}
}

// packets makes a stream of packets of all types, with data where they have it.
func packets(rng *rand.Rand, n int) (b []byte) {
	for range n {
		p := wire.Packet{Type: wire.PacketType(rng.IntN(8)), Seq: rng.Uint64()}
		var data []byte
		if p.Type.HasData() {
			data = make([]byte, rng.IntN(300))
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			p.Len, p.MsgLen = uint32(len(data)), uint64(len(data))
		}
		var h [wire.HeaderSize]byte
		wire.Published.PutHeader(h[:], &p)
		b = append(append(b, h[:]...), data...)
	}
	return b
}

// TestFalseLengths: whatever pieces the link takes, only the lengths of packets without
// data change, and most of those do.
func TestFalseLengths(t *testing.T) {
	for seed := range seeds(50) {
		k := kernel.New(seed)
		l := k.NewLink(kernel.LinkSpec{Capacity: 1 + int(seed*7), Chop: 0.5, Delay: time.Microsecond}, nil)
		x := newFalseLengths(l.Ends[0], seed, func(wire.PacketType) bool { return true })
		truth := packets(k.Rand(), 40)
		var got []byte
		for sent := 0; len(got) < len(truth); {
			cut := sent + k.Rand().IntN(min(500, len(truth)-sent)+1)
			n, err := x.Send([][]byte{truth[sent:cut], truth[cut:]})
			if err != nil || n > len(truth)-sent {
				t.Fatal(n, err)
			}
			sent += n
			if err := k.Run(1e6, time.Hour, func() bool { return false }); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, len(truth))
			n, _ = l.Ends[1].Recv([][]byte{buf})
			got = append(got, buf[:n]...)
		}
		if lies := falsehoods(t, got, truth); lies < 10 {
			t.Errorf("seed %d: %d lies", seed, lies)
		}
	}
}

// falsehoods counts the packets whose lengths differ from those in truth.
func falsehoods(t *testing.T, got, truth []byte) (lies int) {
	for len(truth) > 0 {
		n := 0
		if kind := wire.PacketType(binary.BigEndian.Uint32(truth)); kind.HasData() {
			n = int(binary.BigEndian.Uint32(truth[4:]))
		} else {
			if !bytes.Equal(got[4:8], truth[4:8]) {
				lies++
			}
			copy(got[4:8], truth[4:8])
			copy(got[72:80], truth[72:80])
		}
		n += wire.HeaderSize
		if !bytes.Equal(got[:n], truth[:n]) {
			t.Fatalf("it changed what it must not:\n%x\n%x", got[:n], truth[:n])
		}
		got, truth = got[n:], truth[n:]
	}
	return lies
}
