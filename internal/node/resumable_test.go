package node

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/ending"
	"github.com/openimpi/impi/core/mpi"
	rules "github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/launch/launchtest"
	"github.com/openimpi/impi/internal/resumable"
	"github.com/openimpi/impi/internal/routes"
	"github.com/openimpi/impi/internal/wireup"
)

// chatRounds is for as many cuts of links as the tests want to see. Where nothing is cut,
// more than a window of packets is enough.
const chatRounds = 1000

func init() {
	programs["big"] = func() { w := initialize(); exchange(w, 64<<20); finalize() }
	programs["mid"] = func() { w := initialize(); exchange(w, 5<<20); finalize() }
	programs["chat"] = func() { w := initialize(); chat(w, chatRounds); ring(w); finalize() }
	programs["long and short"] = func() { w := initialize(); exchange(w, 5<<20); chat(w, 300); ring(w); finalize() }
	programs["tick"] = func() { w := initialize(); tick(w); finalize() }
}

// exchange sends a long message to the next rank while another comes, both ways
// round, and checks what came.
func exchange(w *mpi.Comm, size int) {
	me, n := w.Rank(), w.Size()
	for _, step := range []int{1, n - 1} {
		to, from := (me+step)%n, (me+n-step)%n
		out, in := make([]byte, size), make([]byte, size)
		fill(out, me*7+step)
		s, err := mpi.Isend(w, out, to, 5)
		check(err)
		_, err = mpi.Recv(w, in, from, 5)
		check(err)
		_, err = s.Wait()
		check(err)
		fill(out, from*7+step)
		if crc32.ChecksumIEEE(in) != crc32.ChecksumIEEE(out) {
			fmt.Println("wrong bytes from", from)
			os.Exit(7)
		}
	}
	fmt.Println("exchanged", size)
}

func fill(b []byte, seed int) {
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	next := func() uint64 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		return x
	}
	for ; len(b) >= 8; b = b[8:] { // by words, as the race detector looks at each access
		binary.LittleEndian.PutUint64(b, next())
	}
	for i := range b {
		b[i] = byte(next())
	}
}

// chat sends many short numbers to and fro.
func chat(w *mpi.Comm, rounds int) {
	me := w.Rank()
	peer := me ^ 1
	for i := range rounds {
		out, in := []int64{int64(i*2 + me)}, make([]int64, 1)
		if me < peer {
			check(mpi.Send(w, out, peer, i%5))
		}
		_, err := mpi.Recv(w, in, peer, i%5)
		check(err)
		if me > peer {
			check(mpi.Send(w, out, peer, i%5))
		}
		if in[0] != int64(i*2+peer) {
			fmt.Println("wrong number", in[0], "in round", i)
			os.Exit(7)
		}
	}
	fmt.Println("chatted")
}

// tick sends a number to the next rank every time a line comes on standard input
// of rank 0.
func tick(w *mpi.Comm) {
	for i := int64(0); ; i++ {
		more := []int64{0}
		if w.Rank() == 0 {
			var line string
			if _, err := fmt.Scanln(&line); err == nil {
				more[0] = 1
			}
			check(mpi.Send(w, more, 1, 1))
			_, err := mpi.Recv(w, more, 1, 1)
			check(err)
		} else {
			_, err := mpi.Recv(w, more, 0, 1)
			check(err)
			check(mpi.Send(w, more, 0, 1))
		}
		if more[0] == 0 {
			return
		}
		fmt.Println("tick", i)
	}
}

// cutJob is a job whose links are cut after so many bytes, and resumed.
func cutJob(mode string, every float64, procs ...int) *config.Job {
	job := route(testJob(mode, procs...), config.Route{Prefer: []string{"cut"}, Direct: true, Resume: true})
	for i := range job.Sites {
		job.Sites[i].Transports = append(job.Sites[i].Transports,
			config.Transport{Name: "cut", Builtin: true, Settings: []config.Setting{{Name: "every", Value: every}}})
	}
	return job
}

func resumes(all []*running, pairs ...direct.Pair) (n int) {
	for _, r := range all {
		for _, x := range pairs {
			n += r.n.direct.Resumes(x)
		}
	}
	return n
}

