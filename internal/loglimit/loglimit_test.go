package loglimit

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// limited runs f with a log in a bubble of its own and gives what was written.
func limited(t *testing.T, f func(log hclog.Logger, l *Limiter)) (lines []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log, l := New(hclog.LoggerOptions{Output: &b, Level: hclog.Trace, DisableTime: true})
		f(log, l)
		synctest.Wait()
		lines = strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	})
	return lines
}

func TestRepeatedLinesAreCounted(t *testing.T) {
	lines := limited(t, func(log hclog.Logger, l *Limiter) {
		other := log.Named("server").With("site", "alpha")
		for i := range 10_021 {
			if i%2 == 0 {
				log.Warn("connection refused", "peer", fmt.Sprint("192.0.2.1:", i))
			} else {
				other.Warn("connection refused", "peer", fmt.Sprint("192.0.2.1:", i))
			}
			<-time.After(2 * time.Second / 10_021)
		}
		log.Warn("something else")
		log.Error("connection refused")
		<-time.After(window)
		log.Warn("connection refused", "peer", "the next window")
		l.Close()
	})
	if len(lines) != burst+4 {
		t.Fatalf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for i, want := range []string{"[WARN]  something else", "[ERROR] connection refused", "[WARN]  connection refused … and 9981 more like this in 10s", `[WARN]  connection refused: peer="the next window"`} {
		if got := lines[burst+i]; got != want {
			t.Errorf("line %d is %q, want %q", burst+i, got, want)
		}
	}
}

// TestStormsThatGoOn: of what is logged for minutes a line and a count are written in each window, and
// all lines again once it was quiet for a window.
func TestStormsThatGoOn(t *testing.T) {
	lines := limited(t, func(log hclog.Logger, l *Limiter) {
		defer l.Close()
		for range 10 * 100 {
			log.Warn("a peer has gone")
			<-time.After(window / 100)
		}
		<-time.After(2 * window)
		for range 10 {
			log.Warn("a peer has gone")
		}
	})
	windows := 0
	for _, line := range lines {
		if strings.Contains(line, "more like this in 10s") {
			windows++
		}
	}
	if windows < 9 || windows > 11 || len(lines) > burst+windows*(again+1)+10 || len(lines) < burst+windows*(again+1) {
		t.Errorf("%d lines, %d of them counts:\n%s", len(lines), windows, strings.Join(lines, "\n"))
	}
}

func TestNumbersInMessagesDoNotCount(t *testing.T) {
	lines := limited(t, func(log hclog.Logger, l *Limiter) {
		for i := range 100 {
			log.Info(fmt.Sprintf("nothing is heard of 192.0.2.1:%d", i))
		}
		<-time.After(time.Second)
		l.Close()
		for range 2 * burst {
			log.Info("the end")
		}
	})
	if want := "nothing is heard of 192.0.2.1:0 … and 60 more like this in 1s"; len(lines) != 3*burst+1 || !strings.HasSuffix(lines[burst], want) {
		t.Errorf("%d lines, line %d is %q", len(lines), burst, lines[burst])
	}
}

func TestWhatIsNotLimited(t *testing.T) {
	lines := limited(t, func(log hclog.Logger, l *Limiter) {
		defer l.Close()
		for range 3 * burst {
			log.Debug("detail")
		}
		for range 5 { // slowly
			for range burst {
				log.Warn("now and then")
			}
			<-time.After(window)
		}
	})
	if len(lines) != 8*burst {
		t.Errorf("%d lines", len(lines))
	}
}

// TestManyKinds: memory is bounded, and so is the log.
func TestManyKinds(t *testing.T) {
	lines := limited(t, func(log hclog.Logger, l *Limiter) {
		defer l.Close()
		for i := range 10_000 {
			log.Warn("kind " + strings.Repeat("x", i%150) + strings.Repeat("y", i/150))
		}
		l.mu.Lock()
		runs := len(l.runs)
		l.mu.Unlock()
		if runs > maxRuns+1 {
			t.Errorf("%d kinds are told apart", runs)
		}
		<-time.After(window)
	})
	if most := maxRuns + burst + 1; len(lines) > most || !strings.Contains(lines[len(lines)-1], "messages of many kinds … and ") {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
	(*Limiter)(nil).Close()
}
