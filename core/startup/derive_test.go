package startup

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/wire"
)

// answers are those of a job of two clients with hosts 2 and 1, procs 2+1 and
// 2: client 0 at 10.0.0.1 and .2, client 1 at 10.0.1.1.
type answers map[wire.Label]answer

type answer struct {
	mask wire.ClientMask
	data []byte
}

func u32s(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

func goodAnswers() answers {
	a, b := testClient(0, 2, 1), testClient(1, 2)
	m := make(answers)
	for _, info := range append(wire.StandardLabels(), wire.LabelInfo{Label: wire.LabelCards}) {
		m[info.Label] = answer{3, append(a.submission(info.Label), b.submission(info.Label)...)}
	}
	return m
}

func (m answers) derive() (*Job, error) {
	d := newDerivation(0, 2, wire.Published)
	for _, info := range wire.StandardLabels() {
		if a, ok := m[info.Label]; ok {
			if err := d.take(info.Label, a.mask, a.data); err != nil {
				return nil, err
			}
		}
	}
	if d.job.AllOwn {
		a := m[wire.LabelCards]
		return d.job, d.take(wire.LabelCards, a.mask, a.data)
	}
	d.settleProcs()
	return d.job, nil
}

// IMPI ch.2, Host labels: 1 <= ackmark <= hiwater, the limits included.
func TestDeriveNarrowWindows(t *testing.T) {
	for _, v := range []uint32{1, 7} {
		m := goodAnswers()
		m[wire.LabelAckMark] = answer{3, u32s(v, v, v)}
		m[wire.LabelHiWater] = answer{3, u32s(v, v, v)}
		if j, err := m.derive(); err != nil || j.AckMark != v || j.HiWater != v {
			t.Errorf("ackmark and hiwater %d: %+v, %v", v, j, err)
		}
	}
}

func TestDeriveGood(t *testing.T) {
	j, err := goodAnswers().derive()
	if err != nil {
		t.Fatal(err)
	}
	checkJob(t, j, []ClientConfig{withDataLen(testClient(0, 2, 1)), withDataLen(testClient(1, 2))}, true)
}

func withDataLen(c ClientConfig) ClientConfig {
	c.Params.DataLen = DefaultDataLen
	return c
}

// TestDeriveFaults has a case for each check: one answer is changed, and the
// error must name the label, the culprit and the value.
func TestDeriveFaults(t *testing.T) {
	const none = 1<<32 - 1
	pid := func(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }
	for _, c := range []struct {
		name  string
		label wire.Label
		mask  wire.ClientMask
		data  []byte
		want  error
		says  string
	}{
		{"half a version", wire.LabelVersion, 3, u32s(0, 0, 0), ErrValue, "C_VERSION: startup value is wrong: 12 bytes"},
		{"first client without 0.0", wire.LabelVersion, 3, u32s(1, 0, 0, 0), ErrValue, "client 0 does not support 0.0"},
		{"second client without 0.0", wire.LabelVersion, 3, u32s(0, 0, 1, 0), ErrValue, "does not list 0.0"},
		{"more lists than clients", wire.LabelVersion, 3, u32s(0, 0, 0, 0, 0, 0), ErrValue, "more than the 2 lists"},
		{"a list that descends", wire.LabelVersion, 3, u32s(0, 0, 1, 0, 0, 5, 0, 0), ErrValue, "version 0.5 after 1.0"},
		{"a version twice", wire.LabelVersion, 3, u32s(0, 0, 1, 0, 1, 0, 0, 0), ErrValue, "version 1.0 after 1.0"},
		{"versions of a silent client", wire.LabelVersion, 2, u32s(0, 0, 0, 0), ErrValue, "more than the 1 lists"},
		{"endless versions", wire.LabelVersion, 3, manyVersions(), ErrTooLong, "more than 64 versions"},

		{"no hosts", wire.LabelNHosts, 3, u32s(2, 0), ErrValue, "C_NHOSTS: client 1"},
		{"hosts without end", wire.LabelNHosts, 3, u32s(none, 1), ErrValue, "4294967295 is not in 1 to"},
		{"too many hosts together", wire.LabelNHosts, 3, u32s(MaxProcs, 1), ErrTooLong, "1048577 in all"},
		{"hosts of one client missing", wire.LabelNHosts, 1, u32s(2), ErrValue, "clients {1} did not send it"},
		{"hosts with a byte too many", wire.LabelNHosts, 3, append(u32s(2, 1), 0), ErrValue, "9 bytes for 2 values"},
		{"no procs", wire.LabelNProcs, 3, u32s(0, 2), ErrValue, "C_NPROCS: client 0"},
		{"too many procs together", wire.LabelNProcs, 3, u32s(MaxProcs, MaxProcs), ErrTooLong, "C_NPROCS"},

		{"data length 0", wire.LabelDataLen, 3, u32s(1, 0), ErrValue, "C_DATALEN: client 1"},
		{"tag bound too low", wire.LabelTagUB, 3, u32s(32766, 32767), ErrValue, "C_TAGUB: client 0: startup value is wrong: 32766"},
		{"tag bound negative", wire.LabelTagUB, 3, u32s(32767, none), ErrValue, "client 1: startup value is wrong: -1"},
		{"different XSIZE", wire.LabelCollXSize, 3, u32s(none, 1025), ErrDisagree, "client 0 has 1024, client 1 has 1025"},
		{"XSIZE against silence", wire.LabelCollXSize, 2, u32s(7), ErrDisagree, "client 0 has 1024, client 1 has 7"},
		{"negative XSIZE", wire.LabelCollXSize, 3, u32s(none, none-1), ErrValue, "client 1: startup value is wrong: -2 is negative"},
		{"different MAXLINEAR", wire.LabelMaxLinear, 3, u32s(5, none), ErrDisagree, "C_COLL_MAXLINEAR: clients do not agree: client 0 has 5, client 1 has 4"},

		{"an address too few", wire.LabelHostIPv6, 3, make([]byte, 32), ErrValue, "32 bytes for 3 values"},
		{"addresses of one client missing", wire.LabelHostIPv6, 2, make([]byte, 16), ErrValue, "clients {0} did not send it"},
		{"port too high", wire.LabelHostPort, 3, u32s(5000, 65536, 0), ErrValue, "H_PORT: client 0: host 1: startup value is wrong: 65536"},
		{"port in two bytes, as META has it", wire.LabelHostPort, 3, make([]byte, 10), ErrValue, "10 bytes for 3 values (one per host of clients {0,1}) of 4 bytes each"},
		{"port 0 that others must reach", wire.LabelHostPort, 3, u32s(5000, 0, 5000), ErrValue, "client 0: host 1"},
		{"procs of hosts too few", wire.LabelHostNProcs, 3, u32s(2, 0, 2), ErrValue, "H_NPROCS: client 0: startup value is wrong: its hosts have 2 procs together, C_NPROCS said 3"},
		{"procs of hosts too many", wire.LabelHostNProcs, 3, u32s(2, 1, 3), ErrValue, "client 1"},
		{"procs of hosts out of all bounds", wire.LabelHostNProcs, 3, u32s(none, 1, 2), ErrValue, "4294967295"},
		{"ackmark 0", wire.LabelAckMark, 3, u32s(64, 0, 64), ErrValue, "H_ACKMARK: client 0: host 1"},
		{"hiwater below ackmark", wire.LabelHiWater, 3, u32s(256, 256, 31), ErrValue, "H_HIWATER: client 1: host 0: startup value is wrong: hiwater 31 is below ackmark 32"},

		{"identities too short", wire.LabelProcIPv6, 3, make([]byte, 79), ErrValue, "P_IPV6"},
		{"pids of the draft", wire.LabelProcPID, 3, make([]byte, 20), ErrValue, "20 bytes for 5 values"},
		{"two procs with one identity", wire.LabelProcPID, 3, join(pid(7), pid(7), pid(7), pid(7), pid(8)), ErrValue, "ranks 0 (client 0) and 1 (client 0) are both 10.0.0.1/7"},

		{"clients that are not in the job", wire.LabelDataLen, 7, u32s(1, 1, 1), ErrValue, "clients {2} in a job of 2"},
		{"cards of one client only", wire.LabelCards, 1, nil, ErrValue, "X_CARDS: startup value is wrong: came from clients {0} only"},
		{"no cards at all", wire.LabelCards, 3, nil, ErrValue, "client 0: job token"},
		{"short token", wire.LabelCards, 3, append(u32s(4), 1, 2, 3, 4), ErrValue, "job token of 4 bytes"},
		{"endless token", wire.LabelCards, 3, u32s(none), ErrTooLong, "entry of 4294967295 bytes"},
		{"card that is longer than all", wire.LabelCards, 3, append(append(u32s(32), make([]byte, 32)...), u32s(100)...), ErrValue, "card of rank 0: startup value is wrong: entry of 100 bytes, 0 are left"},
		{"card beyond the limit", wire.LabelCards, 3, append(append(u32s(32), make([]byte, 32)...), u32s(MaxCard+1)...), ErrTooLong, "card of rank 0"},
		{"bytes behind the cards", wire.LabelCards, 3, append(goodAnswers()[wire.LabelCards].data, 0), ErrValue, "1 bytes too many"},
	} {
		m := goodAnswers()
		m[c.label] = answer{c.mask, c.data}
		_, err := m.derive()
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), c.label.String()) {
			t.Errorf("%s: %v; want %v with %q", c.name, err, c.want, c.says)
		}
	}
}

