package mpi

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/allocs"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// still is a machine on which nothing ever happens, its poll set and timer.
type still struct{}

func (still) NewSet() (machine.Set, error)                  { return still{}, nil }
func (still) Now() time.Time                                { return time.Time{} }
func (still) AfterFunc(time.Duration, func()) machine.Timer { return still{} }
func (still) Exit(int, string)                              { panic("a proc ends") }
func (still) Add(int, uint32, link.Interest) error          { return nil }
func (still) Modify(int, uint32, link.Interest) error       { return nil }
func (still) Remove(int) error                              { return nil }
func (still) Wait(time.Duration) ([]poll.Event, error)      { return nil, nil }
func (still) Wake()                                         {}
func (still) Clear()                                        {}
func (still) Close() error                                  { return nil }
func (still) Reset(time.Duration) bool                      { return false }
func (still) Stop() bool                                    { return true }

// sink is a link that takes everything and brings nothing.
type sink struct{}

func (sink) Send(batch [][]byte) (int, error) { return link.Len(batch), nil }
func (sink) Recv([][]byte) (int, error)       { return 0, nil }
func (sink) Handle() int                      { return 1 }
func (sink) Arm(link.Interest) bool           { return false }
func (sink) Limits() link.Limits              { return link.Limits{} }
func (sink) CloseSend() error                 { return nil }
func (sink) Close() error                     { return nil }

// wide is a job of 32 clients with as many procs each, as client 0 sees it, to which the others are
// another MPI.
func wide(each int) *wireup.Job {
	const clients = wire.MaxClients
	j := &wireup.Job{DataLen: 1 << 18, AckMark: 32, HiWater: 128, TagUB: 1<<31 - 1, XSize: 1024, MaxLinear: 4, Spin: "0"}
	for r := range clients * each {
		client := r / each
		p := wireup.Proc{Host: make([]byte, 16), PID: int64(r), Client: wire.ClientRank(client), Path: wireup.PathChannel}
		if client > 0 {
			p.Data, p.Foreign = datatype.External32.String(), true
		}
		j.Procs = append(j.Procs, p)
	}
	return j
}

