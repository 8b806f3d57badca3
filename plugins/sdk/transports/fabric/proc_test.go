package fabric

import (
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/plugins/sdk/support/rdma"
)

// idle is a connection on which nothing comes but what a test says.
type idle struct{ sent, coming [][]byte }

func (*idle) Limits() Limits { return Limits{Message: 1 << 17, Rails: 2} }

func (c *idle) Send(b [][]byte) (bool, error) {
	c.sent = append(c.sent, append(append([]byte(nil), b[0]...), b[1]...))
	return true, nil
}
func (c *idle) Recv(b [][]byte) (n int, err error) {
	if len(c.coming) == 0 {
		return 0, nil
	}
	for _, to := range b {
		n += copy(to, c.coming[0][n:])
	}
	c.coming = c.coming[1:]
	return n, nil
}
func (*idle) Read(Request) (bool, error) { return true, nil }
func (*idle) Completed([]Completion) int { return 0 }
func (*idle) Handle() int                { return -1 }
func (*idle) Arm() bool                  { return true }
func (*idle) Close() error               { return nil }
func (*idle) Break()                     {}

// proc is a proc that is not ours: it writes bytes where docs/plugin-protocol.md says.
type proc struct {
	mem     []byte
	channel int
	head    uint64
}

// stranger makes a pump with such a proc.
func stranger(t *testing.T) (*pump, *proc, *idle) {
	t.Helper()
	port, fds, err := rdma.NewPort(rdma.Shape{Slots: 4, SlotSize: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	mem, err := unix.Mmap(fds[0], 0, 4096+1024*4+3*4*1024, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	c := &idle{}
	p, err := newPump(port, c, NewCache(&book{}, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.release()
		port.Close()
		_ = unix.Munmap(mem)
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	})
	return p, &proc{mem: mem, channel: fds[2]}, c
}

// fields are those of an entry, by their offsets.
type fields map[int]uint64

func (x *proc) submit(kind uint32, f fields) {
	e := x.mem[4096+64*(x.head%32):][:64]
	clear(e)
	binary.NativeEndian.PutUint32(e, kind)
	for at, v := range f {
		if at == 4 || at == 32 || at == 36 {
			binary.NativeEndian.PutUint32(e[at:], uint32(v))
		} else {
			binary.NativeEndian.PutUint64(e[at:], v)
		}
	}
	x.head++
	(*atomic.Uint64)(unsafe.Pointer(&x.mem[1024])).Store(x.head)
}

// lend lends a page.
func (x *proc) lend(t *testing.T, number, generation uint32) {
	t.Helper()
	fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	b := append([]byte("IMPR"), 0, 1, 0, 1)
	b = binary.BigEndian.AppendUint32(b, number)
	b = binary.BigEndian.AppendUint32(b, generation)
	b = binary.BigEndian.AppendUint64(b, 4096)
	b = binary.BigEndian.AppendUint64(b, 0)
	if err := unix.Sendmsg(x.channel, b, unix.UnixRights(fd), nil, 0); err != nil {
		t.Fatal(err)
	}
}

// A proc that is a stranger sends from its memory.
func TestStranger(t *testing.T) {
	p, x, c := stranger(t)
	p.most, p.allowed, p.slotSize = 8, 8, 1<<10
	x.lend(t, 3, 7)
	copy(x.mem[4096+1024*4:], "short")
	x.submit(1, fields{36: 0, 48: 5})
	x.submit(2, fields{4: 3, 8: 1, 32: 7, 40: 96, 48: 4000})
	x.submit(6, nil)
	if _, err := p.step(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range c.sent {
		h, err := parseHeader(m, len(m))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(m[headerSize:]))
		if h.kind == offer && (h.offset != 96 || h.length != 4000 || h.number != 1) {
			t.Errorf("%+v", h)
		}
	}
	if strings.Join(got, ",") != ",short,key," || !p.over {
		t.Errorf("it has sent %q, %v", got, p.over)
	}
	if e := x.mem[4096+64*32:]; binary.NativeEndian.Uint32(e) != 1 || binary.NativeEndian.Uint64(x.mem[2048:]) != 1 {
		t.Errorf("the completion is %x", e[:64])
	}
}

// A proc that lends the maximum may replace regions: the plugin reads what it lends before it reads
// what it is to forget.
func TestRegionsThatAreYetToBeForgotten(t *testing.T) {
	for others, fails := range map[int]bool{rdma.MaxLent: false, 2 * rdma.MaxLent: true} {
		p, x, _ := stranger(t)
		p.most, p.allowed, p.slotSize = 8, 8, 1<<10
		for i := range others {
			p.regions[uint32(100+i)] = &lent{generation: 1}
		}
		x.lend(t, 3, 7)
		x.submit(2, fields{4: 3, 8: 1, 32: 7, 48: 4000})
		if _, err := p.step(); errors.Is(err, rdma.ErrRules) != fails {
			t.Errorf("one more region beside %d: %v", others, err)
		}
		for i := range others { // they have no memory
			delete(p.regions, uint32(100+i))
		}
	}
}

// A record without a byte is no end: its descriptor is closed, and the proc has broken the rules.
func TestEmptyRecord(t *testing.T) {
	p, x, _ := stranger(t)
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[0])
	oob := unix.UnixRights(ends[1])
	m := unix.Msghdr{Control: &oob[0]} // unix.Sendmsg would add a byte
	m.SetControllen(len(oob))
	_, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(x.channel), uintptr(unsafe.Pointer(&m)), 0)
	if err := unix.Close(ends[1]); err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
	if err := p.port.Look(); !errors.Is(err, rdma.ErrRules) {
		t.Error(err)
	}
	if n, err := unix.Read(ends[0], make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("the descriptor is open: %d, %v", n, err)
	}
}

// What a proc must not do: its link ends, with what was wrong, and its plugin touches nothing.
func TestWrongProcs(t *testing.T) {
	const send, read, done, end, forget = 2, 4, 5, 6, 7
	good := fields{4: 3, 8: 1, 32: 7, 40: 0, 48: 4096}
	with := func(f fields, at int, v uint64) fields {
		own := fields{}
		for k, x := range f {
			own[k] = x
		}
		own[at] = v
		return own
	}
	reads := with(good, 16, 1)
	for name, c := range map[string]struct {
		does func(x *proc)
		want string
	}{
		"region that is not lent":  {func(x *proc) { x.submit(send, with(good, 4, 9)) }, "region 9, which is not lent"},
		"old generation":           {func(x *proc) { x.submit(send, with(good, 32, 6)) }, "generation 6 of region 3, which is lent in generation 7"},
		"generation lent again":    {func(x *proc) { x.lend(t, 3, 7); x.submit(send, with(good, 4, 9)) }, "lends generation 7 of region 3"},
		"beyond its end":           {func(x *proc) { x.submit(send, with(good, 40, 1)) }, "are not in region 3"},
		"far beyond its end":       {func(x *proc) { x.submit(send, with(good, 40, 1<<46)) }, "are not in region 3"},
		"offset that overflows":    {func(x *proc) { x.submit(send, with(good, 40, 1<<63)) }, "at offset 9223372036854775808"},
		"message that is not":      {func(x *proc) { x.submit(read, with(reads, 16, 2)) }, "message 2, which is not open"},
		"beyond the message's end": {func(x *proc) { x.submit(read, with(reads, 24, 5000)) }, "at 5000 of message 1"},
		"place that overflows":     {func(x *proc) { x.submit(read, with(reads, 24, 1<<63)) }, "which is not open or shorter"},
		"not in a slot":            {func(x *proc) { x.submit(read, fields{16: 1, 40: 1000, 48: 100}) }, "not in one of them"},
		"read into an old one":     {func(x *proc) { x.submit(read, with(reads, 32, 8)) }, "generation 8"},
		"done twice":               {func(x *proc) { x.submit(done, fields{16: 1}); x.submit(done, fields{16: 1}) }, "done with message 1"},
		"done while it is read":    {func(x *proc) { x.submit(read, reads); x.submit(done, fields{16: 1}) }, "is being read"},
		"sends after its end":      {func(x *proc) { x.submit(end, nil); x.submit(send, good) }, "after its end"},
		"more loans than slots": {func(x *proc) {
			for range 10 {
				x.submit(send, good)
			}
		}, "has not had back"},
		"more reads than slots": {func(x *proc) {
			for range 6 {
				x.submit(read, with(reads, 48, 1))
			}
		}, "more than once for each slot"},
		"reclaims what is not lent": {func(x *proc) { x.submit(forget, fields{4: 8, 32: 1}) }, "reclaims region 8"},
		"a record cut":              {func(x *proc) { _ = unix.Send(x.channel, []byte("IM"), 0); x.submit(send, with(good, 4, 9)) }, "a record of 2 bytes"},
	} {
		p, x, _ := stranger(t)
		p.most, p.allowed, p.slotSize = 8, 8, 1<<10
		p.open[1] = &offered{key: []byte("key"), length: 5000}
		x.lend(t, 3, 7)
		x.submit(send, good)
		if _, err := p.step(); err != nil {
			t.Fatalf("%s: before it: %v", name, err)
		}
		if c.want == "has not had back" {
			p.allowed = 0 // so that they wait
		}
		c.does(x)
		_, err := p.step()
		if !errors.Is(err, rdma.ErrRules) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What was submitted before a region was forgotten, or its number was given to other memory, is sent.
func TestForgottenBeforeItIsSent(t *testing.T) {
	for name, forgets := range map[string]func(x *proc){
		"forgotten": func(x *proc) { x.submit(7, fields{4: 3, 32: 7}) },
		"lent anew": func(x *proc) { x.lend(t, 3, 8); x.submit(2, fields{8: 2, 4: 3, 32: 8, 48: 100}) },
	} {
		p, x, c := stranger(t)
		p.slotSize = 1 << 10
		x.lend(t, 3, 7)
		x.submit(2, fields{8: 1, 4: 3, 32: 7, 40: 16, 48: 100})
		for range 2 { // there is no allowance, so it waits
			if _, err := p.step(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			forgets(x)
			forgets = func(*proc) {}
		}
		p.most, p.allowed = 8, 8
		c.sent = nil
		if _, err := p.step(); err != nil || len(c.sent) == 0 || kind(c.sent[0][0]) != offer {
			t.Fatalf("%s: %v, %d messages", name, err, len(c.sent))
		}
	}
}
