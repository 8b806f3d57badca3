package abi

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestFaceEntry(t *testing.T) {
	_, files, err := faceFiles(`== a.go collective c *Comm

s Gather(send, recv []T, root int) error
	Gather gathers
	//
	all.

b Gather(send, recv Buffer, root int) error

m Alltoallw(send, recv []Buffer) error

m Check() error as Comm.Check -> c.in().Usable

m Irecv(b Buffer, src, tag int) (Request, error) -> p2p.Irecv(c.in(), proc.Buffer(b), src, tag)

f Probe(c *Comm, tag int) (found bool, st Status, err error)

r Waitany(reqs []Request) (i int, st Status, err error) -> p2p.Waitany

p OpenPort(info *Info) (string, error)

p ClosePort(name string) error

f Wtime() float64

== a.go w.in().Origin() w *Win

m Put(b Buffer, to Target) error -> _, w.in().Origin().Put(proc.Buffer(b), window.Target(to), false)

m Sync() error

== a.go q.in() q *Request

m Test() (done bool, st Status, err error)

== a.go i.in() i *Info

m Dup() (d *Info, err error)

== a.go f f *File

m Size() (int64, error)

m GetInfo() (*Info, error) -> f.Info()

m Serve() error -> return nil
`)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, f := range files["a.go"] {
		got.WriteString(unmeasured(f.text()))
	}
	want := `
// Gather gathers
// 
// all.
func Gather[T Type](c *Comm, send, recv []T, root int) error {
	err := c.in().Failed("Gather", collective.Gather(c.in(), send, recv, root))
	return err
}

func (c *Comm) Gather(send, recv Buffer, root int) error {
	err := c.in().Failed("Gather", collective.GatherItems(c.in(), proc.Buffer(send), proc.Buffer(recv), root))
	return err
}

func (c *Comm) Alltoallw(send, recv []Buffer) error {
	err := c.in().Failed("Alltoallw", collective.Alltoallw(c.in(), inner[proc.Buffer](send), inner[proc.Buffer](recv)))
	return err
}

func (c *Comm) Check() error {
	return c.in().Failed("Comm.Check", c.in().Usable())
}

func (c *Comm) Irecv(b Buffer, src, tag int) (Request, error) {
	r1, err := p2p.Irecv(c.in(), proc.Buffer(b), src, tag)
	return Request(r1), c.in().Failed("Irecv", err)
}

func Probe(c *Comm, tag int) (found bool, st Status, err error) {
	r1, r2, err := collective.Probe(c.in(), tag)
	return r1, Status(r2), c.in().Failed("Probe", err)
}

func Waitany(reqs []Request) (i int, st Status, err error) {
	c, r1, r2, err := p2p.Waitany(inner[proc.Request](reqs))
	return r1, Status(r2), c.Failed("Waitany", err)
}

func OpenPort(info *Info) (string, error) {
	p, err := proc.Current()
	var r1 string
	if err == nil {
		r1, err = collective.OpenPort(p, info.in())
	}
	return r1, proc.Failed("OpenPort", err)
}

func ClosePort(name string) error {
	p, err := proc.Current()
	if err == nil {
		err = collective.ClosePort(p, name)
	}
	return proc.Failed("ClosePort", err)
}

func Wtime() float64 {
	return collective.Wtime()
}

func (w *Win) Put(b Buffer, to Target) error {
	_, err := w.in().Origin().Put(proc.Buffer(b), window.Target(to), false)
	return w.in().Failed("Put", err)
}

func (w *Win) Sync() error {
	err := w.in().Failed("Sync", w.in().Origin().Sync())
	return err
}

func (q *Request) Test() (done bool, st Status, err error) {
	c := q.in().Comm()
	r1, r2, err := q.in().Test()
	return r1, Status(r2), c.Failed("Test", err)
}

func (i *Info) Dup() (d *Info, err error) {
	r1, err := i.in().Dup()
	return (*Info)(r1), proc.Failed("Info.Dup", err)
}

func (f *File) Size() (int64, error) {
	return file.Call("Size", f.in(), func(f *file.File) (int64, error) { return f.Size() })
}

func (f *File) GetInfo() (*Info, error) {
	r1, err := file.Call("GetInfo", f.in(), func(f *file.File) (*proc.Info, error) { return f.Info() })
	return (*Info)(r1), err
}

func (f *File) Serve() error {
	return nil
}
`
	if got.String() != want {
		t.Errorf("got%swant%s", got.String(), want)
	}
}

