package node

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/connmgr/direct"
	"github.com/openimpi/impi/internal/links"
)

func init() {
	all := func(w *mpi.Comm) { // what can be compressed, what cannot, long and short, in pieces and together
		exchangeEven(w, 3<<20)
		exchange(w, 2<<20)
		chat(w, 200)
		exchangeColumns(w)
		exchangeEven(w, 5000)
		ring(w)
		sumUp(w)
	}
	programs["packs"] = func() { w := initialize(); all(w); finalize() }
	programs["packs and stays"] = func() { w := initialize(); all(w); everybody(w); hang() }
}

// exchangeEven is exchange with data that can be compressed.
func exchangeEven(w *mpi.Comm, size int) {
	me, n := w.Rank(), w.Size()
	of := func(rank int) []byte {
		return bytes.Repeat([]byte(fmt.Sprintf("of rank %4d ", rank)), size/13+1)[:size]
	}
	in := make([]byte, size)
	s, err := mpi.Isend(w, of(me), (me+1)%n, 6)
	check(err)
	st, err := mpi.Recv(w, in, (me+n-1)%n, 6)
	check(err)
	_, err = s.Wait()
	check(err)
	if !bytes.Equal(in, of((me+n-1)%n)) || st.Bytes() != int64(size) {
		fmt.Println("other even bytes have come, or not as many:", st.Bytes())
		os.Exit(7)
	}
}

// exchangeColumns sends every second number of an array by a derived type.
func exchangeColumns(w *mpi.Comm) {
	const numbers = 40_000
	column, err := mpi.TypeVector(numbers/2, 1, 2, mpi.TypeOf[float64]())
	check(err)
	check(column.Commit())
	me, n := w.Rank(), w.Size()
	out, in := make([]float64, numbers), make([]float64, numbers)
	for i := range out {
		out[i] = float64(me*numbers + i/100)
	}
	s, err := w.Isend(mpi.Typed(out, 1, column), (me+1)%n, 8)
	check(err)
	_, err = w.Recv(mpi.Typed(in, 1, column), (me+n-1)%n, 8)
	check(err)
	_, err = s.Wait()
	check(err)
	for i := range in {
		want := float64(((me+n-1)%n)*numbers + i/100)
		if i%2 == 1 {
			want = 0
		}
		if in[i] != want {
			fmt.Println("number", i, "is", in[i], "and not", want)
			os.Exit(7)
		}
	}
}

// sumUp adds long vectors of all procs.
func sumUp(w *mpi.Comm) {
	in, out := make([]float64, 50_000), make([]float64, 50_000)
	for i := range in {
		in[i] = float64(i / 1000)
	}
	check(mpi.Allreduce(w, in, out, mpi.Sum))
	for i := range out {
		if out[i] != float64(w.Size()*(i/1000)) {
			fmt.Println("sum", i, "is", out[i])
			os.Exit(7)
		}
	}
}

// packing is a route whose links are compressed.
func packing(r config.Route) config.Route {
	r.Compress = &config.Compress{Algorithm: config.Zstd, Level: 1, Min: 1024}
	return r
}

// TestCompressedLinks: whatever links and channels are made of, what comes is what was sent.
func TestCompressedLinks(t *testing.T) {
	for name, c := range map[string]struct {
		route  config.Route
		secure string
	}{
		"tcp":                     {config.Route{Prefer: []string{"tcp"}, Direct: true}, ""},
		"tcp that resumes":        {config.Route{Prefer: []string{"tcp"}, Direct: true, Resume: true}, ""},
		"a ring":                  {config.Route{Prefer: []string{"tcp"}, Direct: true, DataPlane: []string{"ring"}}, ""},
		"a stream that resumes":   {config.Route{Prefer: []string{"tcp"}, Direct: true, DataPlane: []string{"stream"}, Resume: true}, ""},
		"quic":                    {config.Route{Prefer: []string{"quic"}, Direct: true}, "quic"},
		"tls that resumes":        {config.Route{Prefer: []string{"tcp"}, Direct: true, Resume: true}, "tcp"},
		"channels":                {config.Route{Prefer: []string{"tcp"}}, ""},
		"channels of quic resume": {config.Route{Prefer: []string{"quic"}, Resume: true}, "quic"},
	} {
		t.Run(name, func(t *testing.T) {
			job := route(testJob("packs", 2, 2), packing(c.route))
			if c.secure != "" {
				secured(t, job, c.secure)
			}
			wantNone(t, start(t, job))
		})
	}
}

