// Package skips skips tests for which this machine lacks something, in one form, so that
// the command list can print at the end of make test what was not run, what it lacked, and
// what to install.
package skips

import (
	"cmp"
	"os/exec"
	"strings"
	"testing"
)

// The beginnings of the reasons for skips that are not the test's own choice.
const (
	notRun = "NOT RUN: " // followed by what is missing, a colon and the remedy
	soak   = "SOAK: "    // followed by why only make soak runs it
)

// TB is the part of testing.TB that this package uses.
type TB interface {
	Helper()
	Skip(args ...any)
}

// NotRun ends a test for which this machine lacks something. The remedy is a command or an
// instruction, and has no colon in it.
func NotRun(t TB, missing, remedy string) {
	t.Helper()
	t.Skip(notRun + oneLine(missing) + ": " + remedy)
}

// Soak ends a test that only make soak runs.
func Soak(t TB, why string) {
	t.Helper()
	t.Skip(soak + oneLine(why))
}

// oneLine removes line breaks, since the output of go test is read line by line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Short skips a test that takes long if -short is given.
func Short(t TB) {
	t.Helper()
	if testing.Short() {
		NotRun(t, "-short is given", "leave out -short")
	}
}

// packages are the Debian packages of programs, where the names differ.
var packages = map[string]string{
	"cc": "gcc libc6-dev", "gcc": "gcc libc6-dev", "c++": "g++", "ip": "iproute2",
	"mergecap": "wireshark-common", "ping": "iputils-ping", "protoc": "protobuf-compiler", "setsid": "util-linux", "sh": "dash",
}

// Program returns the path of a program, or ends the test and reports what to install.
func Program(t TB, name string) (path string) {
	t.Helper()
	return ProgramOf(t, name, cmp.Or(packages[name], name))
}

// Programs is Program for several, without their paths.
func Programs(t TB, names ...string) {
	t.Helper()
	for _, name := range names {
		Program(t, name)
	}
}

// ProgramOf is Program for a program that is in these packages of Debian. Daemons are also looked
// for where Debian installs them, which is often not in PATH.
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
