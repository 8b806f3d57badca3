package abi

import (
	"os"
	"strings"
	"testing"
)

func TestFaceEntry(t *testing.T) {
	_, files, err := faceFiles(`== a.go collective c *Comm

s Gather(send, recv []T, root int) error
	Gather gathers
	all.

b Gather(send, recv Buffer, root int) error

b Alltoallw(send, recv []Buffer) error -> collective.Alltoallw

b Recv(b Buffer, src, tag int) (Status, error) -> p2p.Recv

f Waitany(reqs []Request) (i int, st Status, err error)

s Isend(buf []T) (Request, error) -> q, err := c.in().Isend(buf); return Request(q), c.in().Failed("Isend", err)

== a.go window w *Win

b Rput(b Buffer, to Target) (Request, error) -> w.in().Origin().Rput
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
// all.
func Gather[T Type](c *Comm, send, recv []T, root int) error {
	return collective.Gather(c.in(), send, recv, root)
}

func (c *Comm) Gather(send, recv Buffer, root int) error {
	return collective.GatherItems(c.in(), proc.Buffer(send), proc.Buffer(recv), root)
}

func (c *Comm) Alltoallw(send, recv []Buffer) error {
	return collective.Alltoallw(c.in(), inner[proc.Buffer](send), inner[proc.Buffer](recv))
}

func (c *Comm) Recv(b Buffer, src, tag int) (Status, error) {
	return outStatus(p2p.Recv(c.in(), proc.Buffer(b), src, tag))
}

func Waitany(reqs []Request) (i int, st Status, err error) {
	return outIntStatus(collective.Waitany(inner[proc.Request](reqs)))
}

func Isend[T Type](c *Comm, buf []T) (Request, error) {
	q, err := c.in().Isend(buf)
	return Request(q), c.in().Failed("Isend", err)
}

func (w *Win) Rput(b Buffer, to Target) (Request, error) {
	return outRequest(w.in().Origin().Rput(proc.Buffer(b), window.Target(to)))
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
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		old, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(old) != text {
			t.Errorf("%s is out of date: go generate ./internal/abi", name)
		}
	}
}
