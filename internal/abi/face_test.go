package abi

import (
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
		got.WriteString(f.text())
	}
	want := `
// Gather gathers
// 
// all.
func Gather[T Type](c *Comm, send, recv []T, root int) error {
	return c.in().Failed("Gather", collective.Gather(c.in(), send, recv, root))
}

func (c *Comm) Gather(send, recv Buffer, root int) error {
	return c.in().Failed("Gather", collective.GatherItems(c.in(), proc.Buffer(send), proc.Buffer(recv), root))
}

func (c *Comm) Alltoallw(send, recv []Buffer) error {
	return c.in().Failed("Alltoallw", collective.Alltoallw(c.in(), inner[proc.Buffer](send), inner[proc.Buffer](recv)))
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
	return w.in().Failed("Sync", w.in().Origin().Sync())
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

func TestFaceOfSomethingElse(t *testing.T) {
	if _, _, err := faceFiles("== a.go p2p c *Comm\ns Send(buf []T dst) error\n"); err == nil || !strings.Contains(err.Error(), "face.txt:2") {
		t.Errorf("got %v", err)
	}
}

func TestFaceUpToDate(t *testing.T) {
	files, err := Face()
	wantUpToDate(t, files, err)
}
