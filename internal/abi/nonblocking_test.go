package abi

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// blockingSource is all blocking files, of which the first one has code.
func blockingSource(code string) fstest.MapFS {
	files := fstest.MapFS{}
	for i, name := range blockingFiles {
		text := "package mpi\n"
		if i == 0 {
			text += code
		}
		files["core/mpi/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func TestNonblocking(t *testing.T) {
	files, err := GenerateNonblocking(blockingSource(`
func Exscan[T Type](c *Comm, send, recv []T, op Op) error {
	return c.failed("Exscan", c.call(&call{what: exscan, op: op}))
}

func helper() {}

func (c *Comm) NeighborAllgather(send, recv Buffer) error {
	s := c.stage(neighborAllgather)
	s.neighborAllgather(send, recv)
	return c.failed("NeighborAllgather", s.run())
}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`
// Iexscan begins an Exscan.
func Iexscan[T Type](c *Comm, send, recv []T, op Op) (Request, error) {
	q, err := c.startCall("Iexscan", &call{what: exscan, op: op})
	return q, c.failed("Iexscan", err)
}
`, `
// IneighborAllgather begins a NeighborAllgather.
func (c *Comm) IneighborAllgather(send, recv Buffer) (Request, error) {
	s := c.stage(neighborAllgather)
	s.neighborAllgather(send, recv)
	return s.start("IneighborAllgather")
}
`} {
		if !strings.Contains(files[nonblockingFile], want) {
			t.Errorf("lacks%sIt is:\n%s", want, files[nonblockingFile])
		}
	}
}

func TestNonblockingOfSomethingElse(t *testing.T) {
	for _, code := range []string{
		"func Scan(c *Comm) error { return nil }\n",
		"func Scan(c *Comm) error { return c.failed(\"Exscan\", c.call(nil)) }\n",
		"func Scan(c *Comm) error { return c.failed(\"Scan\", c.other()) }\n",
	} {
		if _, err := GenerateNonblocking(blockingSource(code)); err == nil || !strings.Contains(err.Error(), "Scan") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

func TestNonblockingUpToDate(t *testing.T) {
	files, err := GenerateNonblocking(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile("../../" + nonblockingFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(old) != files[nonblockingFile] {
		t.Errorf("%s is out of date: go generate ./internal/abi", nonblockingFile)
	}
}
