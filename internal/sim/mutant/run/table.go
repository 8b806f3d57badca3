package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

type summary struct {
	Results []result `json:"mutants"`
	Seconds float64  `json:"seconds"`
}

func (s *summary) caught() (n int) {
	for i := range s.Results {
		if s.Results[i].Caught {
			n++
		}
	}
	return n
}

func (s *summary) json(w io.Writer) {
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	_ = e.Encode(s) // fails only if standard output was closed: ignore it
}

// table prints all faults, and in the end those that nothing has found once more.
func (s *summary) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FAULT\tCAUGHT\tBY\tSEEDS\tWHAT IT BREAKS")
	for i := range s.Results {
		r := &s.Results[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Name, r.verdict(), cmp.Or(r.By, "-"), r.count(), r.What)
	}
	_ = t.Flush() // as in json
	fmt.Fprintf(w, "\n%d of %d faults caught", s.caught(), len(s.Results))
	if m := s.median(); m > 0 {
		fmt.Fprintf(w, ", half of them within %d seeds", m)
	}
	fmt.Fprintf(w, ", in %.0f s\n", s.Seconds)
	for i := range s.Results {
		if r := &s.Results[i]; !r.Caught {
			fmt.Fprintf(w, "%s: %s\n", r.Name, r.line())
		}
	}
}

// median is how many seeds half of the faults needed.
func (s *summary) median() uint64 {
	var all []uint64
	for i := range s.Results {
		if r := &s.Results[i]; r.Caught && r.Seeds > 0 {
			all = append(all, r.Seeds)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

func (r *result) verdict() string {
	if r.Caught {
		return "yes"
	}
	return "NO"
}

func (r *result) count() string {
	if r.Seeds == 0 {
		return "?"
	}
	return fmt.Sprint(r.Seeds)
}

func (r *result) line() string {
	switch {
	case r.Caught && r.Seeds > 0:
		return fmt.Sprintf("caught by %s at seed number %d", r.By, r.Seeds)
	case r.Caught:
		return fmt.Sprintf("caught: %s, %s", r.By, r.Text)
	case r.By != "":
		return fmt.Sprintf("%s: %s", r.By, r.Text)
	}
	return fmt.Sprintf("SURVIVED %d seeds", r.Seeds)
}
