package abi

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// blockingSource is all files of the blocking operations, of which the first of either kind has
// code.
func blockingSource(room, face string) fstest.MapFS {
	files := fstest.MapFS{}
	for i, name := range blockingFiles {
		text := "package collective\n"
		if i == 0 {
			text += room
		}
		files["internal/engine/collective/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	for i, name := range blockingFaces {
		text := "package mpi\n"
		if i == 0 {
			text += face
		}
		files["core/mpi/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func TestNonblocking(t *testing.T) {
	files, err := GenerateNonblocking(blockingSource(`
func Exscan[T proc.Type](c *proc.Comm, send, recv []T, op Op) error {
	return c.Failed("Exscan", Execute(c, &Call{What: exscan, op: op}))
}

func helper() {}

func NeighborAllgatherItems(c *proc.Comm, send, recv proc.Buffer) error {
	s := stage(c, neighborAllgather)
	s.neighborAllgather(send, recv)
	return c.Failed("NeighborAllgather", s.run())
}
`, `
// Exscan has a comment.
func Exscan[T Type](c *Comm, send, recv []T, op Op) error {
	return collective.Exscan(c.in(), send, recv, op)
}

func (c *Comm) NeighborAllgather(send, recv Buffer) error {
	return collective.NeighborAllgatherItems(c.in(), proc.Buffer(send), proc.Buffer(recv))
}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ file, text string }{{nonblockingFile, `
func Iexscan[T proc.Type](c *proc.Comm, send, recv []T, op Op) (proc.Request, error) {
	q, err := startCall(c, "Iexscan", &Call{What: exscan, op: op})
	return q, c.Failed("Iexscan", err)
}
`}, {nonblockingFile, `
func IneighborAllgatherItems(c *proc.Comm, send, recv proc.Buffer) (proc.Request, error) {
	s := stage(c, neighborAllgather)
	s.neighborAllgather(send, recv)
	return s.start("IneighborAllgather")
}
`}, {nonblockingFace, `
// Iexscan begins an Exscan.
func Iexscan[T Type](c *Comm, send, recv []T, op Op) (Request, error) {
	return outRequest(collective.Iexscan(c.in(), send, recv, op))
}
`}, {nonblockingFace, `
// IneighborAllgather begins a NeighborAllgather.
func (c *Comm) IneighborAllgather(send, recv Buffer) (Request, error) {
	return outRequest(collective.IneighborAllgatherItems(c.in(), proc.Buffer(send), proc.Buffer(recv)))
}
`}} {
		if !strings.Contains(files[want.file], want.text) {
			t.Errorf("%s lacks%sIt is:\n%s", want.file, want.text, files[want.file])
		}
	}
}

func TestNonblockingOfSomethingElse(t *testing.T) {
	for _, code := range []struct{ room, face string }{
		{room: "func Scan(c *proc.Comm) error { return nil }\n"},
		{room: "func Scan(c *proc.Comm) error { return c.Failed(\"Exscan\", Execute(c, nil)) }\n"},
		{room: "func Scan(c *proc.Comm) error { return c.Failed(\"Scan\", c.other()) }\n"},
		{face: "func Scan(c *Comm) error { return c.scan() }\n"},
	} {
		if _, err := GenerateNonblocking(blockingSource(code.room, code.face)); err == nil || !strings.Contains(err.Error(), "Scan") {
			t.Errorf("%+v: %v", code, err)
		}
	}
}

func TestNonblockingUpToDate(t *testing.T) {
	files, err := GenerateNonblocking(os.DirFS("../.."))
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
