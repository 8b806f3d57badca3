package conformance

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/openimpi/impi/plugins/sdk/transports/transporttest"
)

// badge is an SVG of two fields, as READMEs show them. Texts are set to their width, so that it
// looks the same whatever fonts there are.
var badge = template.Must(template.New("badge").Parse(`<svg xmlns="http://www.w3.org/2000/svg" width="{{.Width}}" height="20" role="img" aria-label="{{.Left}}: {{.Right}}">
  <title>{{.Title}}</title>
  <rect width="{{.Split}}" height="20" rx="3" fill="#444"/>
  <rect x="{{.Split}}" width="{{.Rest}}" height="20" rx="3" fill="{{.Colour}}"/>
  <g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">
    <text x="6" y="14" textLength="{{.LeftText}}">{{.Left}}</text>
    <text x="{{.RightAt}}" y="14" textLength="{{.RightText}}">{{.Right}}</text>
  </g>
</svg>
`))

// The measures of a badge, in pixels: of a letter, and beside a text.
const (
	badgeLetter = 7
	badgeSpace  = 6
)

// WriteBadge writes the verdict as an SVG for a README. It also shows the scope of the run: which
// data planes were tried, and whether it was a quick one.
func (r *Report) WriteBadge(w io.Writer) error {
	name, title := "transport", "impi-conform transport"
	if r.Site != nil {
		name = r.Site.Name
		title += fmt.Sprintf(": %s %s, protocol %d, of %s", r.Site.Name, r.Site.Version, r.Site.Protocol, r.Begun.UTC().Format("2006-01-02"))
		if r.Site.Unconfined {
			title += ", unconfined"
		}
		if r.Site.SHA256 != "" {
			title += ", sha256 " + r.Site.SHA256
		}
	}
	left, right, colour := "impi "+name, r.badgeVerdict(), "#1a7f37"
	if r.Verdict != transporttest.Pass || !r.triedLinks(true) {
		colour = "#b42318"
	}
	width := func(s string) int { return badgeLetter * len([]rune(s)) }
	split := width(left) + 2*badgeSpace
	rest := width(right) + 2*badgeSpace
	return badge.Execute(w, map[string]any{
		"Title": title, "Left": left, "Right": right, "Colour": colour,
		"Width": split + rest, "Split": split, "Rest": rest,
		"LeftText": width(left), "RightText": width(right), "RightAt": split + badgeSpace,
	})
}

func (r *Report) badgeVerdict() string {
	if r.Verdict != transporttest.Pass {
		return fmt.Sprintf("%d of %d rules violated", r.Failed, r.Passed+r.Failed)
	}
	if !r.triedLinks(true) {
		return "no link was tried"
	}
	words := "correct and robust"
	if planes := r.planes(); planes != "" {
		words += " (" + planes + ")"
	}
	if r.Quick {
		words += ", quick run"
	}
	return words
}

func (r *Report) planes() string {
	var list []string
	for _, x := range r.Results {
		if p := string(x.Plane); p != "" && (len(list) == 0 || list[len(list)-1] != p) {
			list = append(list, p)
		}
	}
	return strings.Join(list, ", ")
}
