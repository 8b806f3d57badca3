package line

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

type shade uint8

func (s shade) String() string { return [...]string{"light", "dark"}[s] }
func (s *shade) UnmarshalText(text []byte) error {
	if *s = 0; string(text) == "dark" {
		*s = 1
	}
	return nil
}

type all struct {
	Who     int           `line:"@"`
	For     time.Duration `line:"@"`
	Source  int           `line:"from,any"`
	Left    int           `line:"-"`
	Yes     bool
	Chance  float64
	List    []int `line:",none"`
	Names   []string
	Shade   shade
	Shades  []shade
	private int //nolint:unused // it cannot be read, and is left out
}

// Inner is embedded.
type Inner struct{ Deep uint32 }

type listed struct {
	Inner
	Words []string `line:"@"`
}

func TestLine(t *testing.T) {
	v := all{Who: 3, For: time.Second, Source: -1, Yes: true, Chance: 0.5, List: []int{1, -1}, Names: []string{"a", "b"}, Shade: 1, Shades: []shade{1, 0}}
	want := "verb 3 1s from=any yes=yes chance=0.5 list=1,none names=a,b shade=dark shades=dark,light"
	if got := Write("verb", v, all{}); got != want {
		t.Errorf("%s", got)
	}
	var back all
	if err := Read(strings.Fields(want)[1:], &back); err != nil || !reflect.DeepEqual(back, v) {
		t.Errorf("%v: %+v", err, back)
	}
	if got := Write("verb", v, v); got != "verb 3 1s" {
		t.Errorf("%s", got)
	}
	l := listed{Inner{0x10}, []string{"x", "y"}}
	if got := Write("l", l, listed{}); got != "l x y deep=16" {
		t.Errorf("%s", got)
	}
}

func TestReadRefuses(t *testing.T) {
	for words, want := range map[string]string{
		"":                   "missing",
		"3":                  "missing",
		"x 1s":               `"x"`,
		"3 soon":             "invalid duration",
		"3 -1s":              "negative",
		"3 1s yes":           "no such key",
		"3 1s yes=1":         "not yes or no",
		"3 1s yes=no yes=no": "twice",
		"3 1s private=1":     "no such key",
		"3 1s left=1":        "no such key",
		"3 1s @=1":           "no such key",
		"3 1s list=1,x":      `"x"`,
		"3 1s chance=much":   "chance",
	} {
		if err := Read(strings.Fields(words), &all{}); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %v, want %q", words, err, want)
		}
	}
}
