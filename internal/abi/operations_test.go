package abi

import (
	"strings"
	"testing"
)

func TestOperations(t *testing.T) {
	files, err := operations(`== coll.go collective c *Comm

f Barrier(c *Comm) error
	Barrier blocks.

s Gatherv(send, recv []T, counts, displs []int, root int) error

s Alltoallv(send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) error

b Barrier() error -> collective.Barrier
	Barrier is the function Barrier.

b Alltoallw(send, recv []Buffer) error -> collective.Alltoallw

== reduce.go collective c *Comm

b Exscan(send, recv Buffer, op Op) error
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ file, text string }{{operationsFile, `
func Ibarrier(c *proc.Comm) (proc.Request, error) {
	a := &Call{What: OpBarrier}
	return startCall(c, "Ibarrier", a)
}
`}, {operationsFile, `
func Gatherv[T proc.Type](c *proc.Comm, send, recv []T, counts, displs []int, root int) error {
	a := &Call{What: gatherv, Send: datatype.Bytes(send), recv: datatype.Bytes(recv), counts: counts, displs: displs, Root: root, Kind: datatype.KindOf[T]()}
	return Execute(c, a)
}
`}, {operationsFile, `
func Ialltoallv[T proc.Type](c *proc.Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) (proc.Request, error) {
	a := &Call{What: alltoallv, Send: datatype.Bytes(send), counts: scounts, displs: sdispls, recv: datatype.Bytes(recv), rcounts: rcounts, rdispls: rdispls, Kind: datatype.KindOf[T]()}
	return startCall(c, "Ialltoallv", a)
}
`}, {operationsFile, `
func Ialltoallw(c *proc.Comm, send, recv []proc.Buffer) (proc.Request, error) {
	s := stage(c, alltoallw)
	s.alltoallw(send, recv)
	return s.start("Ialltoallw")
}
`}, {operationsFile, `
func ExscanItems(c *proc.Comm, send, recv proc.Buffer, op Op) error {
	s := stage(c, exscan)
	s.combine(send, recv, op)
	return s.run()
}
`}, {nonblockingFace, `
// Ialltoallv begins an Alltoallv.
func Ialltoallv[T Type](c *Comm, send []T, scounts, sdispls []int, recv []T, rcounts, rdispls []int) (Request, error) {
	r1, err := collective.Ialltoallv(c.in(), send, scounts, sdispls, recv, rcounts, rdispls)
	return Request(r1), c.in().Failed("Ialltoallv", err)
}
`}, {nonblockingFace, `
// Ibarrier begins a Barrier.
func (c *Comm) Ibarrier() (Request, error) {
	r1, err := collective.Ibarrier(c.in())
	return Request(r1), c.in().Failed("Ibarrier", err)
}
`}, {nonblockingFace, `
// Iexscan begins an Exscan.
func (c *Comm) Iexscan(send, recv Buffer, op Op) (Request, error) {
	r1, err := collective.IexscanItems(c.in(), proc.Buffer(send), proc.Buffer(recv), op)
	return Request(r1), c.in().Failed("Iexscan", err)
}
`}} {
		if !strings.Contains(unmeasured(files[want.file]), want.text) {
			t.Errorf("%s lacks%sIt is:\n%s", want.file, want.text, files[want.file])
		}
	}
	if n := strings.Count(files[operationsFile], "func Barrier("); n != 1 {
		t.Errorf("%d functions Barrier for the function and the method", n)
	}
}

func TestOperationsUpToDate(t *testing.T) {
	files, err := Operations()
	wantUpToDate(t, files, err)
}
