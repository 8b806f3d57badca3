// Package script reads the cases of impi-conform as they are written down: what each is
// about, and the dialogue that tries it, one step in a line. It knows the form of the text;
// package play executes the steps.
//
//	chapter probe
//	IMPI-3-PROBE-04 MUST program
//		Probe waits until a message comes.
//		(ch. 3, Message Probing; MPI-1, 3.8)
//	job datalen=100
//	each n = 0 5 100
//		tell probe src=0 tag=$i
//		to DATA tag=$i seed=${i+1} n=$n
//
// A case begins with its number, its level and the part of the implementation that it needs;
// "slow" keeps it out of quick runs. Below are what a right implementation does, and where the
// standard says so. Everything after is steps. A line with # is a remark.
//
// "each" repeats the lines that are indented more than it, with a variable that has one
// value after the other; a..b stands for the numbers from a to before b, and $i is how many
// times it went around before. "when a = b" plays such lines if the two are the same.
// $name and ${expression} are replaced before a step is played.
//
// "steps NAME PARAMETER..." begins a routine, the lines that a step NAME stands for. The words of
// that step are the values of the parameters, in their order or by name=value; $rest is all of
// them.
//
// The language is our own: a case is read beside the chapter of the standard, and each step is one
// line of the dialogue, which HCL would wrap into a block.
package script

import (
	"errors"
	"fmt"
	"strings"
)

// Case is a case in its written form.
type Case struct {
	Chapter, ID, Level, Needs string
	Slow                      bool
	Expect, Reference         string
	Steps                     []Step
}

// Step is one line of a dialogue.
type Step struct {
	At   string // file and line
	Text string
	Body []Step // steps that "each" repeats, and "when" plays
}

// Routine is a named list of steps.
type Routine struct {
	Parameters []string
	Steps      []Step
}

// Text is the content of a file: cases in their order, and routines by their names.
type Text struct {
	Cases    []Case
	Routines map[string]Routine
}

// ErrForm is wrapped by errors about a text that does not have the form of cases.
var ErrForm = errors.New("not the form of a case")

type reader struct {
	file  string
	lines []string
	at    int // the line that is next
}

// Parse parses cases and routines. file is the name of the text in errors, which wrap ErrForm.
func Parse(file, text string) (t Text, err error) {
	r := &reader{file: file, lines: strings.Split(strings.TrimRight(text, "\n"), "\n")}
	t.Routines = map[string]Routine{}
	chapter := ""
	for r.skip(); r.at < len(r.lines); r.skip() {
		line := r.lines[r.at]
		if name, is := strings.CutPrefix(line, "chapter "); is {
			chapter = name
			r.at++
			continue
		}
		if head, is := strings.CutPrefix(line, "steps "); is {
			words := strings.Fields(head)
			r.at++
			t.Routines[words[0]] = Routine{words[1:], r.steps(0)}
			continue
		}
		c, err := r.one()
		if err != nil {
			return t, err
		}
		c.Chapter = chapter
		t.Cases = append(t.Cases, c)
	}
	return t, nil
}

func (r *reader) skip() {
	for r.at < len(r.lines) && empty(r.lines[r.at]) {
		r.at++
	}
}

func empty(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

func (r *reader) one() (c Case, err error) {
	head := strings.Fields(r.lines[r.at])
	if len(head) < 3 || r.at+2 >= len(r.lines) {
		return c, fmt.Errorf("%s: %w: a number, a level and a part, and two lines below", r.place(), ErrForm)
	}
	c.ID, c.Level, c.Needs, c.Slow = head[0], head[1], head[2], len(head) > 3 && head[3] == "slow"
	c.Expect = strings.TrimSpace(r.lines[r.at+1])
	reference := strings.TrimSpace(r.lines[r.at+2])
	c.Reference = strings.TrimSuffix(strings.TrimPrefix(reference, "("), ")")
	if len(c.Reference) != len(reference)-2 {
		return c, fmt.Errorf("%s: %w: where the standard says so has to be in parentheses", r.place(), ErrForm)
	}
	r.at += 3
	c.Steps = r.steps(0)
	if len(c.Steps) == 0 {
		return c, fmt.Errorf("%s: %w: %s has no steps", r.place(), ErrForm, c.ID)
	}
	return c, nil
}

func (r *reader) place() string { return fmt.Sprintf("%s:%d", r.file, r.at+1) }

// steps reads the lines that are indented by depth tabs, up to the next case, chapter or routine.
func (r *reader) steps(depth int) (all []Step) {
	for r.skip(); r.at < len(r.lines); r.skip() {
		line := r.lines[r.at]
		switch d := len(line) - len(strings.TrimLeft(line, "\t")); {
		case d < depth, strings.HasPrefix(line, "IMPI-"), strings.HasPrefix(line, "chapter "), strings.HasPrefix(line, "steps "):
			return all
		case d > depth && len(all) > 0:
			last := &all[len(all)-1]
			last.Body = append(last.Body, r.steps(d)...)
		default:
			all = append(all, Step{At: r.place(), Text: strings.TrimSpace(line)})
			r.at++
		}
	}
	return all
}
