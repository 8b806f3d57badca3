package script

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

const text = `# a remark
chapter one
IMPI-9-A-01 MUST program slow
	What is expected.
	(ch. 9)
begin
each n = 2 0x10
	first $n $i
	each a,b = x,1 y,${n*2}
		second $a ${b+1+n}
	when $n = 2
		third
last "of all" k=v k2=-1

steps both one two
say $two $one
say $rest

chapter two
IMPI-9-B-01 SHOULD client
	Another.
	(ch. 9; ch. 10)
only ${p.id+1}
`

func TestPlayed(t *testing.T) {
	parsed, err := Parse("x.txt", text)
	if err != nil || len(parsed.Cases) != 2 {
		t.Fatalf("%v, %v", parsed, err)
	}
	a, b := parsed.Cases[0], parsed.Cases[1]
	if a.Chapter != "one" || !a.Slow || a.Level != "MUST" || a.Needs != "program" || a.Expect != "What is expected." || b.Reference != "ch. 9; ch. 10" || b.Slow || b.Chapter != "two" {
		t.Errorf("%+v\n%+v", a, b)
	}
	var got []string
	Run(a.Steps, Vars{}, func(s Step) { got = append(got, s.Text) })
	Run(b.Steps, Vars{"p.id": "41"}, func(s Step) { got = append(got, s.At+" "+s.Text) })
	v := Vars{}
	both := parsed.Routines["both"]
	v.Call(both, Split("both left two=right"))
	Run(both.Steps, v, func(s Step) { got = append(got, s.Text) })
	want := `begin|first 2 0|second x 4|second y 7|third|first 0x10 1|second x 18|second y 49|last "of all" k=v k2=-1|x.txt:23 only 42|say right left|say left two=right`
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func TestWords(t *testing.T) {
	w := Split(`last one "of all" k=v k2=-1 two`)
	if w.Verb != "last" || w.Quote != "of all" || w.Word(0) != "one" || w.Word(1) != "two" || w.Word(2) != "" || w.Named["k"] != "v" || int32(w.Number("k2", 0)) != -1 || w.Int("none", 7) != 7 {
		t.Errorf("%+v", w)
	}
}

func TestNoCases(t *testing.T) {
	for _, text := range []string{"IMPI-9-A-01 MUST", "IMPI-9-A-01 MUST program\n\tx\n\tno parentheses\nstep", "IMPI-9-A-01 MUST program\n\tx\n\t(y)\nIMPI-9-A-02 MUST program"} {
		if _, err := Parse("x", text); !errors.Is(err, ErrForm) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, wrong := range []string{"$x", "${1 &^ 2}", "${", "${a.b}"} {
		func() {
			defer func() {
				if p := recover(); p == nil && strings.Contains(wrong, "$x") {
					t.Errorf("%s is replaced", wrong)
				} else if p != nil && !strings.HasPrefix(fmt.Sprint(p), "script: ") {
					t.Errorf("%s: %v", wrong, p)
				}
			}()
			Vars{}.Expand(wrong)
		}()
	}
}
