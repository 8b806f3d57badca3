package cluster

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/internal/rpc/proto"
)

func testJob(hosts, procs int) *startup.Job {
	j := &startup.Job{
		Self: 1, DataLen: 4096, TagUB: 1<<31 - 1, XSize: 7, MaxLinear: 8, AckMark: 9, HiWater: 10, AllOwn: true, Server: "10.0.0.1:7800",
		Token: [startup.TokenSize]byte{1, 2}, Secret: [startup.TokenSize]byte{3},
	}
	for c := range 3 {
		j.Clients = append(j.Clients, startup.ClientInfo{
			Rank: wire.ClientRank(c), Versions: []wire.Version{{Minor: 1}, {Major: 9, Minor: uint32(c)}}, Own: true,
			NHosts: hosts, NProcs: hosts * procs, FirstHost: wire.HostRank(c * hosts), FirstProc: wire.WorldRank(c * hosts * procs),
		})
		for h := range hosts {
			id := wire.HostID{15: byte(h), 14: byte(c)}
			j.Hosts = append(j.Hosts, startup.HostInfo{Client: wire.ClientRank(c), Address: id, Port: 7000 + h, NProcs: procs, FirstProc: wire.WorldRank(j.Procs.Len())})
			for p := range procs {
				x := startup.ProcInfo{ID: wire.Proc{Host: id, PID: int64(100 + p)}, Client: wire.ClientRank(c), Host: wire.HostRank(c*hosts + h), Card: []byte{byte(c), byte(h)}}
				if h == 1 && p == 1 {
					x.Card = []byte{}
				}
				if c == 2 { // not as ours are
					x.ID.Host[0], x.ID.PID = 7, int64(100+3*p+p/2)
				}
				j.Procs.Add(x)
			}
		}
	}
	return j
}

func TestJobs(t *testing.T) {
	for _, want := range []*startup.Job{testJob(1, 1), testJob(3, 2), testJob(2, 130)} {
		b, err := EncodeJob(want, [startup.TokenSize]byte{5})
		if err != nil {
			t.Fatal(err)
		}
		got, site, err := DecodeJob(b)
		if err != nil || site[0] != 5 {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nis not\n%+v", got, want)
		}
	}
}

// TestJobsAreSmall: what a host gets grows by hosts, and for procs by a card's number where they
// have several, and by a pid where these are not consecutive.
func TestJobsAreSmall(t *testing.T) {
	few, _ := EncodeJob(testJob(64, 2), [startup.TokenSize]byte{})
	many, _ := EncodeJob(testJob(64, 128), [startup.TokenSize]byte{})
	if perProc := float64(len(many)-len(few)) / (3 * 64 * 126); perProc > 2.5 {
		t.Errorf("%.1f bytes for each proc", perProc)
	}
}

// TestTooManyProcs: a few bytes cannot make a host list more procs than there can be.
func TestTooManyProcs(t *testing.T) {
	for name, procs := range map[string][]int32{"at once": {startup.MaxProcs + 1}, "together": {startup.MaxProcs/2 + 1, startup.MaxProcs / 2}, "negative": {-1}, "without numbers": {0, 1}} {
		p := &proto.Job{Client: []*proto.JobClient{{}}, Token: make([]byte, startup.TokenSize), Secret: make([]byte, startup.TokenSize), Site: make([]byte, startup.TokenSize)}
		for _, n := range procs {
			h := &proto.JobHost{Address: make([]byte, 16), Procs: n}
			if n > 1 {
				h.Pid = []int64{1}
			}
			p.Host = append(p.Host, h)
		}
		b, err := pb.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := DecodeJob(b); !errors.Is(err, ErrJob) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWrongServer: the place where the sites have met is an address with a port.
func TestWrongServer(t *testing.T) {
	j := testJob(2, 1)
	j.Server = "everywhere"
	b, err := EncodeJob(j, [startup.TokenSize]byte{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := DecodeJob(b); !errors.Is(err, ErrJob) || !strings.Contains(err.Error(), `the server "everywhere"`) {
		t.Error(err)
	}
}

func TestParts(t *testing.T) {
	want := startup.HostConfig{Address: wire.HostID{15: 7}, Port: 7801}
	for i := range 3 {
		want.Procs = append(want.Procs, startup.ProcConfig{ID: wire.Proc{Host: want.Address, PID: int64(i*i + 100)}, Card: []byte("card")})
	}
	b, err := EncodePart(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodePart(b, 3)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := DecodePart(b, 4); !errors.Is(err, ErrJob) {
		t.Errorf("a host with too few procs: %v", err)
	}
	want.Procs[2].ID.Host[0]++
	if _, err := EncodePart(want); !errors.Is(err, ErrJob) {
		t.Errorf("a proc of another machine: %v", err)
	}
}

// FuzzDecode: whatever a host sends, it is a job or a part of one, or refused.
func FuzzDecode(f *testing.F) {
	for _, j := range []*startup.Job{testJob(1, 1), testJob(3, 2)} {
		b, err := EncodeJob(j, [startup.TokenSize]byte{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	b, _ := EncodePart(startup.HostConfig{Port: 1, Procs: []startup.ProcConfig{{Card: []byte("card")}}})
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if j, site, err := DecodeJob(b); err == nil {
			if int(j.Self) >= len(j.Clients) {
				t.Errorf("self is %d of %d", j.Self, len(j.Clients))
			}
			again, err := EncodeJob(j, site)
			if err != nil {
				t.Fatalf("it is decoded, but: %v", err)
			}
			if back, _, err := DecodeJob(again); err != nil || !reflect.DeepEqual(back, j) {
				t.Errorf("%+v\n%+v\n%v", j, back, err)
			}
		}
		_, _ = DecodePart(b, 1)
	})
}
