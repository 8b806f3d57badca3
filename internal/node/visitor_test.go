package node

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/internal/transcript"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// heardByVisitor is what a visitor prints of a message.
type heardByVisitor struct {
	wireup.Message
	FDs  int    // that came with it
	Said string // what came by the link
}

func init() { programs["visitor"] = visit }

// visit is a proc that says to its node what stands on its standard input, and
// prints what it hears. It writes four bytes, its tag, on each link that is a socket,
// reads four, and closes it; others it keeps.
func visit() {
	c, _, err := wireup.Inherited()
	check(err)
	check(c.Send(wireup.Message{Kind: wireup.KindHello, Version: wireup.Version, Library: "visitor"}))
	_, fds, err := c.Recv()
	check(err)
	job, err := wireup.OpenJob(fds[1], fds[2])
	check(err)
	out := json.NewEncoder(os.Stdout)
	check(out.Encode(heardByVisitor{Message: wireup.Message{Kind: wireup.KindWelcome, Meeting: &wireup.OtherWorld{World: job.Describe(), Card: job.Card}}}))
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			var m wireup.Message
			check(json.Unmarshal(in.Bytes(), &m))
			check(c.Send(m))
		}
	}()
	for {
		m, fds, err := c.Recv()
		check(err)
		h := heardByVisitor{Message: m, FDs: len(fds)}
		if m.DataPlane == string(transports.PlaneFD) {
			h.Said = swapTags(fds[0])
			wireup.CloseAll(fds) // what goes by a plugin must not end before the other end has it
		}
		check(out.Encode(h))
	}
}

func swapTags(fd int) string {
	own, err := unix.Dup(fd)
	check(err)
	check(unix.SetNonblock(own, false))
	g := os.NewFile(uintptr(own), "link")
	defer g.Close()
	_, err = g.WriteString(os.Getenv("VISITOR_TAG"))
	check(err)
	var b [4]byte
	n, _ := io.ReadFull(g, b[:])
	return string(b[:n])
}

// visitor is a job with one visitor.
type visitor struct {
	t     testing.TB
	r     *running
	in    *os.File
	lines int
	world dynamic.Description
	card  string
}

func startVisitor(t testing.TB, tag string, change ...func(*config.Job)) *visitor {
	t.Helper()
	job := testJob("visitor", 1)
	job.Sites[0].Program.Env["VISITOR_TAG"] = tag
	job.Sites[0].Program.PrefixOutput = false
	for _, f := range change {
		f(job)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	r := start(t, job, func(o *Options) { o.Stdin = theirs })[0]
	v := &visitor{t: t, r: r, in: ours}
	welcome := v.hear()
	d, err := dynamic.ReadDescription(welcome.Meeting.World)
	if err != nil {
		t.Fatal(err)
	}
	v.world, v.card = *d, welcome.Meeting.Card
	return v
}

func (v *visitor) say(m wireup.Message) {
	v.t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		v.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(v.in, "%s\n", b); err != nil {
		v.t.Fatal(err)
	}
}

// hear waits for the next message that the visitor's node has sent.
func (v *visitor) hear() (h heardByVisitor) {
	v.t.Helper()
	line := nthLine(v.t, v.r.out, v.lines)
	v.lines++
	if err := json.Unmarshal([]byte(line), &h); err != nil {
		v.t.Fatalf("%q: %v", line, err)
	}
	return h
}

// nthLine waits for a line by its number, from 0.
func nthLine(t testing.TB, w *transcript.Writer, want int) (line string) {
	t.Helper()
	if !w.Until(func(text string) bool {
		lines := strings.SplitN(text, "\n", want+2)
		if len(lines) < want+2 {
			return false
		}
		line = lines[want]
		return true
	}) {
		t.Fatalf("there is no line %d:\n%s", want, w)
	}
	return line
}
