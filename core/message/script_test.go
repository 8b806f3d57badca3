package message

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/openimpi/impi/core/wire"
)

// TestScripts runs the dialogues of testdata/scripts. Each command prints the packets
// that it made procs send and the requests that it finished.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		j := new(job)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return j.run(t, d)
		})
	})
}

// job is some procs, their engines and the packets between them. A proc without
// an engine is played by the script.
type job struct {
	t       *testing.T
	dialect wire.Dialect
	procs   []wire.Proc
	engines []*Engine
	inbox   [][]delivery // by proc
	open    []*tracked   // requests that are not done, in the order of their making
	byName  map[string]*tracked
	taken   map[string]*Message
	out     strings.Builder
}

type delivery struct {
	link LinkID
	raw  []byte
}

type tracked struct {
	name string
	e    *Engine
	r    *Request
	buf  []byte
	done bool
}

func (j *job) run(t *testing.T, d *datadriven.TestData) string {
	j.t = t
	j.out.Reset()
	f, ok := commands[d.Cmd]
	if !ok {
		d.Fatalf(t, "no such command: %s", d.Cmd)
	}
	f(j, d)
	for i, e := range j.engines {
		if e != nil {
			j.drain(i, e)
		}
	}
	j.report()
	if j.out.Len() == 0 {
		return "-\n"
	}
	return j.out.String()
}

func (j *job) printf(format string, args ...any) { fmt.Fprintf(&j.out, format+"\n", args...) }

// drain takes all output of proc i and puts it into the inboxes.
func (j *job) drain(i int, e *Engine) {
	for l := range e.links {
		var raw []byte
		for e.HasOutput(LinkID(l)) {
			n := 0
			for _, b := range e.Output(LinkID(l)) {
				raw = append(raw, b...)
				n += len(b)
			}
			e.Sent(LinkID(l), n)
		}
		for len(raw) > 0 {
			var h wire.Packet
			j.dialect.Header(raw, &h)
			n := headerSize
			if h.Type.HasData() {
				n += int(h.Len)
			}
			j.printf("%s", j.packet(&h, raw[headerSize:n]))
			to := slices.Index(j.procs, h.Dest)
			via := LinkID(0)
			if l > 0 {
				via = LinkID(i + 1)
			}
			j.inbox[to] = append(j.inbox[to], delivery{via, raw[:n]})
			raw = raw[n:]
		}
	}
}

// packet prints what matters of a packet: no fields that are zero, lsrank only
// if it is not the sender's rank.
func (j *job) packet(h *wire.Packet, data []byte) string {
	src := slices.Index(j.procs, h.Src)
	var b strings.Builder
	fmt.Fprintf(&b, "%d->%d %v", src, slices.Index(j.procs, h.Dest), h.Type)
	field := func(name, value string, show bool) {
		if show {
			fmt.Fprintf(&b, " %s=%s", name, value)
		}
	}
	field("srqid", formatID(h.SrcReq), h.SrcReq != 0)
	field("drqid", formatID(h.DestReq), h.DestReq != 0)
	if h.Type.HasData() {
		field("msglen", strconv.FormatUint(h.MsgLen, 10), h.MsgLen != uint64(h.Len))
		field("len", strconv.Itoa(int(h.Len)), true)
		field("lsrank", strconv.Itoa(int(h.LSRank)), int(h.LSRank) != src && j.dialect != wire.Draft)
		field("tag", strconv.Itoa(int(h.Tag)), h.DestReq == 0)
		field("cid", strconv.FormatUint(uint64(h.Context), 10), h.Context != 0)
		field("data", clip(data), len(data) > 0)
	}
	return b.String()
}

// report prints requests that have become done.
func (j *job) report() {
	j.open = slices.DeleteFunc(j.open, func(q *tracked) bool {
		if !q.done && q.r.Done() {
			q.done = true
			j.printf("%s", q)
		}
		return q.done
	})
}

func (q *tracked) String() string {
	st := q.r.Status()
	s := q.name + " done"
	if st.Cancelled {
		return s + " cancelled"
	}
	if q.r.IsRecv() && (st.Err == nil || errors.Is(st.Err, ErrTruncate)) {
		s += fmt.Sprintf(" src=%d tag=%d len=%d", st.Source, st.Tag, st.Len)
		if st.Len > 0 {
			s += " data=" + clip(q.buf[:st.Len])
		}
	}
	if st.Err != nil {
		s += fmt.Sprintf(" error: %v", st.Err)
	}
	return s
}

// clip shortens data: the first bytes say where in the alphabet it begins.
func clip(b []byte) string {
	if len(b) > 16 {
		return fmt.Sprintf("%s..%s", b[:4], b[len(b)-4:])
	}
	return string(b)
}

// alphabet is a message: its bytes tell their offset.
func alphabet(n int) []byte {
	return bytes.Repeat([]byte("abcdefghijklmnopqrstuvwxyz"), n/26+1)[:n]
}

// formatID writes an id as its index, and a tick for each use of it before.
func formatID(id wire.RequestID) string {
	return strconv.Itoa(int(uint32(id))) + strings.Repeat("'", int(id>>32))
}

func parseID(s string) wire.RequestID {
	low := strings.TrimRight(s, "'")
	v, err := strconv.ParseUint(low, 10, 64)
	if err != nil {
		panic(err)
	}
	return wire.RequestID(v + uint64(len(s)-len(low))<<32)
}

// args reads the arguments of a command: words, and key=value.
type args struct {
	t  *testing.T
	d  *datadriven.TestData
	kv map[string]string
	at []string
}

func parseArgs(t *testing.T, d *datadriven.TestData) args {
	a := args{t: t, d: d, kv: map[string]string{}}
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 {
			a.at = append(a.at, arg.Key)
		} else {
			a.kv[arg.Key] = strings.Join(arg.Vals, ",")
		}
	}
	return a
}

func (a args) word(key, def string) string {
	if v, ok := a.kv[key]; ok {
		return v
	}
	return def
}

// num reads a number; any is -1.
func (a args) num(key string, def int64) int64 {
	v, ok := a.kv[key]
	switch {
	case !ok:
		return def
	case v == "any":
		return -1
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		u, uerr := strconv.ParseUint(v, 10, 64)
		if uerr != nil {
			a.d.Fatalf(a.t, "%s=%s: %v", key, v, err)
		}
		n = int64(u)
	}
	return n
}

func (a args) id(key string) wire.RequestID { return parseID(a.word(key, "0")) }

// who reads the first word: a proc, or a pair such as 0->1.
func (a args) who() (from, to int) {
	s, t, pair := strings.Cut(a.at[0], "->")
	from, err := strconv.Atoi(s)
	if err == nil && pair {
		to, err = strconv.Atoi(t)
	}
	if err != nil {
		a.d.Fatalf(a.t, "%v", err)
	}
	return from, to
}
