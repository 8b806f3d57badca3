package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/peers"
)

// The peers of a site of ours, and what is done to them.
const (
	Ours       = "impi"
	LAMFirst   = "LAM/MPI as client 0"
	LAMLast    = "LAM/MPI as client 1"
	PeerKilled = "peer killed"
	OursKilled = "ours killed"
)

// The axes of jobs with peers. internal/peers describes what the programs do, under the
// name of the command exchange; talk runs until a party is killed.
var (
	Peers        = []string{Ours, LAMFirst, LAMLast}
	PeerFaults   = []string{NoFault, PeerKilled, OursKilled}
	PeerPrograms = []string{"ring", "pingpong", "flood", "wildcards", "pairs", "collectives", "datatypes", "talk"}
)

// peerTests are what procs do, by the name of the program. Every job has two procs on each site. A
// is a rank of the peer, B one of ours. Packets hold 65,536 bytes, LAM's maximum, which is the
// smaller one.
var peerTests = map[string]string{
	"ring":        "ring 1000",
	"pingpong":    "pingpong A B 65536 16777216 + pingpong B A 65536 16777216",
	"flood":       "flood A B 2000 + flood B A 2000",
	"wildcards":   "wild 4 0 1 2 3",
	"pairs":       "pairs 30 65536",
	"collectives": "barrier 50 + bcast 65536 16384 4 0 1 2 3 + reduce 4 0 1 2 3 + allreduce 8192",
	"datatypes":   "types A B + types B A + derived A B 65536 + derived B A 65536",
	"talk":        "pump A B",
}

// PeerCell is one job of a site of ours and one of a peer.
type PeerCell struct {
	Peer    string `json:"peer"`
	Program string `json:"program"`
	Fault   string `json:"fault"`
}

func (c PeerCell) String() string { return strings.Join([]string{c.Peer, c.Program, c.Fault}, "/") }

// PeerResult is a cell with a peer, and its verdict.
type PeerResult struct {
	PeerCell
	Verdict Verdict       `json:"verdict"`
	Reason  string        `json:"reason,omitempty"`
	Took    time.Duration `json:"took_ns"`
}

// SelectPeers returns all combinations of peers, faults and programs, those included that RunPeer
// finds to be Unsupported.
func SelectPeers() (cells []PeerCell) {
	for _, peer := range Peers {
		for _, fault := range PeerFaults {
			for _, program := range PeerPrograms {
				cells = append(cells, PeerCell{peer, program, fault})
			}
		}
	}
	return cells
}

func (c PeerCell) unsupported(missing error) string {
	switch {
	case c.Peer == Ours && c.Fault != NoFault:
		return "one node runs both sites; the cells above have faults between sites of ours"
	case c.Fault != NoFault && c.Program != "talk":
		return "talk is what is killed in the middle"
	case c.Fault == NoFault && c.Program == "talk":
		return "talk does not end"
	case c.Peer != Ours && missing != nil:
		return missing.Error()
	}
	return ""
}

// RunPeer runs the job of one cell, and judges it. It is Unsupported without the peer.
func (r *Runner) RunPeer(ctx context.Context, c PeerCell) PeerResult {
	res := PeerResult{PeerCell: c, Verdict: Unsupported}
	in, missing := peers.Find()
	if res.Reason = c.unsupported(missing); res.Reason != "" {
		return res
	}
	begun := time.Now()
	err := r.runPeer(ctx, c, in)
	res.Took = time.Since(begun)
	if res.Verdict = OK; err != nil {
		res.Verdict, res.Reason = Failed, err.Error()
	}
	return res
}

