package mpierr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// own makes a class and a code of it.
func own(t *testing.T, c *Codes) (class, code Class) {
	t.Helper()
	class, err := c.Add()
	if err != nil {
		t.Fatal(err)
	}
	if code, err = c.AddCode(class); err != nil {
		t.Fatal(err)
	}
	return class, code
}

func TestOwnCodesFollowThoseOfMPI(t *testing.T) {
	var c Codes
	if c.Last() != LastCode {
		t.Errorf("at first the last is %d", int(c.Last()))
	}
	class, code := own(t, &c)
	if class != LastCode+1 || code != LastCode+2 || c.Last() != code {
		t.Errorf("class %d, code %d, last %d", int(class), int(code), int(c.Last()))
	}
	of, err := c.AddCode(Truncate)
	if err != nil || of != LastCode+3 {
		t.Errorf("a code of one of MPI's: %d, %v", int(of), err)
	}
	for in, want := range map[Class]Class{class: class, code: class, of: Truncate, Rank: Rank, Success: Success} {
		if got, err := c.Class(in); got != want || err != nil {
			t.Errorf("class of %d: %d, %v; want %d", int(in), int(got), err, int(want))
		}
	}
}

func TestTextsOfCodes(t *testing.T) {
	var c Codes
	class, code := own(t, &c)
	for range 2 { // the second one replaces the first
		if err := errors.Join(c.SetText(class, "my class"), c.SetText(code, "my code")); err != nil {
			t.Fatal(err)
		}
	}
	bare, _ := own(t, &c)
	for in, want := range map[Class]string{class: "my class", code: "my code", bare: "", Success: "no error", Tag: "invalid tag"} {
		if got, err := c.Text(in); got != want || err != nil {
			t.Errorf("text of %d: %q, %v", int(in), got, err)
		}
	}
	if err := c.SetText(class, strings.Repeat("x", MaxString)); err != nil {
		t.Errorf("the longest text: %v", err)
	}
}

func TestCodesThatCannotBe(t *testing.T) {
	var c Codes
	class, code := own(t, &c)
	none := c.Last() + 1
	_, noClass := c.AddCode(none)
	_, codeOfCode := c.AddCode(code)
	_, reserved := c.AddCode(LastCode)
	_, what := c.Class(none)
	_, text := c.Text(-1)
	for says, err := range map[string]error{
		"code of nothing": noClass, "code of a code": codeOfCode, "code of a reserved one": reserved, "class of nothing": what, "text of nothing": text,
		"text for a class of MPI": c.SetText(Rank, "x"), "text for LASTCODE": c.SetText(LastCode, "x"), "text for nothing": c.SetText(none, "x"),
		"too long a text":  c.SetText(class, strings.Repeat("x", MaxString+1)),
		"removal of MPI's": c.Remove(Rank, true), "removal of nothing": c.Remove(none, false), "removal of a class as a code": c.Remove(class, false),
		"removal of a code as a class": c.Remove(code, true), "removal of a class with codes": c.Remove(class, true),
	} {
		if !errors.Is(err, ErrCode) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// What is removed is gone, and its number is not given to another.
func TestRemove(t *testing.T) {
	var c Codes
	class, code := own(t, &c)
	ofMPI, err := c.AddCode(Tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Remove(ofMPI, false), c.Remove(code, false), c.Remove(class, true)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []Class{class, code, ofMPI} {
		if _, err := c.Text(n); !errors.Is(err, ErrCode) {
			t.Errorf("%d: %v", int(n), err)
		}
	}
	if c.Last() != ofMPI {
		t.Errorf("the last has become %d", int(c.Last()))
	}
	if next, err := c.Add(); next != ofMPI+1 || err != nil {
		t.Errorf("the next is %d, %v", int(next), err)
	}
	c.last = maxCode
	if _, err := c.Add(); !errors.Is(err, ErrCode) {
		t.Errorf("after the last: %v", err)
	}
}

func TestErrorTakesItsCodeAlong(t *testing.T) {
	var c Codes
	class, code := own(t, &c)
	if err := c.SetText(code, "no beer"); err != nil {
		t.Fatal(err)
	}
	err := fmt.Errorf("at the bar: %w", c.New(code))
	var e *Error
	if !errors.As(err, &e) || e.Code != code || e.Class != class || !strings.HasSuffix(err.Error(), "no beer") {
		t.Errorf("%v, %+v", err, e)
	}
	if !errors.Is(err, c.New(code)) || errors.Is(err, c.New(class)) {
		t.Error("codes are mistaken for each other")
	}
	for code, says := range map[Class]string{Rank: "invalid rank", class: "MPI error class 16384", c.Last() + 5: "of MPI_ERR_UNKNOWN"} {
		if e := c.New(code); e.Code != code || !strings.Contains(e.Error(), says) {
			t.Errorf("%d: %v", int(code), e)
		}
	}
}