func rosterOf(tb testing.TB, j *wireup.Job, like *Roster) *Roster {
	tb.Helper()
	r, err := NewRoster(j.Procs, like)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// busyRank joins as one of the job's ranks and gets as far as a rank gets that
// is alone: it makes a communicator, plans collectives and begins a receive and
// the sends of a tree.
func busyRank(tb testing.TB, roster *Roster, job wireup.Job, rank int) *Proc {
	job.Rank = wire.WorldRank(rank)
	x, err := roster.Join(&job, sink{}, still{}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	p := x.p
	d, err := outComm(p.Comms.NewComm(comm.Spec{Context: 4, Group: p.Comms.World.Comm.Group(), Masters: p.Comms.World.Masters()}))
	if err != nil {
		tb.Fatal(err)
	}
	value := make([]byte, 8)
	for _, c := range []*Comm{(*Comm)(p.Comms.World), d} {
		if construct.AllRunImpi(c.in()) {
			tb.Fatal("all clients run this library")
		}
		var s coll.Schedule
		planner := collective.CollectivePlanner(c.in())
		for _, err := range []error{
			planner.Barrier(&s), planner.Bcast(&s, value, datatype.Byte, 0),
			planner.Allreduce(&s, nil, value, datatype.Uint8, datatype.Max),
		} {
			if err != nil {
				tb.Fatal(err)
			}
		}
		runtime.KeepAlive(&s)
	}
	p.Lock()
	defer p.Unlock()
	p.Eng.Recv(message.Envelope{Rank: 1}, 1, nil)
	for k := 1; k <= 32; k *= 2 {
		peer := message.Peer((rank + k) % len(job.Procs))
		p.Isend(peer, (*Comm)(p.Comms.World).in().Envelope(0), message.Standard, &proc.Payload{Mem: value, Count: int64(len(value)), Dtype: uint64(datatype.Byte)}, true)
	}
	return x
}

// A rank costs the same in a job of 96 ranks and in one of 100,000, apart from
// what all ranks of a program share and from the depth of trees.
func TestRankMemoryDoesNotGrowWithTheJob(t *testing.T) {
	const ranks = 40
	cost := func(each int) int {
		job := wide(each)
		roster := rosterOf(t, job, nil)
		keep := make([]*Proc, ranks)
		n := allocs.BytesExact(func() {
			for i := range keep {
				keep[i] = busyRank(t, roster, *job, each+i)
			}
		})
		runtime.KeepAlive(keep)
		return int(n) / ranks
	}
	small, large := cost(3), cost(3125)
	t.Logf("%d bytes in a job of 96 ranks, %d in one of 100,000", small, large)
	if large > small+4<<10 {
		t.Errorf("%d bytes more in the large job", large-small)
	}
	if large > 24<<10 {
		t.Errorf("%d bytes for a rank of 100,000", large)
	}
}

// A proc of another library is foreign in whatever form its data is, and if all of
// those have one form, streams of items of several kinds have it as well.
func TestForeignProcs(t *testing.T) {
	for _, c := range []struct {
		name           string
		first, second  string // representations of clients 1 and 2
		alien1, alien2 bool
		foreign        []bool
		common         datatype.Representation
	}{
		{"all ours", "native-le", "native-le", false, false, []bool{false, false, false}, datatype.NativeLE},
		{"external32 among ours", "native-le", "external32", false, false, []bool{false, false, false}, datatype.NativeLE},
		{"external32", "native-le", "external32", false, true, []bool{false, false, true}, datatype.External32},
		{"one", "native-le", "native-x86", false, true, []bool{false, false, true}, datatype.NativeX86},
		{"one and a site of ours", "external32", "native-x86", false, true, []bool{false, false, true}, datatype.NativeX86},
		{"two alike", "native-x86", "native-x86", true, true, []bool{false, true, true}, datatype.NativeX86},
		{"two that differ", "native-be", "native-x86", true, true, []bool{false, true, true}, datatype.External32},
	} {
		job := wide(3)
		job.Procs = job.Procs[:9]
		for r := range job.Procs {
			switch p := &job.Procs[r]; p.Client {
			case 0:
				p.Data = datatype.HostOrder().String()
			case 1:
				p.Data, p.Foreign = c.first, c.alien1
			default:
				p.Data, p.Foreign = c.second, c.alien2
			}
		}
		r := rosterOf(t, job, nil)
		if !slices.Equal(r.in().Foreign(), c.foreign) || r.in().Common() != c.common {
			t.Errorf("%s: foreign clients %v, common form %v; want %v and %v", c.name, r.in().Foreign(), r.in().Common(), c.foreign, c.common)
		}
	}
}

// Of what clients see of a job, the second costs a fraction of the first.
func TestClientsShareWhatIsTheSame(t *testing.T) {
	job := wide(3125)
	first := rosterOf(t, job, nil)
	for r := range job.Procs {
		job.Procs[r].Data = datatype.NativeLE.String()
	}
	var second *Roster
	n := allocs.BytesExact(func() { second = rosterOf(t, job, first) })
	if second.in().Directory() != first.in().Directory() || second.in().Masters() != first.in().Masters() || n > 200_000 {
		t.Errorf("%d bytes for the second of two rosters", n)
	}
	if second.in().DataOf(99_999) != datatype.NativeLE || first.in().DataOf(99_999) != datatype.External32 {
		t.Errorf("representations %v and %v", first.in().DataOf(99_999), second.in().DataOf(99_999))
	}
	for name, change := range map[string]func(p *wireup.Proc){
		"another pid":    func(p *wireup.Proc) { p.PID = -1 },
		"another host":   func(p *wireup.Proc) { p.Host = append([]byte{1}, p.Host[1:]...) },
		"another client": func(p *wireup.Proc) { p.Client = 0 },
	} {
		other := wide(3)
		first := rosterOf(t, other, nil)
		change(&other.Procs[95])
		if r := rosterOf(t, other, first); r.in().Directory() == first.in().Directory() || r.in().Clients() == first.in().Clients() {
			t.Errorf("%s: shared nevertheless", name)
		}
	}
	if r := rosterOf(t, wide(2), first); r.in().Directory().Len() != 64 {
		t.Errorf("shared with a larger job: %d ranks", r.in().Directory().Len())
	}
}

func TestRosterRefuses(t *testing.T) {
	for want, change := range map[string]func(j *wireup.Job){
		"rank 95: datatype: not a representation": func(j *wireup.Job) { j.Procs[95].Data = "ebcdic" },
		"rank 1: the node and this program":       func(j *wireup.Job) { j.Procs[1].Client = 32 },
		"rank 2: the node and this program":       func(j *wireup.Job) { j.Procs[2].Client = -1 },
		"ranks 1 and 2 are both proc none/2":      func(j *wireup.Job) { j.Procs[1].PID = 2 },
	} {
		j := wide(3)
		change(j)
		if _, err := NewRoster(j.Procs, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if _, err := rosterOf(t, wide(3), nil).Join(wide(2), sink{}, still{}, nil); !errors.Is(err, ErrNode) {
		t.Errorf("a roster of another job: %v", err)
	}
}

// What members have to do differently if some of them run another library
// depends on the clients that the communicator spans, not on all of the job.
func TestOursAsksTheClientsOfTheCommunicator(t *testing.T) {
	job := wide(3)
	p := busyRank(t, rosterOf(t, job, nil), *job, 1).p
	for _, c := range []struct {
		n    int
		ours bool
	}{{3, true}, {4, false}, {96, false}} {
		d, err := p.Comms.NewComm(comm.Spec{Context: 8, Group: comm.NewGroup(0, c.n)})
		if err != nil {
			t.Fatal(err)
		}
		if construct.AllRunImpi(d) != c.ours {
			t.Errorf("ranks 0 to %d: %v", c.n-1, construct.AllRunImpi(d))
		}
	}
}

func BenchmarkNewRank(b *testing.B) {
	job := wide(3125)
	roster := rosterOf(b, job, nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		busyRank(b, roster, *job, i%len(job.Procs))
	}
}

func BenchmarkRoster(b *testing.B) {
	job := wide(3125)
	for b.Loop() {
		rosterOf(b, job, nil)
	}
}
