package abi

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestNamesUpToDate(t *testing.T) {
	files, err := Names(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile("../../" + namesFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(old) != files[namesFile] {
		t.Errorf("%s is out of date: go generate ./internal/abi", namesFile)
	}
}

// TestNamesOfAFile: declarations keep their comments, and what is not wanted is left out.
func TestNamesOfAFile(t *testing.T) {
	const source = `package proc

// The faults.
var (
	// ErrTag is one.
	ErrTag = errors.New("tag")
	ErrNo  = errors.New("no")
)

// Special ranks.
const AnySource, AnyTag = -1, -2 // any

// Class is a class.
type Class int

// Comm has private fields.
type Comm struct{ c int }

// Figures has none.
type Figures struct {
	Sent int // bytes
	Type *proc.Datatype
}

type Other int
`
	r := &renamer{pkg: "proc", wanted: strings.Fields("ErrTag AnySource AnyTag Class Comm Figures Absent")}
	if err := r.file(fstest.MapFS{"a.go": {Data: []byte(source)}}, "a.go"); err != nil {
		t.Fatal(err)
	}
	const want = `
// The faults.
var (
	// ErrTag is one.
	ErrTag = proc.ErrTag
)

// Special ranks.
const (
	AnySource = proc.AnySource // any
	AnyTag    = proc.AnyTag    // any
)

// Class is a class.
type Class = proc.Class

// Comm has private fields.
type Comm proc.Comm

// Figures has none.
type Figures struct {
	Sent int // bytes
	Type *Datatype
}
`
	got, err := faceFile("names.txt", r.text.String())
	if err != nil || !strings.HasSuffix(got, want) || strings.Join(r.wanted, " ") != "Absent" {
		t.Errorf("%v\n%s\nwant %s\nleft %v", err, got, want, r.wanted)
	}
}
