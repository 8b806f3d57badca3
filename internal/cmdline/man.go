package cmdline

import (
	"fmt"
	"slices"
	"strings"
)

func (p *place) page(version string) string {
	name := strings.ReplaceAll(p.path, " ", "-")
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"impi %s\" \"impi\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(escape(name)), escape(version), escape(name), escape(p.title()))
	b.WriteString(".SH DESCRIPTION\n.nf\n")
	for line := range strings.Lines(p.Help) {
		line = strings.TrimRight(line, "\n")
		if head, ok := section(line); ok {
			fmt.Fprintf(&b, ".fi\n.SH %s\n.nf\n", strings.ToUpper(escape(head)))
			continue
		}
		b.WriteString(escape(line) + "\n")
	}
	b.WriteString(".fi\n")
	return b.String()
}

func section(line string) (head string, ok bool) {
	head, ok = strings.CutSuffix(line, ":")
	first, _, several := strings.Cut(head, " ")
	return head, ok && head != "" && head[0] != '-' && (!several || slices.Contains(heads, first))
}

// heads are words with which the heads of sections begin that are more than a word.
var heads = []string{"Examples", "Flags", "Options"}

// escape escapes text for roff.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\(ga", "^", `\(ha`, "~", `\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}
