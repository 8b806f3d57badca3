package status

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/links"
)

// TopHelp is the text of -h of impi-node top.
//
//go:embed top.txt
var TopHelp string

// TopCommand returns impi-node top, which shows the status as a table that one can sort and filter,
// in a terminal.
func TopCommand(in, out *os.File) *cmdline.Command {
	c, o := newCommand("top", TopHelp)
	c.Run = func(_ []string, _, errw io.Writer) (int, error) {
		if term := os.Getenv("TERM"); !isTerminal(in, out) || term == "" || term == "dumb" {
			return 0, cmdline.UsageError(errors.New("this is for terminals; impi-node status -watch prints the same, and -json is for programs"))
		}
		o.note = errw
		if len(o.ask(context.Background()).Jobs) == 0 {
			return statusNoJob, links.NoJob(o.Job, o.RunDir)
		}
		o.note = io.Discard // the screen is not to be written over
		ends := o.follow()
		defer ends.close()
		look := func() *Report {
			r := o.ask(context.Background())
			r.Ended = ends.update(r.Jobs)
			return r
		}
		s, err := run(newScreen(look, o.interval()), in, out)
		if err != nil {
			return statusPartial, err
		}
		if s.last == nil {
			return statusOK, nil
		}
		return s.last.report.status(), nil
	}
	return c
}

// run shows a screen in a terminal until the user quits. It waits for no answer of the terminal:
// some give none.
func run(s *screen, in, out *os.File) (*screen, error) {
	m, err := tea.NewProgram(s, tea.WithInput(in), tea.WithOutput(out)).Run()
	if err != nil {
		return nil, err
	}
	return m.(*screen), nil
}

type dueMsg struct{}

// screen is the state of impi-node top: bubbletea calls Update for each key and look, and then
// View.
type screen struct {
	look  func() *Report
	every time.Duration

	last, before *look // nil: there was no look
	rows         []row // of the last look, for the table that is shown

	tables        []*table // the first one is shown
	width, height int
	filter        string // rows that have it in them are shown
	typing        bool   // the user is typing the filter
	top           int    // first row that is shown
	paused        bool
}

func newScreen(ask func() *Report, every time.Duration) *screen {
	return &screen{look: ask, every: every, tables: newTables(), width: 80, height: 24}
}

func (s *screen) table() *table { return s.tables[0] }

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return s.lookAgain }

func (s *screen) lookAgain() tea.Msg { return look{s.look(), time.Now()} }

// Update implements tea.Model: it handles figures that have come, keys, and the size of the
// terminal.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch x := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = x.Width, x.Height
	case look:
		s.before, s.last = s.last, &x
		s.fill()
		return s, tea.Tick(s.every, func(time.Time) tea.Msg { return dueMsg{} })
	case dueMsg:
		if s.paused {
			return s, tea.Tick(s.every, func(time.Time) tea.Msg { return dueMsg{} })
		}
		return s, s.lookAgain
	case tea.KeyPressMsg:
		if x.String() == "ctrl+c" {
			return s, tea.Quit
		}
		return s, s.key(x)
	case tea.PasteMsg:
		if s.typing {
			s.filter += x.Content
		}
	}
	s.scroll(0)
	return s, nil
}

func (s *screen) key(k tea.KeyPressMsg) (quit tea.Cmd) {
	if s.typing {
		s.edit(k)
	} else {
		quit = s.command(k.String())
	}
	s.scroll(0)
	return quit
}

func (s *screen) scroll(n int) { s.top = max(0, min(s.top+n, len(s.shown())-s.page())) }

func (s *screen) fill() {
	s.rows = s.table().rows(s.last, s.before)
	s.scroll(0)
}

func (s *screen) edit(k tea.KeyPressMsg) {
	switch k.Code {
	case tea.KeyEnter:
		s.typing = false
	case tea.KeyEscape:
		s.typing, s.filter = false, ""
	case tea.KeyBackspace:
		if r := []rune(s.filter); len(r) > 0 {
			s.filter = string(r[:len(r)-1])
		}
	default:
		s.filter += k.Text // Text is empty for keys without a character
	}
}

func (s *screen) command(k string) (quit tea.Cmd) {
	switch k {
	case "q", "esc":
		return tea.Quit
	case "up", "k":
		s.scroll(-1)
	case "down", "j":
		s.scroll(1)
	case "pgup":
		s.scroll(-s.page())
	case "pgdown", "space":
		s.scroll(s.page())
	case "home", "g":
		s.top = 0
	case "end", "G":
		s.scroll(len(s.rows))
	case "s", "right", ">":
		s.sortBy(1)
	case "S", "left", "<":
		s.sortBy(-1)
	case "r":
		s.table().reverse = !s.table().reverse
	case "l", "tab":
		s.tables = append(s.tables[1:], s.tables[0])
		s.top = 0
		s.fill()
	case "/":
		s.typing = true
	case "p":
		s.paused = !s.paused
	}
	return nil
}

// sortBy sorts by the column n places further on.
func (s *screen) sortBy(n int) {
	t, columns := s.table(), len(s.table().titles)-1
	t.by = (t.by + n + columns) % columns
}