func join(b ...[]byte) (all []byte) {
	for _, x := range b {
		all = append(all, x...)
	}
	return all
}

func manyVersions() (b []byte) {
	for i := range uint32(MaxVersions + 1) {
		b = append(b, u32s(i, 0)...)
	}
	return b
}

// TestDeriveSilence: what an optional label's absence means.
func TestDeriveSilence(t *testing.T) {
	m := goodAnswers()
	m[wire.LabelVersion] = answer{1, u32s(0, 0)}
	m[wire.LabelDataLen] = answer{1, u32s(100)}
	m[wire.LabelTagUB] = answer{2, u32s(40000)}
	m[wire.LabelCollXSize] = answer{2, u32s(1024)}
	m[wire.LabelMaxLinear] = answer{0, nil}
	m[wire.LabelAckMark] = answer{2, u32s(5)}
	m[wire.LabelHiWater] = answer{1, u32s(9, 8)}
	j, err := m.derive()
	if err != nil {
		t.Fatal(err)
	}
	if j.DataLen != 100 || j.TagUB != 40000 || j.XSize != 1024 || j.MaxLinear != 4 || j.AckMark != 5 || j.HiWater != 8 || j.AllOwn {
		t.Error(describe(j))
	}
	if v := j.Clients[1].Versions; len(v) != 1 || v[0] != wire.Version00 {
		t.Errorf("a silent client speaks %v", v)
	}
}