// measuring is what a function of a call that is measured has beside the rest.
var measuring = regexp.MustCompile(`\tbegun := calls.Begin\(\)\n|\tif begun != 0 \{\n\t\tcalls.End(?:Exchange)?\(.*\)\n\t\}\n`)

func unmeasured(text string) string { return measuring.ReplaceAllString(text, "") }

// TestMeasured: which calls are measured, and what is told of them.
func TestMeasured(t *testing.T) {
	_, files, err := faceFiles(`== a.go p2p c *Comm

s Send(buf []T, dst, tag int) error

m Recv(b Buffer, src, tag int) (Status, error)

m Size() int

f Finalize() error

r Startall(reqs []Request) error -> p2p.Startall

s Recv(buf []T, src, tag int) (Status, error)

== a.go w.in().Origin() w *Win

m Get(b Buffer, from Target) error -> _, w.in().Origin().Get(proc.Buffer(b), false)

== a.go m.in() m *Message

m Recv(b Buffer) (Status, error)

== a.go p2p c *Comm

m Sendrecv(out Buffer, dst, stag int, in Buffer, src, rtag int) (Status, error)
`)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"", // package proc measures it
		"calls.End(calls.Recv, begun, src, tag, proc.SizeOf(proc.Buffer(b)), proc.ContextOf(c.in()))\n\t}\n\treturn Status(r1), ",
		"", "",
		"calls.End(calls.Startall, begun, calls.NoPeer, calls.NoTag, -1, 0)",
		"",
		"calls.End(calls.Get, begun, calls.NoPeer, calls.NoTag, proc.SizeOf(proc.Buffer(b)), 0)",
		"calls.End(calls.Mrecv, ",
		"calls.EndExchange(calls.Sendrecv, begun, dst, stag, src, proc.SizeOf(proc.Buffer(out)), proc.ContextOf(c.in()))",
	} {
		text := files["a.go"][i].text()
		if !strings.Contains(text, want) || want == "" && strings.Contains(text, "calls.") {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}

func TestFaceOfSomethingElse(t *testing.T) {
	if _, _, err := faceFiles("== a.go p2p c *Comm\ns Send(buf []T dst) error\n"); err == nil || !strings.Contains(err.Error(), "face.txt:2") {
		t.Errorf("got %v", err)
	}
}

func TestFaceUpToDate(t *testing.T) {
	files, err := Face()
	wantUpToDate(t, files, err)
}

// TestReceiveIsOverFirst: when a message has come nothing is found out about the call before it is
// over, as somebody may wait for what the program does next. The size of a datatype takes some
// nanoseconds.
func TestReceiveIsOverFirst(t *testing.T) {
	source, err := os.ReadFile("../engine/proc/recv.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, received := strings.Cut(string(source), "p.recvEager(")
	before, _, over := strings.Cut(after, ".TryEnd()")
	if !received || !over || strings.Contains(before, "Size()") || strings.Contains(before, "ContextOf") || strings.Contains(before, "\n}\n") {
		t.Errorf("after a message has come:\n%s", before)
	}
	face, err := os.ReadFile("../../core/mpi/recv.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(face), "\nfunc Recv[T Type](")
	if body, _, whole := strings.Cut(body, "\n}\n"); !whole || strings.Contains(body, "calls.") {
		t.Errorf("Recv measures:\n%s", body)
	}
}
