package conformance

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/conformance/report"
	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// Result describes how one case ended.
type Result struct {
	ID      string                `json:"id"`
	Name    string                `json:"name"`
	Rule    string                `json:"rule"`
	Kind    Kind                  `json:"kind"`
	Plane   transports.DataPlane  `json:"plane,omitempty"` // data plane of the links; empty: no links
	Verdict transporttest.Verdict `json:"verdict"`
	Reason  string                `json:"reason,omitempty"` // what was violated, or why it was skipped
	Remedy  string                `json:"remedy,omitempty"` // what to do about a violation
	Log     []string              `json:"log,omitempty"`
	Seconds float64               `json:"seconds"`
}

// Setting is one attribute of the transport's config block.
type Setting struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required,omitempty"`
	Default  any    `json:"default,omitempty"`
	Doc      string `json:"doc"`
}

// Site is what a site sees of the plugin.
type Site struct {
	Name         string                 `json:"name"`
	Version      string                 `json:"version"`
	Vendor       string                 `json:"vendor"`
	SDK          string                 `json:"sdk"`
	Protocol     int                    `json:"protocol"`          // version that is used
	Newest       int                    `json:"protocol_newest"`   // highest version that it supports
	Lacks        []string               `json:"lacks,omitempty"`   // features missing in the used version
	Problem      string                 `json:"problem,omitempty"` // its report of its health
	MTLS         bool                   `json:"auto_mtls"`
	Unconfined   bool                   `json:"unconfined"` // it was judged with all rights of its node
	Path         string                 `json:"path"`
	SHA256       string                 `json:"sha256,omitempty"`
	Planes       []transports.DataPlane `json:"data_planes"`
	Features     []transports.Feature   `json:"features"`
	Reach        transports.Reach       `json:"reach"`
	Settings     []Setting              `json:"settings"`
	Address      string                 `json:"address"`       // an example
	StartSeconds float64                `json:"start_seconds"` // until it was ready
	Resident     int64                  `json:"resident_bytes"`
	Own          int64                  `json:"own_bytes"` // of these, in no file and not shared
	CPUSeconds   float64                `json:"cpu_seconds"`
	Threads      int                    `json:"threads"`
	Descriptors  int                    `json:"descriptors"`
}

// Report is everything that a run has found.
type Report struct {
	Verdict  transporttest.Verdict `json:"verdict"`
	Correct  bool                  `json:"correct"`
	Robust   bool                  `json:"robust"`
	Quick    bool                  `json:"quick"`
	Begun    time.Time             `json:"begun"`
	Seconds  float64               `json:"seconds"`
	Passed   int                   `json:"passed"`
	Failed   int                   `json:"failed"`
	Skipped  int                   `json:"skipped"`
	Site     *Site                 `json:"site,omitempty"`
	Speed    []Speed               `json:"speed,omitempty"`
	NotTried []string              `json:"not_tried,omitempty"` // data planes that this node has not, and so on
	Results  []Result              `json:"results"`
}

func (r *Report) count() {
	r.Correct, r.Robust, r.Verdict = true, true, transporttest.Pass
	r.Passed, r.Failed, r.Skipped = report.Tally(r.rows())
	for _, x := range r.Results {
		if x.Verdict == transporttest.Pass || x.Verdict == transporttest.Skip {
			continue
		}
		r.Verdict = transporttest.Fail
		if x.Kind == Robust {
			r.Robust = false
		} else {
			r.Correct = false
		}
	}
	if r.Passed == 0 {
		r.Verdict, r.Correct, r.Robust = transporttest.Fail, false, false
	}
}

// triedLinks reports whether a rule about links was tried; wholly: and not skipped.
func (r *Report) triedLinks(wholly bool) bool {
	return slices.ContainsFunc(r.Results, func(x Result) bool {
		return strings.HasPrefix(x.ID, "T-") && (!wholly || x.Verdict != transporttest.Skip)
	})
}

func (r *Report) failures(k Kind) string {
	var ids []string
	for _, x := range r.Results {
		if x.Kind == k && x.Verdict == transporttest.Fail {
			id := x.ID
			if x.Plane != "" {
				id += " (" + string(x.Plane) + ")"
			}
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, ", ")
}

func (r *Report) tally(k Kind) (passed, ran int) {
	for _, x := range r.Results {
		if x.Kind != k || x.Verdict == transporttest.Skip {
			continue
		}
		if ran++; x.Verdict == transporttest.Pass {
			passed++
		}
	}
	return passed, ran
}

// WriteJSON writes the report for programs, with all results.
func (r *Report) WriteJSON(w io.Writer) error { return report.WriteJSON(w, r) }

// WriteJUnit writes the report as JUnit's XML.
func (r *Report) WriteJUnit(w io.Writer) error {
	s := report.Suite{Subject: "transport", Begun: r.Begun, Seconds: r.Seconds}
	if r.Site != nil {
		s.Subject = r.Site.Name
	}
	return report.WriteJUnit(w, s, r.rows())
}

func (r *Report) rows() []report.Row {
	rows := make([]report.Row, len(r.Results))
	for i, x := range r.Results {
		rows[i] = report.Row{
			ID: x.ID, Name: x.Name, Part: string(x.Plane), Rule: x.Rule,
			Verdict: x.Verdict, Reason: x.Reason, Remedy: x.Remedy, Log: x.Log, Seconds: x.Seconds,
		}
	}
	return rows
}
