package rma

import (
	"errors"
	"strings"
	"testing"
)

// step calls the method that a word stands for, in a window of ranks 0 to 3.
func (e *Epochs) step(word string) (err error) {
	name, arg, _ := strings.Cut(word, ":")
	rank := 0
	if arg != "" {
		rank = int(arg[0] - '0')
	}
	switch name {
	case "fence", "last":
		if err = e.MayFence(); err == nil {
			e.Fence(name == "fence")
		}
	case "start":
		err = e.Start([]int{rank})
	case "complete":
		if _, err = e.Started(); err == nil {
			e.Complete()
		}
	case "post":
		err = e.Post([]int{rank})
	case "wait":
		if _, err = e.Posted(); err == nil {
			e.Wait()
		}
	case "lock":
		if err = e.MayLock(rank); err == nil {
			e.Lock(rank, LockShared)
		}
	case "unlock":
		if _, err = e.Locked(rank); err == nil {
			e.Unlock(rank)
		}
	case "lockall":
		if err = e.MayLockAll(); err == nil {
			e.LockAll()
		}
	case "unlockall":
		if err = e.MayUnlockAll(); err == nil {
			e.UnlockAll()
		}
	case "flush":
		err = e.MayFlush(rank)
	case "flushall":
		err = e.MayFlush(-1)
	case "op":
		_, err = e.Operate(rank, false)
	case "request":
		_, err = e.Operate(rank, true)
	case "free":
		err = e.MayFree()
	default:
		panic(word)
	}
	return err
}

// Each line is calls that fit the epochs, and after a ! one that does not; after that the
// window is as before.
func TestEpochs(t *testing.T) {
	for _, line := range []string{
		"!op", "!request", "!flush", "!flushall", "!unlock", "!unlockall", "!complete", "!wait", "free",
		"fence op:3 fence op fence free", "fence op !free", "fence !request", "fence !flush", "fence op last free !op",
		"fence op !lock", "fence op !lockall", "fence op !start", "fence op !post", "fence lock op unlock", "fence start op complete",
		"fence post wait", "fence post !fence wait fence", "fence lockall !fence unlockall fence",
		"start:1 op:1 !op:2 !request:1 !start !lock !fence !lockall !flush !free complete !op:1 !complete",
		"post:1 !post start:2 op:2 complete !free wait free", "post:1 lock op unlock wait",
		"lock:1 op:1 request:1 flush:1 flushall !flush:2 !op:2 !lock:1 lock:2 op:2 unlock:1 !op:1 !flush:1 op:2 !unlock:1 unlock:2 !flushall",
		"lock:1 !lockall !fence !start !free unlock:1", "lock:1 !unlockall !complete post wait unlock:1",
		"lockall op:0 request:3 flush:2 flushall !lock:1 !lockall !unlock:0 !start !free unlockall free",
	} {
		var e Epochs
		for _, word := range strings.Fields(line) {
			word, wrong := strings.CutPrefix(word, "!")
			err := e.step(word)
			if wrong && !errors.Is(err, ErrSync) || !wrong && err != nil {
				t.Errorf("%s: %s gives %v", line, word, err)
			}
		}
	}
}

// Operations tell whether locks protect them.
func TestPassive(t *testing.T) {
	for line, want := range map[string]bool{"fence": false, "start:1": false, "lock:1": true, "lockall": true} {
		var e Epochs
		if err := e.step(line); err != nil {
			t.Fatal(err)
		}
		if got, err := e.Operate(1, false); got != want || err != nil {
			t.Errorf("%s: %v, %v", line, got, err)
		}
	}
}

func TestAsserts(t *testing.T) {
	for _, c := range []struct{ a, allowed, bad Assert }{
		{NoStore | NoPut | NoPrecede | NoSucceed, FenceAsserts, NoCheck},
		{NoCheck | NoStore | NoPut, PostAsserts, NoSucceed},
		{NoCheck, StartAsserts, NoPut}, {NoCheck, LockAsserts, 1},
	} {
		if err := c.a.Check(c.allowed); err != nil {
			t.Error(err)
		}
		if err := (c.a | c.bad).Check(c.allowed); !errors.Is(err, ErrAssert) {
			t.Errorf("%d is taken besides: %v", c.bad, err)
		}
	}
}

func TestCodes(t *testing.T) {
	for c, want := range map[Code]error{Done: nil, OutOfRange: ErrRange, Conflicting: ErrConflict, codes: ErrHeader} {
		if err := c.Err(); !errors.Is(err, want) {
			t.Errorf("code %d: %v", c, err)
		}
	}
}

// Notices of the next epoch do not stand for missing ones of this.
func TestArrivals(t *testing.T) {
	var a Arrivals
	ranks := []int{1, 2}
	a.Add(1)
	a.Add(1)
	if r, missing := a.Missing(ranks); a.Take(ranks) || !missing || r != 2 {
		t.Fatal("2 has not come")
	}
	a.Add(2)
	if !a.Take(ranks) || a.Take(ranks) {
		t.Fatal("both have come, once")
	}
	a.Add(2)
	if !a.Take(ranks) || !a.Take(nil) {
		t.Fatal("both have come again")
	}
}