func TestLongMessagesOverLinksThatAreCut(t *testing.T) {
	all := start(t, cutJob("big", 20e6, 1, 1))
	wantNone(t, all)
	if got := resumes(all, direct.Pair{Local: 0, Peer: 1}, direct.Pair{Local: 1, Peer: 0}); got < 6 {
		t.Errorf("%d resumes on both sides: nothing was shown", got)
	}
}

func TestShortMessagesOverLinksThatAreCut(t *testing.T) {
	all := start(t, cutJob("chat", 10e3, 2, 2))
	wantNone(t, all)
	if got := resumes(all, direct.Pair{Local: 0, Peer: 1}, direct.Pair{Local: 1, Peer: 0}, direct.Pair{Local: 2, Peer: 3}, direct.Pair{Local: 3, Peer: 2}); got < 8 {
		t.Errorf("%d resumes on both sides: nothing was shown", got)
	}
}

// The end that dialled does not notice that the other one has lost the link, and is
// told.
func TestLinksThatDieInSilence(t *testing.T) {
	job := cutJob("chat", 20e3, 1, 1)
	for i := range job.Sites {
		x := &job.Sites[i].Transports[len(job.Sites[i].Transports)-1]
		x.Settings = append(x.Settings, config.Setting{Name: "silent", Value: true})
	}
	all := start(t, job)
	wantNone(t, all)
	if got := resumes(all, direct.Pair{Local: 0, Peer: 1}, direct.Pair{Local: 1, Peer: 0}); got < 4 {
		t.Errorf("%d resumes on both sides: nothing was shown", got)
	}
	if said := all[0].err.String() + all[1].err.String(); !strings.Contains(said, "told its other end") {
		t.Error("nobody was told")
	}
}

// A link may break in its greeting, when the other end has its share and we do not
// know, or the other way round. It is gone on with; nobody is left with half of it.
func TestLinksThatBreakInTheirGreeting(t *testing.T) {
	for name, cut := range map[string]config.Setting{
		"before the challenge":     {Name: "answered", Value: 20.0},
		"in the verdict":           {Name: "answered", Value: 60.0}, // the peer's proc has its end
		"behind the hello":         {Name: "asked", Value: 80.0},
		"behind the proof":         {Name: "asked", Value: 120.0}, // who knows what the peer makes of it
		"behind the first packets": {Name: "asked", Value: 400.0},
	} {
		t.Run(name, func(t *testing.T) {
			job := cutJob("chat", 1e12, 1, 1)
			for i := range job.Sites {
				x := &job.Sites[i].Transports[len(job.Sites[i].Transports)-1]
				x.Settings = append(x.Settings, cut, config.Setting{Name: "first", Value: 2.0})
			}
			all := start(t, job)
			wantNone(t, all)
			for _, r := range all {
				if said := r.err.String(); strings.Contains(said, "no direct link") {
					t.Error("the pair went by its agents")
				}
				if r.n.direct.PairState(direct.Pair{Local: wire.WorldRank(r.n.opt.Site.Client), Peer: 1 - wire.WorldRank(r.n.opt.Site.Client)}) != dynamic.Linked {
					t.Errorf("site %s has no link", r.n.opt.Site.Name)
				}
			}
		})
	}
}

func TestCutLinkWithoutResume(t *testing.T) {
	job := cutJob("big", 20e6, 1, 1)
	for i := range job.Sites {
		job.Sites[i].Routes[0].Resume = i == 0 // one end is enough
	}
	f := end(start(t, job))
	for i := range f {
		if f[i] == nil {
			t.Errorf("site %d has not noticed", i)
		}
	}
}

func TestPluginKilledBetweenMessages(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := start(t, cutJob("tick", 1e12, 1, 1), func(o *Options) {
		if o.Site.Client == 0 {
			o.Stdin = r
		}
	})
	for i := range 4 {
		fmt.Fprintln(w, "go")
		all[0].out.Line(t, fmt.Sprintf("[0] tick %d", i))
		fd := launchtest.Pidfd(t, all[0].n.routes.Transport("cut").Plugin.Status().PID) // the dialler's, or the one that is dialled
		if i%2 == 1 {
			fd = launchtest.Pidfd(t, all[1].n.routes.Transport("cut").Plugin.Status().PID)
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
			t.Fatal(err)
		}
		launchtest.AwaitEnd(t, fd)
	}
	w.Close()
	wantNone(t, all)
	if got := resumes(all, direct.Pair{Local: 0, Peer: 1}, direct.Pair{Local: 1, Peer: 0}); got < 2 {
		t.Errorf("%d resumes", got)
	}
}

