package status

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openimpi/impi/internal/links"
)

// counted is a proc that has sent so many messages.
func counted(rank int, messages uint64, slept time.Duration) links.Proc {
	return links.Proc{Rank: rank, PID: 100 + rank, State: links.ProcRunning, Wait: links.Waiting{State: "computing"},
		Counts: &links.Counts{Messages: messages, Sent: messages * 100000, Received: 5, Slept: slept}}
}

// press has a screen take keys, and reports whether one of them ends it.
func press(s *screen, keys ...tea.KeyMsg) (ended bool) {
	for _, k := range keys {
		if _, cmd := s.Update(k); cmd != nil {
			ended = true
		}
	}
	return ended
}

func typed(text string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text)} }

// ranks are those of the rows on the screen, in their order.
func shownRanks(s *screen) (list string) {
	for _, line := range strings.Split(s.View(), "\n")[3:] {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "alpha" {
			list += f[0] + " "
		}
	}
	return strings.TrimSpace(list)
}

func TestTop(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	first := job(counted(0, 100, 0), counted(1, 100, 0), waits(2, "MPI_Recv", 3*time.Second, from(0)))
	second := job(counted(0, 110, time.Second), counted(1, 2100, 0), waits(2, "MPI_Recv", 5*time.Second, from(0)))
	s := newScreen(nil, time.Second)
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 9})
	s.Update(seen{&Report{Jobs: []Job{{Job: *first}}}, at})
	if v := s.View(); strings.Contains(v, " 5 ") || !strings.HasPrefix(v, "12:00:00  job heat: 2 running, 1 blocked\n\nRANK*") {
		t.Errorf("after one look:\n%s", v)
	}
	s.Update(seen{&Report{Jobs: []Job{{Job: *second, Deadlock: &Deadlock{For: time.Minute}}}}, at.Add(2 * time.Second)})
	want := `12:00:02  PROBABLE DEADLOCK for 1m0s of job heat: 2 running, 1 blocked

RANK*  HOST   STATE      FOR  MSG/S  SENT/S  RECV/S  ASLEEP  DOES
    0  alpha  running             5    500k       0    50 %  computing
    1  alpha  running          1000    100M       0     0 %  computing
    2  alpha  blocked  5.0 s                                 in MPI_Recv (from rank 0, tag 7 in MPI_


s sort by the next column  r reverse  / filter  p pause  arrows scroll  q quit`
	if v := s.View(); v != want {
		t.Errorf("got\n%s\nwant\n%s", v, want)
	}
	for _, c := range []struct {
		keys []tea.KeyMsg
		want string
	}{
		{[]tea.KeyMsg{typed("r")}, "2 1 0"},
		{[]tea.KeyMsg{typed("rsss")}, "2 0 1"},                     // for how long they are blocked
		{[]tea.KeyMsg{typed("s")}, "1 0 2"},                        // messages
		{[]tea.KeyMsg{typed("SS")}, "2 0 1"},                       // state
		{[]tea.KeyMsg{typed("/mpi_"), typed("RECV")}, "2"},         // a filter
		{[]tea.KeyMsg{{Type: tea.KeyEnter}, typed("s")}, "2"},      // it stays
		{[]tea.KeyMsg{typed("/x"), {Type: tea.KeyBackspace}}, "2"}, // and goes on
		{[]tea.KeyMsg{{Type: tea.KeyEsc}}, "2 0 1"},
	} {
		if press(s, c.keys...) {
			t.Errorf("%v end it", c.keys)
		}
		if got := shownRanks(s); got != c.want {
			t.Errorf("after %v: %q, want %q", c.keys, got, c.want)
		}
	}
	if !press(s, typed("q")) || !press(s, tea.KeyMsg{Type: tea.KeyCtrlC}) {
		t.Error("neither q nor Ctrl-C ends it")
	}
}

// TestTopScrolls: rows beyond the screen can be reached, and the screen never shows less than it
// could.
func TestTopScrolls(t *testing.T) {
	var procs []links.Proc
	for i := range 30 {
		procs = append(procs, counted(i, 0, 0))
	}
	s := newScreen(nil, time.Second)
	s.Update(tea.WindowSizeMsg{Width: 80, Height: around + 5})
	s.Update(seen{&Report{Jobs: []Job{{Job: *job(procs...)}}}, time.Now()})
	for _, c := range []struct {
		key  tea.KeyMsg
		want string
	}{
		{tea.KeyMsg{Type: tea.KeyDown}, "1 2 3 4 5"}, {tea.KeyMsg{Type: tea.KeyPgDown}, "6 7 8 9 10"}, {tea.KeyMsg{Type: tea.KeyUp}, "5 6 7 8 9"},
		{tea.KeyMsg{Type: tea.KeyEnd}, "25 26 27 28 29"}, {tea.KeyMsg{Type: tea.KeyDown}, "25 26 27 28 29"}, {tea.KeyMsg{Type: tea.KeyHome}, "0 1 2 3 4"},
		{tea.KeyMsg{Type: tea.KeyPgUp}, "0 1 2 3 4"},
	} {
		press(s, c.key)
		if got := shownRanks(s); got != c.want {
			t.Errorf("after %v: %s, want %s", c.key, got, c.want)
		}
	}
	press(s, tea.KeyMsg{Type: tea.KeyEnd})
	s.Update(seen{&Report{Jobs: []Job{{Job: *job(procs[:3]...)}}}, time.Now()})
	if got := shownRanks(s); got != "0 1 2" {
		t.Errorf("after most have gone: %s", got)
	}
	s.Update(seen{&Report{}, time.Now()})
	if v := s.View(); !strings.Contains(v, "no job any more") {
		t.Errorf("after the end:\n%s", v)
	}
}

// TestTopPauses: a paused screen asks nobody.
func TestTopPauses(t *testing.T) {
	looks := 0
	s := newScreen(func() *Report { looks++; return &Report{} }, time.Nanosecond)
	press(s, typed("p"))
	_, cmd := s.Update(dueMsg{})
	if _, due := cmd().(dueMsg); !due || looks != 0 {
		t.Errorf("%d looks", looks)
	}
	press(s, typed("p"))
	if _, cmd = s.Update(dueMsg{}); cmd() == nil || looks != 1 {
		t.Errorf("%d looks", looks)
	}
}

func TestTopWantsATerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var errs strings.Builder
	if got := Top(nil, null, null, &errs); got != statusUsage || !strings.Contains(errs.String(), "for terminals") {
		t.Errorf("status %d: %s", got, errs.String())
	}
	if Top([]string{"-json"}, null, null, io.Discard) != statusUsage {
		t.Error("-json is taken")
	}
}

func TestPerSecond(t *testing.T) {
	for x, want := range map[float64]string{-1: "", 0: "0", 999.6: "1000", 9999: "9999", 10000: "10k", 123456789: "123M", 2e10: "20G", 5e13: "50T"} {
		if got := perSecond(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
}
