package check

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// say is one command of a startup dialogue, by its name.
type say struct {
	name   string // "0 AUTH" from client 0, "AUTH 0" to it
	client int
	up     bool
	b      []byte
}

func u32(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

func cmd(letters string, payload ...byte) []byte {
	return append(append([]byte(letters), u32(uint32(len(payload)))...), payload...)
}

func coll(label uint32, values []byte) []byte { return cmd("COLL", append(u32(label), values...)...) }

func answerTo(label, mask uint32, values []byte) []byte {
	return cmd("COLL", append(u32(label, mask), values...)...)
}

// values are the values of a label that a client of the test job sends.
func values(label uint32, client int) []byte {
	var ranks []int
	for r, p := range testJob().Procs {
		if p.Host == client {
			ranks = append(ranks, r)
		}
	}
	var ids, pids []byte
	for _, r := range ranks {
		id := identity(r)
		ids, pids = append(ids, id[:16]...), append(pids, id[16:]...)
	}
	switch label {
	case 0x1000:
		return u32(0, 0, 0, 0x10001)
	case 0x1200, 0x2200:
		return u32(uint32(len(ranks)))
	case 0x1300:
		return u32(testDatalen + uint32(client))
	case 0x2300:
		return u32(testAckMark + uint32(2-client))
	case 0x2400:
		return u32(testHiWater + uint32(client))
	case 0x2000:
		return make([]byte, 16)
	case 0x3000:
		return ids
	case 0x3100:
		return pids
	case extension:
		return fmt.Append(nil, "a card of client ", client)
	}
	return u32(1)
}

const extension = 0x49000000

var standardLabels = []uint32{
	0x1000, 0x1100, 0x1200, 0x1300, 0x1400, 0x1500, 0x1600, 0x2000, 0x2100, 0x2200, 0x2300, 0x2400, 0x3000, 0x3100,
}

// dialogue is a whole startup in lock-step. skip says which client leaves out which label.
func dialogue(labels []uint32, skip func(client int, label uint32) bool) (d []say) {
	up := func(c int, name string, b []byte) { d = append(d, say{fmt.Sprintf("%d %s", c, name), c, true, b}) }
	down := func(c int, name string, b []byte) { d = append(d, say{fmt.Sprintf("%s %d", name, c), c, false, b}) }
	for c := range 3 {
		up(c, "AUTH", cmd("AUTH", u32(3)...))
		down(c, "AUTH", u32(1, 0))
		up(c, "KEY", make([]byte, 8))
		up(c, "IMPI", cmd("IMPI", u32(uint32(c))...))
	}
	for c := range 3 {
		down(c, "IMPI", cmd("IMPI", u32(3)...))
	}
	for i, l := range labels {
		name := fmt.Sprintf("%x", l)
		var all []byte
		mask := uint32(0)
		for c := range 3 {
			if skip == nil || !skip(c, l) {
				up(c, name, coll(l, values(l, c)))
				all = append(all, values(l, c)...)
				mask |= 1 << c
			} else if i+1 < len(labels) { // announce the next one early
				up(c, fmt.Sprintf("%x", labels[i+1]), coll(labels[i+1], values(labels[i+1], c)))
			}
		}
		for c := range 3 {
			down(c, name, answerTo(l, mask, all))
		}
	}
	d = slices.CompactFunc(d, func(a, b say) bool { return a.name == b.name })
	for c := range 3 {
		up(c, "DONE", cmd("DONE"))
	}
	for c := range 3 {
		down(c, "DONE", cmd("DONE"))
	}
	return d
}

// talkRig is the rig with links to the server.
func talkRig(t *testing.T) *rig {
	r := newRig(t)
	for c := range 3 {
		r.link(ServerEnd(), ClientEnd(c))
	}
	return r
}

func (r *rig) say(s say) {
	r.t.Helper()
	if s.up {
		r.hop(ClientEnd(s.client), ServerEnd(), s.b)
	} else {
		r.hop(ServerEnd(), ClientEnd(s.client), s.b)
	}
}

// leave ends the job properly, the clients' FINI included.
func (r *rig) leave() {
	r.t.Helper()
	for rank := range 4 {
		r.ended(rank)
	}
	for _, ends := range [][2]int{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}} {
		r.hop(AgentEnd(ends[0]), AgentEnd(ends[1]), pk{typ: 7}.bytes())
	}
	for c := range 3 {
		r.say(say{client: c, up: true, b: cmd("FINI")})
	}
	r.note(r.c.Finish(true))
}

