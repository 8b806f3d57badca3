package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// The elements of JUnit's XML that CI systems read.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Stamp    string      `xml:"timestamp,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		Time    string     `xml:"time,attr"`
		Failure *junitText `xml:"failure,omitempty"`
		Skip    *junitText `xml:"skipped,omitempty"`
		Out     string     `xml:"system-out,omitempty"`
	}
	junitText struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// Suite describes a run as a whole in JUnit's XML.
type Suite struct {
	Subject string // name of the judged subject; the first word of each case's class
	Begun   time.Time
	Seconds float64
}

// WriteJUnit writes the rows as a test suite in the XML of JUnit, which CI systems show.
func WriteJUnit(w io.Writer, s Suite, rows []Row) error {
	_, failed, skipped := Tally(rows)
	x := junitSuite{
		Name: "impi-conform", Tests: len(rows), Failures: failed, Skipped: skipped,
		Time: fmt.Sprintf("%.3f", s.Seconds), Stamp: s.Begun.UTC().Format("2006-01-02T15:04:05"),
	}
	for _, r := range rows {
		x.Cases = append(x.Cases, s.testcase(r))
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(x); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s Suite) testcase(r Row) junitCase {
	c := junitCase{
		Class: s.Subject, Name: strings.TrimSpace(r.ID + " " + r.Name),
		Time: fmt.Sprintf("%.3f", r.Seconds), Out: strings.Join(r.Log, "\n"),
	}
	if r.Part != "" {
		c.Class += "." + r.Part
	}
	switch r.Verdict {
	case transporttest.Fail:
		c.Failure = &junitText{r.Rule, r.whole()}
	case transporttest.Skip:
		c.Skip = &junitText{Message: r.Reason}
	case transporttest.Pass: // a passed case has neither
	}
	return c
}