// Plugins through which long messages pass are killed one after the other.
func TestPluginKilledInTheMiddle(t *testing.T) {
	job := route(testJob("big", 1, 1), config.Route{Prefer: []string{"tcp"}, Direct: true, DataPlane: []string{"stream"}, Resume: true})
	all := start(t, job)
	kill := func(r *running) {
		fd := launchtest.Pidfd(t, r.n.routes.Transport("tcp").Plugin.Status().PID)
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
			t.Fatal(err)
		}
		launchtest.AwaitEnd(t, fd)
	}
	all[0].err.Await("] direct link: site", 1)
	kill(all[0])
	for i := range 4 {
		if !all[0].err.Await("a direct link is resumed", i+1) {
			break
		}
		kill(all[i%2])
	}
	wantNone(t, all)
	if got := resumes(all, direct.Pair{Local: 0, Peer: 1}, direct.Pair{Local: 1, Peer: 0}); got == 0 { // the messages may be quicker than the later kills
		t.Errorf("%d resumes on both sides", got)
	}
}

// A proc that dies has its link dialled in vain for a moment; that must not keep
// its job.
func TestDeathIsNotResumed(t *testing.T) {
	job := cutJob("tick", 1e12, 1, 1)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	all := start(t, job, func(o *Options) {
		if o.Site.Client == 0 {
			o.Stdin = r
		}
	})
	fmt.Fprintln(w, "go")
	all[0].out.Line(t, "[0] tick 0")
	began := time.Now()
	if err := unix.Kill(all[1].out.Number(t, "[1] pid "), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantAll(t, all, "rank 1 on site beta was killed by SIGKILL")
	if d := time.Since(began); d > config.DefaultResume/2 {
		t.Errorf("it took %v", d)
	}
}

// A proc that has given its link up says so, and then further connections are
// refused, which ends the other end's attempts.
func TestGivenUpIsRefused(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := start(t, cutJob("tick", 1e12, 1, 1), func(o *Options) {
		if o.Site.Client == 0 {
			o.Stdin = r
		}
	})
	fmt.Fprintln(w, "go")
	all[0].out.Line(t, "[0] tick 0")
	asked := 0
	for i, x := range []direct.Pair{{Local: 0, Peer: 1}, {Local: 1, Peer: 0}} {
		d := all[i].n.direct
		id, dialled := d.ResumableID(x)
		if dialled {
			continue
		}
		hello := dynamic.Hello{Src: x.Peer, Dst: x.Local, ResumableID: id, Resumes: true}
		p, _, v := d.CheckResume(hello, all[i].n.routes.Transport("cut"))
		if v != dynamic.Accepted {
			t.Fatalf("before: %v", v)
		}
		d.Reopen(p, wireup.Message{Kind: wireup.KindOpen, Peer: x.Peer, Reason: "enough", Resumable: &wireup.Resumable{Session: id[:], Again: true, Over: true}})
		if _, _, v = d.CheckResume(hello, all[i].n.routes.Transport("cut")); v != dynamic.UnknownLink {
			t.Errorf("after: %v", v)
		}
		asked++
	}
	if asked != 1 {
		t.Errorf("%d ends are dialled", asked)
	}
	w.Close()
	wantNone(t, all)
}

// Nobody listens any more: the link is given up after its time, and the error
// says what was tried.
func TestResumeGivesUp(t *testing.T) {
	f, _ := endsInTime(t, 300*time.Millisecond, func(limit time.Duration) *ending.Failure {
		job := cutJob("tick", 1e12, 1, 1)
		job.Limits.Resume = limit
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		all := start(t, job, func(o *Options) {
			if o.Site.Client == 0 {
				o.Stdin = r
			}
		})
		fmt.Fprintln(w, "go")
		if !all[0].out.Await("[0] tick 0\n", 1) { // a new link has the same limit
			end(all)
			return &ending.Failure{Text: tooLate}
		}
		for _, x := range all {
			for _, l := range x.n.hosts[0].Direct {
				_ = l.Close()
			}
			if err := unix.Kill(x.n.routes.Transport("cut").Plugin.Status().PID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintln(w, "go")
		for i, f := range end(all) {
			if f == nil {
				t.Errorf("site %d ended well", i)
			}
		}
		said := all[0].err.String() + all[1].err.String()
		if !strings.Contains(said, "cut at 127.0.0") && limit < patience { // the plugins' next processes take their time
			return &ending.Failure{Text: tooLate}
		}
		for _, want := range []string{"lost and not resumed", "dialled", fmt.Sprint("within ", limit), "cut at 127.0.0"} {
			if !strings.Contains(said, want) {
				t.Errorf("nobody says %q:\n%s", want, said)
			}
		}
		return nil
	})
	if f != nil {
		t.Errorf("there was no link, or none that was dialled again: %v", f)
	}
}

// channelJob is a job whose procs talk through their agents, by channels that are
// cut after so many bytes.
func channelJob(mode string, every float64, procs ...int) *config.Job {
	job := cutJob(mode, every, procs...)
	for i := range job.Sites {
		s := &job.Sites[i]
		s.Routes[0].Direct = false
		t := &s.Transports[len(s.Transports)-1]
		t.Settings = append(t.Settings, config.Setting{Name: "channels", Value: true})
	}
	return job
}

func TestChannelsThatAreCut(t *testing.T) {
	for _, c := range []struct {
		mode  string
		every float64
		procs []int
	}{
		{"big", 20e6, []int{1, 1}},
		{"chat", 10e3, []int{1, 1}}, // ranks 0 and 1 are on two sites
		{"all", 3e3, []int{1, 2, 2}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			all := start(t, channelJob(c.mode, c.every, c.procs...))
			wantNone(t, all)
			said := all[0].err.String() + all[1].err.String()
			if got := strings.Count(said, "a channel is resumed"); got < 3 && c.mode != "all" {
				t.Errorf("%d resumes on both sides: nothing was shown", got)
			}
		})
	}
}

func TestCutChannelWithoutResume(t *testing.T) {
	job := channelJob("big", 20e6, 1, 1)
	job.Sites[1].Routes[0].Resume = false
	for i, f := range end(start(t, job)) {
		if f == nil || !strings.Contains(f.Text, " is lost: its connection has ") && !f.Remote {
			t.Errorf("site %d: %v", i, f)
		}
	}
}

func TestLastingFeatures(t *testing.T) {
	on, off := config.Route{Resume: true}, config.Route{}
	job := testJob("ring", 1, 1, 1)
	site := func(routes map[string]config.Route) config.Site {
		s := config.Site{}
		for name, r := range routes {
			r.Site = name
			s.Routes = append(s.Routes, r)
		}
		return s
	}
	for _, c := range []struct {
		routes map[string]config.Route
		want   [3]bool
	}{
		{map[string]config.Route{"*": on}, [3]bool{true, true, true}},
		{map[string]config.Route{"*": off}, [3]bool{}},
		{map[string]config.Route{"*": on, "beta": off}, [3]bool{true, false, true}},
		{map[string]config.Route{"*": off, "beta": on, "alpha": on}, [3]bool{true, true, false}},
	} {
		card := &dynamic.BusinessCard{Version: dynamic.CardVersion, Features: routes.ResumableFeatures(job, site(c.routes))}
		text, err := card.AppendText(nil)
		if err != nil {
			t.Fatal(err)
		}
		read, err := dynamic.ParseBusinessCard(text)
		if err != nil {
			t.Fatal(err)
		}
		for client, want := range c.want {
			if got := rules.HasFeature(&read, resumable.Feature, wire.ClientRank(client)); got != want {
				t.Errorf("%v: to client %d: %t, want %t; the card is %s", c.routes, client, got, want, text)
			}
		}
	}
}
