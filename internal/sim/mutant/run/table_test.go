package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/openimpi/impi/internal/mutant"
)

var some = summary{Seconds: 12.3, Results: []result{
	{Name: "ack-early", What: "acks", Caught: true, By: "wire ack-mark", Seeds: 3},
	{Name: "lost", What: "wakes", Caught: true, By: "hang"},
	{Name: "kept", What: "nothing", Seeds: 400},
	{Name: "odd", What: "Go", By: "not built", Text: "no"},
	{Name: "late", What: "more", Caught: true, By: "result", Seeds: 90},
}}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	some.table(&b)
	want := `FAULT      CAUGHT  BY             SEEDS  WHAT IT BREAKS
ack-early  yes     wire ack-mark  3      acks
lost       yes     hang           ?      wakes
kept       NO      -              400    nothing
odd        NO      not built      ?      Go
late       yes     result         90     more

3 of 5 faults caught, half of them within 3 seeds, in 12 s
kept: SURVIVED 400 seeds
odd: not built: no
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	some.json(&b)
	var got summary
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.caught() != 3 || len(got.Results) != 5 || got.Results[0] != some.Results[0] {
		t.Errorf("got %+v", got)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-seeds", "0"}, {"-no-such"}} {
		var out, report bytes.Buffer
		if got := newSweeper(nil).command.Run(t.Context(), args, &out, &report); got != mutant.Usage || report.Len() == 0 {
			t.Errorf("%v: status %d, %q", args, got, report.String())
		}
	}
}