func (r *Runner) runPeer(ctx context.Context, c PeerCell, in *peers.Install) error {
	// LAM's user must be able to enter the folder.
	dir, err := os.MkdirTemp("", "impi-matrix-peer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Limit)
	defer cancel()
	j, err := r.peerJob(ctx, c, in, dir)
	if err != nil {
		return err
	}
	job, err := j.Start(ctx)
	if err != nil {
		return err
	}
	defer job.KillAll()
	struck := c.strike(ctx, job)
	ended, left, err := job.Wait(ctx)
	if struck != nil {
		return struck
	}
	return errors.Join(err, c.prove(ended, left))
}

func (r *Runner) peerJob(ctx context.Context, c PeerCell, in *peers.Install, dir string) (*peers.Job, error) {
	program := filepath.Join(dir, "exchange-lam")
	if c.Peer != Ours {
		if err := in.Compile(ctx, program, filepath.Join(r.Repository, "internal/peers/testdata/exchange.c")); err != nil {
			return nil, err
		}
	}
	a, b := "2", "1"
	if c.Peer == LAMFirst {
		a, b = b, a
	}
	args := strings.Fields(strings.NewReplacer("A", a, "B", b).Replace(peerTests[c.Program]))
	return &peers.Job{
		Install: in, Bin: r.Bin, Dir: dir,
		Sites: []peers.Site{{LAM: c.Peer == LAMFirst, Procs: 2}, {LAM: c.Peer == LAMLast, Procs: 2}},
		Ours:  append([]string{filepath.Join(r.Bin, "exchange")}, args...),
		LAMs:  append([]string{program}, args...),
	}, nil
}

func (c PeerCell) client() int { return slices.Index([]string{LAMFirst, LAMLast}, c.Peer) }

// strike causes the fault once both sides exchange messages. LAM does not end by itself
// when its peer has gone, so it is ended as soon as it has reported that.
func (c PeerCell) strike(ctx context.Context, job *peers.Running) error {
	if c.Fault == NoFault {
		return nil
	}
	lam := peers.Client(c.client())
	for _, party := range []string{peers.Node, lam} {
		if err := job.Output(party).Await(ctx, " runs\n"); err != nil {
			return err
		}
	}
	if c.Fault == OursKilled {
		if err := job.KillOurs(); err != nil {
			return err
		}
		if err := job.Output(lam).Await(ctx, "Closing connection"); err != nil {
			return err
		}
	}
	return job.Universe(c.client()).Kill()
}

func (c PeerCell) prove(ended map[string]peers.Ended, left []string) error {
	var errs []error
	for party, e := range ended {
		switch {
		case c.Fault == NoFault && e.Err != nil:
			errs = append(errs, fmt.Errorf("%s: %w\n%s", party, e.Err, e.Text))
		case c.Fault != NoFault && e.Err == nil:
			errs = append(errs, fmt.Errorf("%s ended as if nothing had been: %s", party, e.Text))
		}
	}
	if c.Fault == NoFault {
		if len(left) > 0 {
			errs = append(errs, fmt.Errorf("left over: %q", left))
		}
		n := 0
		for _, e := range ended {
			n += strings.Count(e.Text, ": finalized\n")
		}
		if n != 4 {
			errs = append(errs, fmt.Errorf("%d of 4 ranks finalized", n))
		}
	}
	if node := ended[peers.Node]; c.Fault == PeerKilled && !strings.Contains(node.Text, fmt.Sprintf("(client %d)", c.client())) {
		errs = append(errs, fmt.Errorf("our node does not say who is gone: %s", node.Text))
	}
	return errors.Join(errs...)
}

// PeerTable writes results of jobs with peers as Markdown.
func PeerTable(w io.Writer, results []PeerResult) {
	tableHead(w, "| peer | fault |", PeerPrograms)
	var notes []string
	for _, peer := range Peers {
		for _, fault := range PeerFaults {
			fmt.Fprintf(w, "| %s | %s |", peer, fault)
			tableCells(w, PeerPrograms, &notes, func(program string) (v Verdict, reason, name string, ran bool) {
				i := slices.IndexFunc(results, func(r PeerResult) bool { return r.PeerCell == PeerCell{peer, program, fault} })
				if i < 0 {
					return v, "", "", false
				}
				return results[i].Verdict, results[i].Reason, results[i].String(), true
			})
		}
	}
	tableNotes(w, notes)
}
