package scale

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openimpi/impi/internal/skips"
)

// heapNoise is the part by which a measured size may differ from the one that a page has, beside 8
// KiB: the runtime rounds sizes up, and has its own.
const heapNoise = 0.05

// published is a row of the table of docs/simulator.md whose heading has two words, by the number
// of its hosts.
func published(t *testing.T, heading string) map[int][]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), heading)
	if !ok {
		t.Fatalf("docs/simulator.md has no table with %q", heading)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[int][]string{}
	for line := range strings.Lines(table) {
		var cells []string
		for _, c := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(c))
		}
		if n, err := strconv.Atoi(strings.ReplaceAll(cells[0], ",", "")); err == nil {
			rows[n] = cells[1:]
		}
	}
	return rows
}

// size reads a cell: its value, and by how much it is rounded.
func size(t *testing.T, cell string) (value, rounded float64) {
	t.Helper()
	number, unit, _ := strings.Cut(cell, " ")
	value, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	factor, ok := map[string]float64{"": 1, "KB": 1e3, "MB": 1e6}[unit]
	if err != nil || !ok {
		t.Fatalf("%q is no size", cell)
	}
	rounded = 0.5
	if _, digits, some := strings.Cut(number, "."); some {
		rounded /= math.Pow10(len(digits))
	}
	if unit == "" {
		rounded = 0
	}
	return value * factor, rounded * factor
}

// TestPublishedHosts: the table of docs/simulator.md on sites of many hosts is what comes out. The
// times are those of the simulation.
func TestPublishedHosts(t *testing.T) {
	skips.Short(t)
	rows := published(t, "| hosts of a site | deep |")
	for _, hosts := range []int{1, 32, 256, 1024} {
		r, err := Hosts(4, hosts, 128)
		if err != nil {
			t.Fatal(err)
		}
		row := rows[hosts]
		if len(row) != 11 {
			t.Fatalf("%d hosts have the row %q", hosts, row)
		}
		for i, got := range []int{r.Depth, r.Messages, r.HeadMessages, r.HeadIn, r.Job, r.Server} {
			if want, rounded := size(t, row[i]); math.Abs(float64(got)-want) > rounded {
				t.Errorf("%d hosts, column %d: %d, and docs/simulator.md has %s", hosts, i+2, got, row[i])
			}
		}
		for i, got := range []time.Duration{r.Gathered, r.Started} {
			if text := fmt.Sprintf("%d ms", got.Round(time.Millisecond).Milliseconds()); text != row[6+i] {
				t.Errorf("%d hosts, column %d: %s, and docs/simulator.md has %s", hosts, 8+i, text, row[6+i])
			}
		}
		if fmt.Sprint(r.Channels) != row[8] {
			t.Errorf("%d hosts: %d channels, and docs/simulator.md has %s", hosts, r.Channels, row[8])
		}
		for i, got := range []int{r.JobHeap, r.AgentHeap} {
			if want, rounded := size(t, row[9+i]); math.Abs(float64(got)-want) > rounded+want*heapNoise+8192 {
				t.Errorf("%d hosts, column %d: %d, and docs/simulator.md has %s", hosts, 11+i, got, row[9+i])
			}
		}
	}
}

// TestPublishedShares: a proc's share in the page is a 128th of what its host keeps by the same
// page, and what it has itself. core/mpi has the test of the figures that are not in the other
// table.
func TestPublishedShares(t *testing.T) {
	hosts, shares := published(t, "| hosts of a site | deep |"), published(t, "| hosts of a site | memfd of a host |")
	for n, row := range shares {
		var of [4]float64
		for i, cell := range []string{hosts[n][9], hosts[n][10], row[0], hosts[n][4]} {
			of[i], _ = size(t, cell)
		}
		own, _ := size(t, row[1])
		kept := (of[0]+of[1]+of[2])/128 + own
		for i, want := range []float64{kept, kept + of[3]/128} {
			if got, rounded := size(t, row[2+i]); math.Abs(got-want) > rounded+want*heapNoise {
				t.Errorf("%d hosts: %s, and by the other figures it is %.1f KB", n, row[2+i], want/1e3)
			}
		}
	}
	if len(shares) != 4 {
		t.Errorf("%d rows", len(shares))
	}
}
