package startup

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// metaOmits is what MetaMPICH leaves out.
var metaOmits = []wire.Label{wire.LabelTagUB, wire.LabelAckMark, wire.LabelHiWater}

// optional are the labels of IMPI 0.0 that may be left out.
func optional() (list []wire.Label) {
	for _, info := range wire.StandardLabels() {
		if info.Optional {
			list = append(list, info.Label)
		}
	}
	return list
}

// answered returns label and mask of each answer that a client got.
func answered(t testing.TB, down []byte) map[wire.Label]wire.ClientMask {
	t.Helper()
	masks := make(map[wire.Label]wire.ClientMask)
	for down = down[wire.AuthChoiceSize:]; len(down) > 0; {
		cmd, n := wire.ParseCommand(down)
		payload := down[wire.CommandSize:][:n]
		down = down[wire.CommandSize+int(n):]
		if cmd != wire.CmdColl {
			continue
		}
		l, mask, _, err := wire.ParseAnswer(payload)
		if err != nil {
			t.Fatal(err)
		}
		masks[l] = mask
	}
	return masks
}

// TestOmittedLabels: of three clients the middle one leaves out what MetaMPICH
// does. Its bit is in no mask of those, and all three, itself too, run with what
// the other two say and not with what it was configured for.
func TestOmittedLabels(t *testing.T) {
	a, silent, b := testClient(0, 1, 2), testClient(1, 2), testClient(2, 1)
	a.Params.TagUB, a.Params.AckMark, a.Params.HiWater = 40000, 5, 30
	b.Params.TagUB, b.Params.AckMark, b.Params.HiWater = 50000, 6, 20
	silent.Params.TagUB, silent.Params.AckMark, silent.Params.HiWater = 32767, 1, 2
	silent.Omit = metaOmits
	w := newWhole(t, ServerConfig{}, a, silent, b)
	w.run()
	j := w.jobs(t)
	if j.TagUB != 40000 || j.AckMark != 5 || j.HiWater != 20 || !j.AllOwn {
		t.Error(describe(j))
	}
	for i := range w.clients {
		for l, mask := range answered(t, w.sentDn[i]) {
			want := wire.MaskOf(3)
			if slices.Contains(metaOmits, l) {
				want = 0b101
			}
			if mask != want {
				t.Errorf("client %d: the mask of %v is %v, want %v", i, l, mask, want)
			}
		}
	}
}

// TestEachLabelOmitted: any one of the optional labels, left out by the first, the
// last, or all clients.
func TestEachLabelOmitted(t *testing.T) {
	for _, l := range optional() {
		for _, who := range []wire.ClientMask{1, 2, 3} {
			var cfgs []ClientConfig
			for r := range wire.ClientRank(2) {
				c := testClient(r, 1, 1)
				if who.Has(r) {
					c.Omit = []wire.Label{l}
				}
				cfgs = append(cfgs, c)
			}
			w := newWhole(t, ServerConfig{}, cfgs...)
			w.run()
			j := w.jobs(t)
			if own := l != wire.LabelVersion; j.AllOwn != own {
				t.Errorf("%v left out by %v: all own is %v", l, who, j.AllOwn)
			}
			if mask, there := answered(t, w.sentDn[0])[l]; there != (who != 3) || mask != wire.MaskOf(2)&^who {
				t.Errorf("%v left out by %v: the answer's mask is %v, %v", l, who, mask, there)
			}
			checkBounds(t, j)
		}
	}
}

// TestNobodySays: the defaults that apply when no client sends any optional label.
func TestNobodySays(t *testing.T) {
	a, b := testClient(0, 1), testClient(1, 1)
	a.Omit, b.Omit = optional(), optional()
	w := newWhole(t, ServerConfig{}, a, b)
	w.run()
	j := w.jobs(t)
	if j.DataLen != 1 || j.TagUB != MinTagUB || j.XSize != DefaultXSize || j.MaxLinear != DefaultMaxLinear ||
		j.AckMark != DefaultAckMark || j.HiWater != DefaultHiWater || j.AllOwn {
		t.Error(describe(j))
	}
	for c, ci := range j.Clients {
		if !slices.Equal(ci.Versions, []wire.Version{wire.Version00}) {
			t.Errorf("client %d speaks %v", c, ci.Versions)
		}
	}
}

