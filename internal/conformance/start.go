package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/proto"
)

var startCases = []Case{
	{ID: "P-START-01", Name: "by-hand", Kind: Robust, run: byHand,
		Rule: "started without the magic cookie, or with a wrong one, it says what it is, shakes no hands and exits with a status other than 0"},
	{ID: "P-START-02", Name: "handshake", Kind: Correct, run: handshakeFirst,
		Rule: "its standard output begins with the handshake and nothing else, and the socket is in the directory that it was told"},
	{ID: "P-START-03", Name: "slow-start", Kind: Robust, run: slowStart,
		Rule: "a process that is stopped for a second while it starts, starts"},
	{ID: "P-START-04", Name: "late-node", Kind: Robust, run: lateNode, Slow: true,
		Rule: "a node that connects seconds after the handshake is served"},
	{ID: "P-START-05", Name: "other-version", Kind: Robust, run: otherVersion,
		Rule: "to a node that speaks other versions of the protocol only, it does not say that it speaks one of them"},
	{ID: "P-START-09", Name: "older-node", Kind: Robust, run: func(e *env) { otherAge(e, fmt.Sprint(proto.Version-1)) },
		Rule: "to a node of the version before this one it speaks that version, and makes links, or says that it cannot"},
	{ID: "P-START-10", Name: "newer-node", Kind: Robust, run: func(e *env) { otherAge(e, offered(1)) },
		Rule: "to a node of the next version it speaks a version that the node has, and makes links"},
	{ID: "P-START-06", Name: "safe-file", Kind: Correct, run: safeFile,
		Rule: "its file and its directory cannot be written by others, and the file is called impi-transport-NAME"},
	{ID: "P-START-07", Name: "mtls", Kind: Robust, run: mtls,
		Rule: "it protects its control connection by AutoMTLS when the node gives it a certificate"},
	{ID: "P-START-08", Name: "start-given-up", Kind: Robust, run: startGivenUp,
		Rule: "when the node gives a start up, nothing is left of the process"},
}

// everyStart is done for each data plane, before all others.
var everyStart = []Case{
	{ID: "P-START-11", Name: "every-start", Kind: Correct, run: startAgain,
		Rule: "each time that it is started, with each of the data planes that Capabilities lists, it starts and listens"},
}

func startAgain(e *env) {
	ln, err := e.host().Transport().Listen(e.context(), e.at())
	e.must(err)
	e.must(ln.Close())
}

func byHand(e *env) {
	if e.s.Path == "" {
		e.Skipf("it is built in")
	}
	for _, o := range []nodeOptions{{absent: true}, {cookie: "another program's"}} {
		what := "without the cookie"
		if !o.absent {
			what = "with a wrong cookie"
		}
		o.mute = true
		n := e.node(o)
		switch {
		case !n.gone(startLimit):
			e.Fatalf("started %s it still runs after %v", what, startLimit)
		case n.status == nil:
			e.Fatalf("started %s it exits with status 0", what)
		case len(n.out.all())+len(n.err.all()) == 0:
			e.Fatalf("started %s it exits without a word", what)
		}
		for _, line := range n.out.all() {
			if _, err := parseHandshake(line); err == nil {
				e.Fatalf("started %s it shakes hands: %s", what, line)
			}
		}
	}
}

func handshakeFirst(e *env) {
	dir := e.dir()
	n := e.node(nodeOptions{dir: dir})
	if !slices.Contains(strings.Split(offered(0), ","), n.shake.version) && proto.Common(n.speaks) == 0 {
		e.Fatalf("it speaks version %q of the protocol, this node %s", n.shake.version, offered(0))
	}
	inside, err := filepath.Rel(dir, n.shake.address)
	if err != nil || strings.HasPrefix(inside, "..") {
		e.Fatalf("its socket is %s, outside of PLUGIN_UNIX_SOCKET_DIR", n.shake.address)
	}
	if all := n.out.all(); len(all) > 1 {
		e.Logf("its standard output goes on after the handshake: %.100q; a node logs that", all[1])
	}
}

func slowStart(e *env) { e.node(nodeOptions{frozen: true}) }

func lateNode(e *env) {
	n := e.node(nodeOptions{mute: true})
	ctx := e.context()
	_, err := n.out.first(ctx)
	e.must(err)
	if n.gone(6 * time.Second) {
		e.Fatalf("nobody connected for 6 seconds, and it has ended: %v", n.status)
	}
	e.must(n.meet(ctx))
}

func otherVersion(e *env) {
	n := e.node(nodeOptions{mute: true, versions: "98,99"})
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	line, err := n.out.first(ctx)
	if err != nil {
		if !n.gone(startLimit) { // its output ends before it does
			e.Fatalf("it neither shakes hands nor ends within %v", startLimit)
		}
		return
	}
	h, err := parseHandshake(line)
	e.must(err)
	if h.version == "98" || h.version == "99" {
		e.Fatalf("it says that it speaks version %s", h.version)
	}
}

// otherAge makes the plugin make a link for a node that speaks other versions.
func otherAge(e *env, versions string) {
	n := e.configured(nodeOptions{versions: versions})
	if !slices.Contains(strings.Split(versions, ","), n.shake.version) {
		e.Skipf("it speaks version %s and cannot serve a node that speaks %s, and says so", n.shake.version, versions)
	}
	address := e.listen(n)
	if answer := e.dial(n, address); answer.GetError() != nil {
		e.Fatalf("a node that speaks %s cannot dial: %s", versions, answer.GetError().GetReason())
	}
}

func safeFile(e *env) {
	if e.s.Path == "" {
		e.Skipf("it is built in")
	}
	dir, file := filepath.Split(e.s.Path)
	if wrong := e.s.misnamed(); wrong != "" {
		e.Fatalf("%s", wrong)
	}
	_, err := host.Find(dir, file)
	e.must(err)
}

func mtls(e *env) {
	switch {
	case e.mtls != nil:
		e.Fatalf("%v; or say so with -no-mtls, and the operator writes auto_mtls = false", e.mtls)
	case e.s.NoMTLS:
		e.Skipf("it comes without AutoMTLS; the operator must write auto_mtls = false")
	}
	e.must(e.host().Close())
}

func startGivenUp(e *env) {
	for _, after := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		p, err := host.Start(ctx, e.s.config(""))
		cancel()
		if err == nil {
			e.must(p.Close())
		}
	}
	if e.s.Path == "" {
		return
	}
	if pids := processesOf(e.s.Path); len(pids) > 0 {
		e.Fatalf("processes of it still run: %v", pids)
	}
}

func processesOf(path string) (pids []string) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range list {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		pid := filepath.Base(filepath.Dir(f))
		if strings.Contains(string(text), path) && parentOf(pid) == os.Getpid() && stateOf(pid) != "Z" {
			pids = append(pids, pid)
		}
	}
	return pids
}
