package mpi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/life"
	"github.com/openimpi/impi/internal/engine/object"
)

// infoOf makes an info object of keys and values.
func infoOf(t *testing.T, pairs ...string) *Info {
	t.Helper()
	i := NewInfo()
	for n := 0; n < len(pairs); n += 2 {
		if err := i.Set(pairs[n], pairs[n+1]); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

// listed returns the keys in their order, each with its value.
func listed(t *testing.T, i *Info) (all []string) {
	t.Helper()
	n, err := i.Len()
	for k := range n {
		key, kerr := i.Key(k)
		value, ok, verr := i.Get(key)
		if err = errors.Join(err, kerr, verr); !ok {
			t.Errorf("key %d, %q, is not there", k, key)
		}
		all = append(all, key, value)
	}
	if err != nil {
		t.Error(err)
	}
	return all
}

func TestInfoKeepsTheOrderOfKeys(t *testing.T) {
	i := infoOf(t, "z", "1", "a", "2", "m", "3", "a", "4")
	if got := listed(t, i); !slices.Equal(got, []string{"z", "1", "a", "4", "m", "3"}) {
		t.Errorf("got %q", got)
	}
	if err := i.Delete("z"); err != nil {
		t.Error(err)
	}
	if err := i.Set("z", "5"); err != nil {
		t.Error(err)
	}
	if got := listed(t, i); !slices.Equal(got, []string{"a", "4", "m", "3", "z", "5"}) {
		t.Errorf("after a deletion: %q", got)
	}
}

func TestInfoDupIsACopy(t *testing.T) {
	i := infoOf(t, "a", "1", "b", "2")
	d, err := i.Dup()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(i.Set("a", "9"), i.Free(), d.Set("c", "3")); err != nil {
		t.Error(err)
	}
	if got := listed(t, d); !slices.Equal(got, []string{"a", "1", "b", "2", "c", "3"}) {
		t.Errorf("got %q", got)
	}
}

func TestInfoGetForms(t *testing.T) {
	i := infoOf(t, "key", "12345", "empty", "")
	for n, want := range map[int]string{0: "", 3: "123", 5: "12345", 99: "12345"} {
		if v, ok, err := i.GetUpTo("key", n); v != want || !ok || err != nil {
			t.Errorf("up to %d: %q, %v, %v", n, v, ok, err)
		}
	}
	for room, want := range map[int]string{0: "", 1: "", 4: "123", 6: "12345", 99: "12345"} {
		if v, needed, ok, err := i.GetString("key", room); v != want || needed != 6 || !ok || err != nil {
			t.Errorf("room %d: %q, %d, %v, %v", room, v, needed, ok, err)
		}
	}
	if v, needed, ok, err := i.GetString("empty", 0); v != "" || needed != 1 || !ok || err != nil {
		t.Errorf("an empty value: %q, %d, %v, %v", v, needed, ok, err)
	}
	if v, needed, ok, err := i.GetString("none", 9); v != "" || needed != 0 || ok || err != nil {
		t.Errorf("no value: %q, %d, %v, %v", v, needed, ok, err)
	}
	if v, ok, err := i.Get("none"); v != "" || ok || err != nil {
		t.Errorf("a key that is not there is no error: %q, %v, %v", v, ok, err)
	}
}

func TestInfoLimits(t *testing.T) {
	i := NewInfo()
	key, value := strings.Repeat("k", MaxInfoKey), strings.Repeat("v", MaxInfoValue)
	if err := i.Set(key, value); err != nil {
		t.Errorf("the longest: %v", err)
	}
	for what, x := range map[string]struct {
		err  error
		want Class
	}{
		"empty key": {i.Set("", "x"), mpierr.InfoKey}, "long key": {i.Set(key+"k", "x"), mpierr.InfoKey}, "long value": {i.Set("x", value+"v"), mpierr.InfoValue},
		"get of the empty key": {third(i.Get("")), mpierr.InfoKey}, "delete of a long key": {i.Delete(key + "k"), mpierr.InfoKey},
		"delete of none": {i.Delete("x"), mpierr.InfoNoKey}, "key -1": {second(i.Key(-1)), mpierr.Arg}, "key beyond the last": {second(i.Key(1)), mpierr.Arg},
		"negative length": {third(i.GetUpTo(key, -1)), mpierr.Arg}, "negative room": {fourth(i.GetString(key, -1)), mpierr.Arg},
	} {
		if x.err == nil || ErrorClass(x.err) != x.want {
			t.Errorf("%s: %v", what, x.err)
		}
	}
	if got := listed(t, i); !slices.Equal(got, []string{key, value}) {
		t.Error("what failed has changed it")
	}
}

func third[A, B any](_ A, _ B, err error) error          { return err }
func fourth[A, B, C any](_ A, _ B, _ C, err error) error { return err }

// uses tries all that can be done with an info object.
func uses(i *Info) map[string]error {
	return map[string]error{
		"dup": second(i.Dup()), "get": third(i.Get("a")), "get up to": third(i.GetUpTo("a", 1)), "get string": fourth(i.GetString("a", 1)),
		"len": second(i.Len()), "key": second(i.Key(0)), "set": i.Set("a", "b"), "delete": i.Delete("a"), "free": i.Free(),
	}
}

func TestInfoThatIsNone(t *testing.T) {
	freed := infoOf(t, "a", "b")
	if err := freed.Free(); err != nil {
		t.Fatal(err)
	}
	for what, i := range map[string]*Info{"null": nil, "freed": freed} {
		for use, err := range uses(i) {
			if ErrorClass(err) != mpierr.Info {
				t.Errorf("%s of a %s one: %v", use, what, err)
			}
		}
	}
}

func TestInfoEnv(t *testing.T) {
	if InfoEnv() != nil {
		t.Error("there is one before Init")
	}
	p := layout{procs: 3}.start(t)[0]
	program(t, p)
	i := InfoEnv()
	all := listed(t, i)
	for _, key := range []string{"command", "maxprocs", "host", "arch", "wdir", "thread_level"} {
		if !slices.Contains(all, key) {
			t.Errorf("it has no %q: %q", key, all)
		}
	}
	if v, _, err := i.Get("maxprocs"); v != "3" || err != nil {
		t.Errorf("maxprocs %q, %v", v, err)
	}
	for what, err := range map[string]error{"set": i.Set("a", "b"), "delete": i.Delete("host"), "free": i.Free()} {
		if ErrorClass(err) != mpierr.Info {
			t.Errorf("%s: %v", what, err)
		}
	}
	if d, err := i.Dup(); err != nil || d.Set("host", "mine") != nil {
		t.Errorf("a copy of it cannot be changed: %v", err)
	}
	if InfoEnv() != i || !slices.Equal(listed(t, i), all) {
		t.Error("it has changed")
	}
}

func TestEnvironmentLeavesOutWhatIsUnknown(t *testing.T) {
	got := listed(t, (*Info)(object.Environment([]string{"prog", "-a", "b c"}, 2, "", strings.Repeat("/d", MaxInfoValue))))
	if fmt.Sprint(got[:6]) != "[command prog argv -a b c maxprocs 2]" || slices.Contains(got, "host") || slices.Contains(got, "wdir") {
		t.Errorf("got %q", got)
	}
	if got := listed(t, (*Info)(object.Environment(nil, 1, "h", "/"))); got[0] != "maxprocs" {
		t.Errorf("without arguments: %q", got)
	}
}

// Programs may prepare what Init is to know, and look at it in the end.
func TestInfoNeedsNoInit(t *testing.T) {
	i := infoOf(t, "a", "b")
	p := layout{}.start(t)[0]
	program(t, p)
	if err := life.FinalizeProc(p); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := i.Get("a"); v != "b" || !ok || err != nil {
		t.Errorf("after Finalize: %q, %v, %v", v, ok, err)
	}
	if err := errors.Join(i.Set("c", "d"), i.Free()); err != nil {
		t.Error(err)
	}
}