func TestStartup(t *testing.T) {
	for name, d := range map[string][]say{
		"standard":   dialogue(standardLabels, nil),
		"extensions": dialogue(append(slices.Clone(standardLabels), extension), nil),
		"a foreign client that sends a label of its own": dialogue(slices.Insert(slices.Clone(standardLabels), 12, 0x2450), func(c int, l uint32) bool {
			return c < 2 && l == 0x2450
		}),
		"a foreign client that skips labels": dialogue(standardLabels, func(c int, l uint32) bool {
			return c == 2 && (l == 0x1400 || l == 0x2400)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			r := talkRig(t)
			for i, s := range d {
				if slices.IndexFunc(d, func(x say) bool { return x.name == s.name }) == i { // except for early ones
					r.say(s)
				}
			}
			r.leave()
			wants(t, r.err, "")
		})
	}
}

// Every byte may arrive by itself.
func TestStartupByteByByte(t *testing.T) {
	r := talkRig(t)
	for _, s := range dialogue(standardLabels, nil) {
		for i := range s.b {
			r.say(say{client: s.client, up: s.up, b: s.b[i : i+1]})
		}
	}
	r.leave()
	wants(t, r.err, "")
}

// change replaces a command of the dialogue.
type change struct {
	name string
	at   string // name of the command
	want Rule
	b    []byte // the replacement; nil: the command is left out
}

