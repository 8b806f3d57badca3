package conformance

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/openimpi/impi/transports/transporttest"
)

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

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

// WriteJUnit writes the report as JUnit's XML.
func (r *Report) WriteJUnit(w io.Writer) error {
	s := junitSuite{
		Name: "impi-conform", Tests: len(r.Results), Failures: r.Failed, Skipped: r.Skipped,
		Time: fmt.Sprintf("%.3f", r.Seconds), Stamp: r.Begun.UTC().Format("2006-01-02T15:04:05"),
	}
	class := "transport"
	if r.Site != nil {
		class = r.Site.Name
	}
	for _, x := range r.Results {
		c := junitCase{Class: class, Name: x.ID + " " + x.Name, Time: fmt.Sprintf("%.3f", x.Seconds), Out: strings.Join(x.Log, "\n")}
		if x.Plane != "" {
			c.Class += "." + string(x.Plane)
		}
		switch x.Verdict {
		case transporttest.Fail:
			c.Failure = &junitText{x.Rule, x.Reason}
		case transporttest.Skip:
			c.Skip = &junitText{Message: x.Reason}
		case transporttest.Pass: // it has neither
		}
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