// TestDeriveMinima: the minima of ackmark and hiwater come from all hosts, and
// may come from different ones; they must fit together.
func TestDeriveMinima(t *testing.T) {
	m := goodAnswers()
	m[wire.LabelAckMark] = answer{3, u32s(10, 7, 8)}
	m[wire.LabelHiWater] = answer{3, u32s(20, 32, 12)}
	if j, err := m.derive(); err != nil || j.AckMark != 7 || j.HiWater != 12 {
		t.Errorf("ackmark %d, hiwater %d: %v", j.AckMark, j.HiWater, err)
	}
	m[wire.LabelAckMark] = answer{1, u32s(10, 10)}
	m[wire.LabelHiWater] = answer{2, u32s(9)}
	if _, err := m.derive(); !errors.Is(err, ErrValue) {
		t.Errorf("ackmark 10 of one client, hiwater 9 of the other: %v", err)
	}
}

// TestDeriveEmptyHost: a host may have no procs.
func TestDeriveEmptyHost(t *testing.T) {
	m := goodAnswers()
	m[wire.LabelHostNProcs] = answer{3, u32s(3, 0, 2)}
	j, err := m.derive()
	if err != nil || j.Hosts[1].FirstProc != 3 || j.Procs.At(2).Host != 0 || j.Procs.At(3).Host != 2 {
		t.Errorf("%v\n%s", err, describe(j))
	}
}

// TestDeriveAllocatesNothingForClaims: counts alone make nothing big; the
// values themselves must be there.
func TestDeriveAllocatesNothingForClaims(t *testing.T) {
	m := goodAnswers()
	m[wire.LabelNHosts] = answer{3, u32s(1, MaxProcs-1)}
	m[wire.LabelNProcs] = answer{3, u32s(1, MaxProcs-1)}
	if n := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.derive(); err == nil {
				b.Fatal("a million hosts in 48 bytes")
			}
		}
	}).AllocedBytesPerOp(); n > 16<<10 {
		t.Errorf("%d bytes for claims", n)
	}
}
