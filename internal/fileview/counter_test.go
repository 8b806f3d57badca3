package fileview

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestCounter wants each of many additions to see another value: nothing is lost.
func TestCounter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter")
	const users, rounds, start = 8, 50, 1000
	var all sync.WaitGroup
	var lock sync.Mutex
	seen := map[int64]bool{}
	counters := make([]*Counter, users)
	for i := range counters {
		counters[i] = NewCounter(path, start)
		all.Add(1)
		go func() {
			defer all.Done()
			for range rounds {
				v, err := counters[i].Add(3)
				if err != nil {
					t.Error(err)
					return
				}
				lock.Lock()
				seen[v] = true
				lock.Unlock()
			}
		}()
	}
	all.Wait()
	for i := range int64(users * rounds) {
		if !seen[start+3*i] {
			t.Fatalf("nobody has seen %d", start+3*i)
		}
	}
	if err := counters[3].Set(7); err != nil {
		t.Fatal(err)
	}
	if v, err := counters[4].Add(0); v != 7 || err != nil {
		t.Errorf("after Set(7) it is %d, %v", v, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	for _, c := range counters {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

func TestCounterErrors(t *testing.T) {
	if _, err := NewCounter("/nowhere/at/all", 0).Add(1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
	for _, text := range []string{"short", "much too long", "\xff\xff\xff\xff\xff\xff\xff\xff"} {
		path := filepath.Join(t.TempDir(), "counter")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := NewCounter(path, 0)
		if _, err := c.Add(1); !errors.Is(err, ErrCounter) {
			t.Errorf("%q: %v", text, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("it was not made here, and is gone: %v", err)
		}
	}
	if err := NewCounter("/nowhere/at/all", 0).Close(); err != nil {
		t.Error(err)
	}
}
