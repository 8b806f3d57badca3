package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/matrix"
	"github.com/openimpi/impi/internal/provenance"
)

const peersText = matrix.PeersHeading + `
Made by ` + "`make matrix`, after `make peers`" + `, on %s: jobs of 2+2 procs, of which a site is LAM/MPI 7.1.4, at our server. %d cells ran and
are ok, %d failed, %d cannot be run for the reasons given. All ranks of both sides must check what they get
and end well, and nothing may be left over; a side that is killed must leave the other with a message
that says who is gone. [peers.md](peers.md) has what LAM is not asked, and why.

`

func peersOf(file string) string {
	b, _ := os.ReadFile(file)
	if i := strings.Index(string(b), matrix.PeersHeading); i >= 0 {
		return string(b[i:])
	}
	return ""
}

func runPeers(ctx context.Context, bin string, only *regexp.Regexp, limit time.Duration, out string, asJSON bool) int {
	results, err := sweepPeers(ctx, bin, only, limit)
	if err == nil {
		err = reportPeers(results, out, asJSON)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		return 1
	}
	for _, r := range results {
		if r.Verdict == matrix.Failed {
			return 1
		}
	}
	return 0
}

func sweepPeers(ctx context.Context, bin string, only *regexp.Regexp, limit time.Duration) (results []matrix.PeerResult, err error) {
	r, err := newRunner(bin, limit)
	if err != nil {
		return nil, err
	}
	for _, c := range matrix.SelectPeers() {
		if !only.MatchString(c.String()) {
			continue
		}
		res := r.RunPeer(ctx, c)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if res.Verdict != matrix.Unsupported {
			fmt.Fprintf(os.Stderr, "%-50s %s %v %s\n", c, res.Verdict, res.Took.Round(10*time.Millisecond), res.Reason)
		}
		results = append(results, res)
	}
	return results, nil
}

func reportPeers(results []matrix.PeerResult, out string, asJSON bool) error {
	if asJSON {
		return cmdline.WriteJSON(os.Stdout, results)
	}
	now, err := provenance.Now(".")
	if err != nil {
		return err
	}
	counts := make(map[matrix.Verdict]int)
	for _, r := range results {
		counts[r.Verdict]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, peersText, provenance.Dates([]provenance.Stamp{now}), counts[matrix.OK], counts[matrix.Failed], counts[matrix.Unsupported])
	matrix.PeerTable(&b, results)
	if out == "" {
		_, err := io.WriteString(os.Stdout, b.String())
		return err
	}
	before, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	whole, _, _ := strings.Cut(string(before), matrix.PeersHeading)
	return os.WriteFile(out, []byte(whole+b.String()), 0o644)
}