func TestStartupViolations(t *testing.T) {
	all := func(label uint32) (b []byte) {
		for c := range 3 {
			b = append(b, values(label, c)...)
		}
		return b
	}
	wrong := func(b []byte, at int) []byte {
		b = slices.Clone(b)
		b[at] ^= 1
		return b
	}
	two := func(a, b []byte) []byte { return append(slices.Clone(a), b...) }
	for _, c := range []change{
		{"no AUTH", "0 AUTH", RuleStartup, cmd("IMPI", 0, 0, 0, 0)},
		{"AUTH of the wrong length", "0 AUTH", RuleStartup, cmd("AUTH", 3)},
		{"nothing offered", "0 AUTH", RuleStartup, cmd("AUTH", u32(4)...)},
		{"an answer before AUTH", "0 AUTH", RuleStartup, nil},
		{"a mechanism that was not offered", "0 AUTH", RuleStartup, cmd("AUTH", u32(1)...)},
		{"an unknown mechanism", "AUTH 0", RuleStartup, u32(2, 0)},
		{"a length with the mechanism", "AUTH 0", RuleStartup, u32(1, 8)},
		{"IMPI without an answer to AUTH", "AUTH 0", RuleStartup, nil},
		{"no IMPI", "0 IMPI", RuleStartup, nil},
		{"another's rank", "0 IMPI", RuleStartup, cmd("IMPI", u32(1)...)},
		{"IMPI twice", "0 IMPI", RuleStartup, two(cmd("IMPI", u32(0)...), cmd("IMPI", u32(0)...))},
		{"the wrong number of clients", "IMPI 0", RuleStartup, cmd("IMPI", u32(2)...)},
		{"a label before the answer to IMPI", "IMPI 0", RuleStartup, nil},
		{"a label that skips one", "0 1000", RuleLabel, coll(0x1100, values(0x1100, 0))},
		{"a label without waiting", "0 1000", RuleStartup, two(coll(0x1000, values(0x1000, 0)), coll(0x1100, values(0x1100, 0)))},
		{"a label again", "0 1100", RuleLabel, coll(0x1000, values(0x1000, 0))},
		{"versions that do not begin with 0.0", "0 1000", RuleLabel, coll(0x1000, u32(0, 1))},
		{"versions that do not ascend", "0 1000", RuleLabel, coll(0x1000, u32(0, 0, 0, 0))},
		{"half a version", "0 1000", RuleLabel, coll(0x1000, u32(0, 0, 0))},
		{"no room for a label", "0 1000", RuleStartup, cmd("COLL", 0, 0)},
		{"a value too many", "0 1300", RuleLabel, coll(0x1300, u32(8, 8))},
		{"a value of two bytes", "0 2100", RuleLabel, coll(0x2100, []byte{0, 1})},
		{"the wrong number of hosts", "0 1100", RuleLabel, coll(0x1100, u32(2))},
		{"the wrong number of procs", "0 1200", RuleLabel, coll(0x1200, u32(3))},
		{"the wrong number of procs on hosts", "0 2200", RuleLabel, coll(0x2200, u32(3))},
		{"a wrong host id", "0 3000", RuleLabel, coll(0x3000, wrong(values(0x3000, 0), 30))},
		{"a wrong pid", "0 3100", RuleLabel, coll(0x3100, wrong(values(0x3100, 0), 15))},
		{"an unknown command", "0 1100", RuleStartup, cmd("WHAT")},
		{"an answer without one client", "1 1100", RuleLabel, nil},
		{"a wrong mask", "1100 0", RuleLabel, answerTo(0x1100, 3, u32(1, 1))},
		{"a mask beyond the clients", "1100 0", RuleLabel, answerTo(0x1100, 15, all(0x1100))},
		{"values in the wrong order", "1200 0", RuleLabel, answerTo(0x1200, 7, u32(1, 2, 2))},
		{"a changed value", "3100 0", RuleLabel, answerTo(0x3100, 7, wrong(all(0x3100), 39))},
		{"a value too few", "1100 0", RuleLabel, answerTo(0x1100, 7, u32(1, 1))},
		{"an answer twice", "1100 0", RuleLabel, two(answerTo(0x1100, 7, all(0x1100)), answerTo(0x1100, 7, all(0x1100)))},
		{"an answer to nothing", "1100 0", RuleLabel, answerTo(0x1101, 7, all(0x1100))},
		{"an answer left out", "1100 2", RuleLabel, nil},
		{"an answer without room for a mask", "1100 0", RuleStartup, cmd("COLL", u32(0x1100)...)},
		{"the server says AUTH", "1100 0", RuleStartup, cmd("AUTH", 0, 0, 0, 0)},
		{"the server's DONE without all", "2 DONE", RuleStartup, nil},
		{"the server's DONE twice", "DONE 0", RuleStartup, two(cmd("DONE"), cmd("DONE"))},
		{"a label after DONE", "0 DONE", RuleStartup, two(cmd("DONE"), coll(0x3200, nil))},
		{"DONE with an answer missing", "3100 0", RuleStartup, nil},
		{"the data length is none of the clients'", "0 1300", RuleLabel, coll(0x1300, u32(9))},
		{"the ackmark is none of the hosts'", "2 2300", RuleLabel, coll(0x2300, u32(1))},
		{"the hiwater is none of the hosts'", "0 2400", RuleLabel, coll(0x2400, u32(3))},
		{"FINI before the server's DONE", "DONE 0", RuleStartup, nil},
		{"no DONE for a client", "DONE 2", RuleStartup, nil},
		{"FAIL in a job that ends well", "DONE 0", RuleStartup, two(cmd("DONE"), cmd("FAIL", 'w', 'h', 'y'))},
		{"FAIL in place of the answer to AUTH", "AUTH 0", RuleStartup, cmd("FAIL", 'w', 'h', 'y')},
		{"FAIL that is too long", "0 1100", RuleStartup, cmd("FAIL", make([]byte, 1025)...)},
		{"something after FAIL", "0 1100", RuleStartup, two(cmd("FAIL"), cmd("FAIL"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := talkRig(t)
			found := false
			for _, s := range dialogue(standardLabels, nil) {
				if s.name == c.at {
					found = true
					if s.b = c.b; c.b == nil {
						continue
					}
					r.must()
				}
				if r.err == nil && s.client == 2 && c.name == "no DONE for a client" {
					r.c.clients[2].foreign = false // only our clients must have it
				}
				r.say(s)
			}
			if !found {
				t.Fatal("no such command")
			}
			r.leave()
			wants(t, r.err, c.want)
		})
	}
}

// TestLostClients: what the server says of a client after DONE must be true, and be understood by
// all.
func TestLostClients(t *testing.T) {
	hears := u32(0, 0, 0, 0x10001, 0, 0x10005)
	said := func(mask uint32) []byte { return answerTo(0x49000001, mask, []byte("client 1 is lost")) }
	for name, x := range map[string]struct {
		versions []byte // of client 0
		says     []byte
		lives    bool
		want     Rule
	}{
		"lost":                    {hears, said(2), false, ""},
		"one that is there":       {hears, said(2), true, RuleLabel},
		"the one that is told":    {hears, said(1), false, RuleLabel},
		"two":                     {hears, said(6), false, RuleLabel},
		"nobody":                  {hears, said(0), false, RuleLabel},
		"no client of the job":    {hears, said(8), false, RuleLabel},
		"another label":           {hears, answerTo(0x49000002, 2, []byte("x")), false, RuleLabel},
		"no reason":               {hears, answerTo(0x49000001, 2, nil), false, RuleStartup},
		"one does not understand": {values(0x1000, 0), said(2), false, RuleLabel},
	} {
		t.Run(name, func(t *testing.T) {
			r := talkRig(t)
			var all []byte
			for c := range 3 {
				list := hears
				if c == 0 {
					list = x.versions
				}
				all = append(all, list...)
			}
			for _, s := range dialogue(standardLabels, nil) {
				switch s.name {
				case "1 1000", "2 1000":
					s.b = coll(0x1000, hears)
				case "0 1000":
					s.b = coll(0x1000, x.versions)
				case "1000 0", "1000 1", "1000 2":
					s.b = answerTo(0x1000, 7, all)
				}
				r.say(s)
			}
			if !x.lives {
				r.note(r.c.Cut(r.id(ServerEnd(), ClientEnd(1))))
			}
			if x.want != "" {
				r.must()
			}
			r.say(say{client: 0, b: x.says})
			wants(t, r.err, x.want)
		})
	}
}

func TestExtensionsNeedAllClients(t *testing.T) {
	r := talkRig(t)
	for _, s := range dialogue(append(slices.Clone(standardLabels), extension), nil) {
		switch s.name {
		case "2 1000":
			s.b = coll(0x1000, u32(0, 0))
		case "1000 0", "1000 1", "1000 2":
			s.b = answerTo(0x1000, 7, u32(0, 0, 0, 0x10001, 0, 0, 0, 0x10001, 0, 0))
		case "0 49000000":
			r.must()
		}
		r.say(s)
	}
	wants(t, r.err, RuleLabel)
}

// A foreign client may send everything at once.
func TestForeignClientInOneGo(t *testing.T) {
	var early []byte
	for _, l := range standardLabels {
		early = append(early, coll(l, values(l, 2))...)
	}
	early = slices.Concat(cmd("AUTH", u32(1)...), cmd("IMPI", u32(2)...), cmd("HUH?", 1, 2, 3), early, cmd("DONE"))
	r := talkRig(t)
	r.say(say{client: 2, up: true, b: early})
	for _, s := range dialogue(standardLabels, nil) {
		if s.client == 2 && s.up {
			continue
		}
		if s.name == "AUTH 2" {
			s.b = u32(0, 0)
		}
		r.say(s)
	}
	r.leave()
	wants(t, r.err, "")
}

func TestClientLeavesBeforeItsChannels(t *testing.T) {
	r := talkRig(t)
	for _, s := range dialogue(standardLabels, nil) {
		r.say(s)
	}
	for rank := range 4 {
		r.ended(rank)
	}
	for _, ends := range [][2]int{{0, 1}, {0, 2}, {1, 0}, {2, 0}} {
		r.hop(AgentEnd(ends[0]), AgentEnd(ends[1]), pk{typ: 7}.bytes())
	}
	r.say(say{client: 0, up: true, b: cmd("FINI")})
	r.must()
	r.hop(AgentEnd(2), AgentEnd(1), pk{typ: 7}.bytes())
	r.say(say{client: 1, up: true, b: cmd("FINI")})
	wants(t, r.err, RuleStartup)
}

func TestServerAfterFini(t *testing.T) {
	r := talkRig(t)
	for _, s := range dialogue(standardLabels, nil) {
		r.say(s)
	}
	r.leave()
	r.must()
	r.say(say{client: 0, b: cmd("FAIL", 'x')})
	wants(t, r.err, RuleStartup)
}

func TestNoFiniIsNoCleanEnd(t *testing.T) {
	for _, cut := range []bool{false, true} {
		r := talkRig(t)
		for _, s := range dialogue(standardLabels, nil) {
			r.say(s)
		}
		want := RuleStartup
		if cut {
			for c := range 3 {
				r.note(r.c.Cut(r.id(ServerEnd(), ClientEnd(c))))
			}
			want = ""
		}
		r.end()
		wants(t, r.err, want)
	}
}