// TestHalfAWindow: only ackmarks, or only hiwaters, are sent. The default of the other one
// is adjusted where the two do not fit.
func TestHalfAWindow(t *testing.T) {
	for _, c := range []struct {
		omit             wire.Label
		said             uint32
		ackMark, hiWater uint32
	}{
		{wire.LabelHiWater, 7, 7, DefaultHiWater},
		{wire.LabelHiWater, 1000, 1000, 1000},
		{wire.LabelAckMark, 1000, DefaultAckMark, 1000},
		{wire.LabelAckMark, 3, 3, 3},
	} {
		cfg := testClient(0, 1)
		cfg.Params.AckMark, cfg.Params.HiWater, cfg.Omit = c.said, c.said, []wire.Label{c.omit}
		w := newWhole(t, ServerConfig{}, cfg)
		w.run()
		if j := w.jobs(t); j.AckMark != c.ackMark || j.HiWater != c.hiWater {
			t.Errorf("%v left out, %d said: ackmark %d, hiwater %d", c.omit, c.said, j.AckMark, j.HiWater)
		}
	}
}

// TestOmittedOutOfPlace: a server that answers a label before those that it
// depends on, after higher ones, or twice.
func TestOmittedOutOfPlace(t *testing.T) {
	marks := wire.AppendAnswer(nil, wire.LabelAckMark, 1, 4)
	marks = append(marks, 0, 0, 0, 1)
	tags := append(wire.AppendAnswer(nil, wire.LabelTagUB, 1, 4), 0, 0, 0x80, 0)
	for name, c := range map[string]struct {
		before []byte
		says   string
	}{
		"before the hosts": {marks, "the server answered H_ACKMARK after C_VERSION while we waited for the answer to C_NHOSTS"},
		"twice":            {join(answersTo(t, wire.LabelDataLen), tags, tags), "the server answered C_TAGUB after C_TAGUB"},
		"too late":         {join(answersTo(t, wire.LabelCollXSize), tags), "the server answered C_TAGUB after C_COLL_XSIZE"},
	} {
		cfg := testClient(1, 1)
		cfg.Omit = metaOmits
		m, err := NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		m.Start(scriptStart)
		m.Receive(wire.AppendIMPI(wire.AppendAuthChoice(nil, wire.MechNone), 2), scriptStart)
		if name == "before the hosts" {
			m.Receive(answersTo(t, wire.LabelVersion), scriptStart)
		}
		err = m.Receive(c.before, scriptStart)
		if !errors.Is(err, ErrProtocol) || !contains(err, c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// answersTo are the answers to all labels up to last, of two clients with one proc
// each of which the second omits what MetaMPICH does, without the omitted ones.
func answersTo(t testing.TB, last wire.Label) (b []byte) {
	a, c := testClient(0, 1), testClient(1, 1)
	for _, info := range wire.StandardLabels() {
		if l := info.Label; l <= last && !slices.Contains(metaOmits, l) {
			data := join(a.submission(l), c.submission(l))
			b = append(wire.AppendAnswer(b, l, 3, len(data)), data...)
		}
	}
	return b
}

// TestVersionsListed: clients with several versions; for each pair the highest
// that both list counts, and the lists are cut apart in the right places.
func TestVersionsListed(t *testing.T) {
	v := func(major, minor uint32) wire.Version { return wire.Version{Major: major, Minor: minor} }
	a, b, c := testClient(0, 1), testClient(1, 2), testClient(2, 1)
	a.Versions = []wire.Version{v(1, 0), v(0, 1)}
	b.Versions = []wire.Version{v(0, 1), v(2, 0), v(0, 1)}
	c.Foreign, c.Versions = true, []wire.Version{v(1, 0)}
	w := newWhole(t, ServerConfig{}, a, b, c)
	w.run()
	j := w.jobs(t)
	for i, want := range [][]wire.Version{
		{v(0, 0), v(0, 1), wire.PrivateVersion, v(1, 0)},
		{v(0, 0), v(0, 1), wire.PrivateVersion, v(2, 0)},
		{v(0, 0), v(1, 0)},
	} {
		if have := j.Clients[i].Versions; !slices.Equal(have, want) {
			t.Errorf("client %d lists %v, want %v", i, have, want)
		}
	}
	for _, p := range []struct {
		a, b wire.ClientRank
		want wire.Version
	}{{0, 1, wire.PrivateVersion}, {1, 0, wire.PrivateVersion}, {0, 2, v(1, 0)}, {2, 0, v(1, 0)}, {1, 2, v(0, 0)}, {0, 0, v(1, 0)}} {
		if have := j.VersionFor(p.a, p.b); have != p.want {
			t.Errorf("clients %d and %d speak %v, want %v", p.a, p.b, have, p.want)
		}
	}
	if j.AllOwn {
		t.Error("client 2 does not list our version")
	}
}

func TestLabelsThatMustBeSent(t *testing.T) {
	for _, l := range []wire.Label{wire.LabelNHosts, wire.LabelProcPID, wire.LabelCards, 0x7777} {
		cfg := testClient(0, 1)
		cfg.Omit = []wire.Label{l}
		if _, err := NewClient(cfg); !errors.Is(err, ErrConfig) || !contains(err, l.String()) {
			t.Errorf("%v: %v", l, err)
		}
	}
	cfg := testClient(0, 1)
	for i := range uint32(MaxVersions) {
		cfg.Versions = append(cfg.Versions, wire.Version{Major: i + 1})
	}
	if _, err := NewClient(cfg); !errors.Is(err, ErrTooLong) {
		t.Errorf("%d versions: %v", MaxVersions+2, err)
	}
}

// TestDraftJob: clients of the draft among each other, with pids that fill its 4
// bytes, and bytes cut anywhere.
func TestDraftJob(t *testing.T) {
	a, b := testClient(0, 2, 1), testClient(1, 3)
	for _, c := range []*ClientConfig{&a, &b} {
		c.Dialect, c.Foreign = wire.Draft, true
	}
	b.Hosts[0].Procs[2].ID.PID = 1<<32 - 1
	w := newWhole(t, ServerConfig{}, a, b)
	w.chop = func(int) int { return 1 }
	w.run()
	j := w.jobs(t)
	if j.Procs.At(5).ID.PID != 1<<32-1 || j.Procs.At(0).ID.PID != 100 {
		t.Error(describe(j))
	}
	if data := submitted(t, w.sentUp[1])[wire.LabelProcPID]; !bytes.Equal(data, u32s(100, 101, 1<<32-1)) {
		t.Errorf("P_PID has %x", data)
	}
}

// submitted returns the values of each label that a client sent.
func submitted(t testing.TB, up []byte) map[wire.Label][]byte {
	t.Helper()
	values := make(map[wire.Label][]byte)
	for len(up) > 0 {
		cmd, n := wire.ParseCommand(up)
		if cmd == wire.CmdColl {
			l, data, err := wire.ParseColl(up[wire.CommandSize:][:n])
			if err != nil {
				t.Fatal(err)
			}
			values[l] = data
		}
		up = up[wire.CommandSize+int(n):]
	}
	return values
}

// TestDialectsDoNotMix: one of each is an error at P_PID that names the client's
// own reading.
func TestDialectsDoNotMix(t *testing.T) {
	a, b := testClient(0, 1), testClient(1, 1)
	a.Dialect, a.Foreign = wire.Draft, true
	w := newWhole(t, ServerConfig{}, a, b)
	w.run()
	for i, c := range w.clients {
		if err := c.Err(); err == nil || !contains(err, "P_PID: startup value is wrong: 12 bytes for 2 values") {
			t.Errorf("client %d: %v", i, err)
		}
	}
}

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }
