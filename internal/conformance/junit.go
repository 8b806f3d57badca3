package conformance

import (
	"io"

	"github.com/openimpi/impi/internal/conformance/report"
)

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error { return report.WriteJSON(w, r) }

// WriteJUnit writes the report as JUnit's XML.
func (r *Report) WriteJUnit(w io.Writer) error {
	s := report.Suite{Subject: "transport", Begun: r.Begun, Seconds: r.Seconds}
	if r.Site != nil {
		s.Subject = r.Site.Name
	}
	return report.WriteJUnit(w, s, r.rows())
}

// rows are the results as the shared writers want them.
func (r *Report) rows() []report.Row {
	rows := make([]report.Row, len(r.Results))
	for i, x := range r.Results {
		rows[i] = report.Row{
			ID: x.ID, Name: x.Name, Part: string(x.Plane), Rule: x.Rule,
			Verdict: x.Verdict, Reason: x.Reason, Log: x.Log, Seconds: x.Seconds,
		}
	}
	return rows
}
