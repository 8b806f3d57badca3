package conformance

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/conformance/report"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// Line returns one line of the table for people: verdict, ID, data plane, name, seconds, and the
// first line of the reason.
func Line(r Result) string {
	plane := cmp.Or(string(r.Plane), "-")
	line := fmt.Sprintf("%-4s  %-11s %-8s %-22s %6.2fs", report.Mark(r.Verdict), r.ID, plane, r.Name, r.Seconds)
	if r.Reason != "" {
		line += "  " + report.FirstLine(r.Reason)
	}
	return line
}

// WriteSummary writes the result of a run, for people: the verdict and its four halves.
func (r *Report) WriteSummary(w io.Writer) {
	p := report.Printer{W: w}
	p.Failures(r.rows())
	p.Line("")
	p.Line("correct  %s", r.half(Correct, r.Correct))
	p.Line("robust   %s", r.half(Robust, r.Robust))
	r.writeSpeed(p)
	if r.Site != nil {
		r.Site.write(p)
	}
	for _, x := range r.NotTried {
		p.Line("not tried: %s", x)
	}
	word := "PASS"
	if r.Verdict != transporttest.Pass {
		word = "FAIL"
	}
	p.Line("\n%s: %d passed, %d failed, %d skipped, in %.1f s", word, r.Passed, r.Failed, r.Skipped, r.Seconds)
}

func (r *Report) half(k Kind, good bool) string {
	passed, ran := r.tally(k)
	if ran == 0 {
		return "not tried"
	}
	if good {
		return fmt.Sprintf("yes, %d of %d rules", passed, ran)
	}
	return fmt.Sprintf("NO, %d of %d rules; violated: %s", passed, ran, r.failures(k))
}

func (r *Report) writeSpeed(p report.Printer) {
	if len(r.Speed) == 0 {
		p.Line("fast     not measured")
	}
	for i, s := range r.Speed {
		title := "fast"
		if i > 0 {
			title = ""
		}
		p.Line("%-8s %-8s half round trip %7.2f us, %5.2fx our tcp (%.2f us); stream %6.2f GB/s, %5.2fx (%.2f)",
			title, s.Plane, s.HalfRoundTrip, s.Latency(), s.TCPHalfRoundTrip, s.Stream/1e9, s.Throughput(), s.TCPStream/1e9)
	}
}

func (s *Site) write(p report.Printer) {
	p.Line("a site sees")
	p.Line("  %s %s by %s, written with %s, protocol %d%s", s.Name, s.Version, cmp.Or(s.Vendor, "nobody in particular"), s.SDK, s.Protocol, mtlsWord(s.MTLS))
	if s.Unconfined {
		p.Line("  unconfined: it was judged with all rights of its node, and needs confine = false")
	}
	for _, x := range s.Lacks {
		p.Line("  lacks %s", x)
	}
	if s.Problem != "" {
		p.Line("  degraded: %s", s.Problem)
	}
	p.Line("  data planes %s; reach %s; features %s", joined(s.Planes), s.Reach, joined(s.Features))
	p.Line("  starts in %.0f ms, %.1f MB of its own, %d threads, %d descriptors", s.StartSeconds*1000, float64(s.Own)/1e6, s.Threads, s.Descriptors)
	p.Line("  addresses like %s", s.Address)
	p.Line("  in the job file:")
	for line := range strings.Lines(s.Block()) {
		p.Line("    %s", strings.TrimRight(line, "\n"))
	}
}

func mtlsWord(on bool) string {
	if on {
		return ", AutoMTLS"
	}
	return ", without AutoMTLS"
}

func joined[S ~string](list []S) string {
	if len(list) == 0 {
		return "none"
	}
	words := make([]string, len(list))
	for i, x := range list {
		words[i] = string(x)
	}
	return strings.Join(words, " ")
}

// Block returns the transport's block for a job file, with every setting at its default.
func (s *Site) Block() string {
	var b strings.Builder
	fmt.Fprintf(&b, "transport %q {\n", s.Name)
	if s.SHA256 != "" {
		fmt.Fprintf(&b, "  plugin = %q", host.Prefix+s.Name)
		if file := filepath.Base(s.Path); file != host.Prefix+s.Name {
			fmt.Fprintf(&b, " # now called %s: rename it", file)
		}
		fmt.Fprintf(&b, "\n  sha256 = %q\n", s.SHA256)
	}
	if !s.MTLS {
		b.WriteString("  auto_mtls = false\n")
	}
	if s.Unconfined {
		b.WriteString("  confine = false\n")
	}
	if len(s.Settings) > 0 {
		b.WriteString("  config {\n")
		for _, x := range s.Settings {
			fmt.Fprintf(&b, "    %s # %s\n", assignment(x), x.Doc)
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func assignment(s Setting) string {
	switch {
	case s.Default != nil:
		return s.Name + " = " + literal(s.Default)
	case s.Required:
		return s.Name + " = ... (" + s.Type + ", required)"
	default:
		return "# " + s.Name + " = ... (" + s.Type + ")"
	}
}

func literal(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case []string:
		words := make([]string, len(v))
		for i, x := range v {
			words[i] = fmt.Sprintf("%q", x)
		}
		return "[" + strings.Join(words, ", ") + "]"
	case float64: // JSON has whole numbers as floats
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}
