// Package skips is why tests were not run. Tests that this machine lacks something for say
// so in one form, and the command list prints what was not run, for want of what, and what
// to install, at the end of make test.
package skips

import (
	"cmp"
	"os/exec"
	"strings"
	"testing"
)

// A skip that begins so is not the test's own choice.
const (
	notRun = "NOT RUN: " // what is missing and the remedy follow, a colon between them
	soak   = "SOAK: "    // only make soak runs it; why follows
)

// TB is the part of testing.TB that is needed here.
type TB interface {
	Helper()
	Skip(args ...any)
}

// NotRun ends a test for which this machine lacks something. The remedy is a command, or
// what to do, and has no colon in it.
func NotRun(t TB, missing, remedy string) {
	t.Helper()
	t.Skip(notRun + oneLine(missing) + ": " + remedy)
}

// Soak ends a test that only make soak runs.
func Soak(t TB, why string) {
	t.Helper()
	t.Skip(soak + oneLine(why))
}

// oneLine has no line breaks, as what go test prints is read line by line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Short ends a test that takes long if -short is given.
func Short(t TB) {
	t.Helper()
	if testing.Short() {
		NotRun(t, "-short is given", "leave out -short")
	}
}

// packages are those of Debian that have a program, where their name is another one.
var packages = map[string]string{
	"cc": "gcc libc6-dev", "gcc": "gcc libc6-dev", "c++": "g++", "ip": "iproute2",
	"mergecap": "wireshark-common", "protoc": "protobuf-compiler", "setsid": "util-linux", "sh": "dash",
}

// Program returns the path of a program, or ends the test and says what to install.
func Program(t TB, name string) (path string) {
	t.Helper()
	return ProgramOf(t, name, cmp.Or(packages[name], name))
}

// ProgramOf is Program for one that is in these packages of Debian. Daemons are looked for
// where they are, too, which not everybody has in PATH.
func ProgramOf(t TB, name, packages string) (path string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err == nil {
		return path
	}
	remedy := "apt-get install " + packages
	if name == "go" {
		remedy = "put the folder of go into PATH"
	}
	NotRun(t, "there is no "+name, remedy)
	return ""
}