// TestCompressedStripes: several connections of a link carry one compressed stream.
func TestCompressedStripes(t *testing.T) {
	job := secured(t, route(testJob("packs", 1, 1), packing(config.Route{Prefer: []string{"quic"}, Direct: true, Resume: true})), "quic")
	for i := range job.Sites {
		x := &job.Sites[i].Transports[len(job.Sites[i].Transports)-1]
		x.Settings = append(x.Settings, config.Setting{Name: "streams", Value: 4.0})
	}
	wantNone(t, start(t, job))
}

// TestCompressedLinksThatAreCut: links and channels are resumed in the midst of what is compressed.
func TestCompressedLinksThatAreCut(t *testing.T) {
	job := cutJob("packs", 300e3, 1, 1)
	channels := channelJob("packs", 300e3, 1, 1)
	for _, j := range []*config.Job{job, channels} {
		for i := range j.Sites {
			j.Sites[i].Routes[0] = packing(j.Sites[i].Routes[0])
		}
	}
	all := start(t, job)
	wantNone(t, all)
	if got := resumes(all, direct.Pair{Local: 0, Peer: 1}, direct.Pair{Local: 1, Peer: 0}); got < 6 {
		t.Errorf("%d resumes on both sides: nothing was shown", got)
	}
	all = start(t, channels)
	wantNone(t, all)
	if got := strings.Count(all[0].err.String()+all[1].err.String(), "a channel is resumed"); got < 3 {
		t.Errorf("%d resumes of channels on both sides: nothing was shown", got)
	}
}

// TestWhatIsCompressed: both ends count the same bytes, and people are told what is saved; where
// one site alone wants it nothing is compressed, and that is said, too.
func TestWhatIsCompressed(t *testing.T) {
	for name, c := range map[string]struct {
		direct, one bool
		want        []string
		not         string
	}{
		"links":        {true, false, []string{"compressed by rank 0: zstd, level 1, from 1024 bytes; ", " to 1, ", " saved)", "compress zstd, level 1, from 1024 bytes"}, "not compressed"},
		"channels":     {false, false, []string{"compressed by host 0: ", " saved)"}, "nothing yet"},
		"one end":      {true, true, []string{"not compressed by rank 0: the route back of site beta (client 1) has no compress block"}, " saved)"},
		"channels one": {false, true, []string{"compress zstd, level 1, from 1024 bytes"}, " saved)"},
	} {
		t.Run(name, func(t *testing.T) {
			job := route(testJob("packs and stays", 1, 1), packing(config.Route{Prefer: []string{"tcp"}, Direct: c.direct}))
			if c.one {
				job.Sites[1].Routes = []config.Route{{Site: "*", Prefer: []string{"tcp"}, Direct: c.direct}}
			}
			all := start(t, job)
			_, j := survey(t, all, links.Request{})
			var text strings.Builder
			j.Explain(&text, 0, 1)
			j.ExplainHosts(&text, 0, 1)
			for _, want := range c.want {
				if !strings.Contains(text.String(), want) {
					t.Errorf("no %q", want)
				}
			}
			if strings.Contains(text.String(), c.not) {
				t.Errorf("it says %q", c.not)
			}
			k := links.CompressedBytesOf(&j)
			switch {
			case c.one && k != nil:
				t.Errorf("%+v", *k)
			case !c.one && (k == nil || k.Sent < 5<<20 || k.SentCompressed > k.Sent*8/10 || k.SentCompressed != k.ReceivedCompressed || k.Sent != k.Received):
				t.Errorf("%+v", k)
			}
			if t.Failed() {
				t.Log(text.String())
			}
			nothingUnderWay(t, all)
		})
	}
}
