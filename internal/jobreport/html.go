package jobreport

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openimpi/impi/config"
	"github.com/openimpi/impi/internal/quantity"
	"github.com/openimpi/impi/internal/wireup"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// Marks around the data of a report in its file. JSON written by encoding/json contains no "<".
const (
	dataBegins = `<script type="application/json" id="impi-report">`
	dataEnds   = `</script>`
)

const mostFile = 64 << 20

// ErrFile is wrapped by errors about files that are no reports.
var ErrFile = errors.New("no report of a job")

// ErrCut is wrapped by errors about files that begin as reports but are incomplete.
var ErrCut = errors.New("the report of a job, but cut off: copy it again from the machine of the site's head")

//go:embed page.html
var page string

var pageBegins, _, _ = strings.Cut(page, "{{")

// pageTemplate is parsed when the first report is written, and not as each process starts.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"seconds": seconds, "bytes": quantity.Bytes, "who": (*Report).who, "clock": clock, "share": share,
	}).Parse(page))
})

// HTML writes the report as an HTML file.
func (r *Report) HTML(w io.Writer) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, struct {
		*Report
		Classes []string
		Longest []string
		Matrix  []row
		Mixed   []string
	}{r, r.classes(), r.longest(), r.matrix(), r.mixed()}); err != nil {
		return err
	}
	fmt.Fprintf(&b, "%s%s%s\n</body></html>\n", dataBegins, data, dataEnds)
	_, err = b.WriteTo(w)
	return err
}

// Save writes the whole file or nothing: there is never a partial file under its name. Only its
// owner may read it. It replaces a regular file at most.
func (r *Report) Save(path string) error {
	f, err := temporary(path)
	if err != nil {
		return err
	}
	err = errors.Join(r.HTML(f), f.Sync(), f.Close(), config.NotRegular(path))
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// SaveBeside is Save for a job that has found before at the path when it began; nil: nothing. What
// has come since is kept, as another job has written it, and the report has the ID of this process
// in its name instead. It returns the name.
func (r *Report) SaveBeside(path string, before fs.FileInfo) (name string, err error) {
	now, err := os.Lstat(path)
	if err == nil && (before == nil || !os.SameFile(before, now) || !before.ModTime().Equal(now.ModTime())) {
		ext := filepath.Ext(path)
		path = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), os.Getpid(), ext)
	}
	return path, r.Save(path)
}

// CheckWritable returns why a file cannot be written, or nil if it probably can.
func CheckWritable(path string) error {
	if err := config.NotRegular(path); err != nil {
		return err
	}
	f, err := temporary(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func temporary(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), ".impi-report-*")
}

// Read reads the data in the page of a report. The error wraps ErrCut if the end of the page is
// missing, and ErrFile if the file is no report.
func Read(path string) (*Report, error) {
	b, err := plainfile.Read(path, mostFile)
	if errors.Is(err, plainfile.ErrSize) {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if err != nil {
		return nil, err
	}
	_, data, found := bytes.Cut(b, []byte(dataBegins))
	data, _, ended := bytes.Cut(data, []byte(dataEnds))
	if !ended && (found || bytes.HasPrefix(b, []byte(pageBegins))) {
		return nil, fmt.Errorf("%s: %w", path, ErrCut)
	}
	if !found || !ended {
		return nil, fmt.Errorf("%s: %w: such a file is written by a job with report { path = ... } in its file, or with -report", path, ErrFile)
	}
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrFile, err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("%s: %w of this release: it has schema %d, this program reads %d", path, ErrFile, r.Schema, Schema)
	}
	return r, nil
}

// classes are the classes of calls that some rank has made, those with most time first.
func (r *Report) classes() []string {
	sums := r.byClass()
	return slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		if sums[a] != sums[b] {
			return int(min(max(sums[b]-sums[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
}

// longest are the calls in which all ranks were longest, of which each rank's time is known.
func (r *Report) longest() (names []string) {
	for _, c := range r.Calls[:min(len(r.Calls), mostByRank)] {
		names = append(names, c.Name)
	}
	return names
}

func (r *Report) byClass() map[string]int64 {
	sums := make(map[string]int64)
	for _, c := range r.Calls {
		sums[c.Class] += c.Time
	}
	return sums
}

// mixed says which figures were taken at other moments than the rest, a line each, or returns nil
// if all are up to the end.
func (r *Report) mixed() (lines []string) {
	for _, m := range r.Moments {
		where := "site " + m.Site
		if m.Host != "" {
			where = "host " + m.Host + " of " + where
		}
		procs := "procs"
		if m.Procs == 1 {
			procs = "proc"
		}
		lines = append(lines, fmt.Sprintf("%d %s on %s: as of %s, when their node answered last", m.Procs, procs, where, clock(m.At)))
	}
	for _, s := range r.Sites {
		if s.Known != toTheEnd && !strings.HasPrefix(s.Known, ranStill) {
			lines = append(lines, "site "+s.Name+": "+s.Known)
		}
	}
	return lines
}

type row struct {
	From  int
	Cells []cell
}

type cell struct {
	Sent
	Share int // percent of the largest number of bytes
}

// matrix has the messages between all, for those that have sent or received some.
func (r *Report) matrix() (rows []row) {
	var most uint64
	at := make(map[[2]int]Sent)
	in := make(map[int]bool)
	for _, s := range r.Sent {
		most = max(most, s.Bytes)
		at[[2]int{s.From, s.To}] = s
		in[s.From], in[s.To] = true, true
	}
	all := slices.Sorted(maps.Keys(in))
	for _, from := range all {
		x := row{From: from}
		for _, to := range all {
			c := cell{Sent: at[[2]int{from, to}]}
			c.From, c.To = from, to
			if most > 0 {
				c.Share = int(c.Bytes * 100 / most)
			}
			x.Cells = append(x.Cells, c)
		}
		rows = append(rows, x)
	}
	return rows
}

func (r *Report) who(n int) string {
	switch {
	case n == wireup.NoPeer:
		return "others"
	case r.ByHost && n >= 0 && n < len(r.Hosts):
		return r.Hosts[n]
	}
	return fmt.Sprint(n)
}

func seconds(ns int64) string {
	switch d := time.Duration(ns); {
	case d == 0:
		return ""
	case d < time.Millisecond:
		return fmt.Sprintf("%.3f ms", d.Seconds()*1e3)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02 15:04:05.000 MST")
}

func share(part, whole int64) int {
	if whole <= 0 {
		return 0
	}
	return int(min(100, max(0, part*100/whole)))
}
