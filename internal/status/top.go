package status

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// TopHelp is the text of -h of impi-node top.
//
//go:embed top.txt
var TopHelp string

// Top runs impi-node top, which is status as a table that one can sort and filter, in a terminal.
func Top(args []string, in, out *os.File, errs io.Writer) int {
	o, err := parse("top", args)
	switch {
	case err == nil && (o.json || o.watch):
		err = errors.New("-json and -watch are for status")
	case err == nil && !isTerminal(in, out):
		err = errors.New("this is for terminals; impi-node status -watch prints the same, and -json is for programs")
	}
	switch {
	case err != nil:
		fmt.Fprintf(errs, "impi-node top: %v\nTry: impi-node help top\n", err)
		return statusUsage
	case o.help:
		fmt.Fprint(out, TopHelp)
		return statusOK
	}
	if len(o.look().Jobs) == 0 {
		fmt.Fprintf(errs, "impi-node top: %s\n", Nothing)
		return statusNoJob
	}
	m, err := tea.NewProgram(newScreen(o.look, o.every), tea.WithAltScreen(), tea.WithInput(in), tea.WithOutput(out)).Run()
	if err != nil {
		fmt.Fprintf(errs, "impi-node top: %v\n", err)
		return statusPartial
	}
	return m.(*screen).last.status()
}

// seen is what a look has found.
type seen struct {
	report *Report
	at     time.Time
}

// dueMsg says that it is time to look again.
type dueMsg struct{}

// screen is the state of impi-node top: bubbletea calls Update for each key and look, and then
// View.
type screen struct {
	look  func() *Report
	every time.Duration

	last *Report
	rows []row // of the last look
	at   time.Time

	width, height int
	by            column // sorted by
	reverse       bool
	filter        string // rows that have it in them are shown
	typing        bool   // of the filter
	top           int    // first row that is shown
	paused        bool
}

func newScreen(look func() *Report, every time.Duration) *screen {
	return &screen{look: look, every: every, last: &Report{}, width: 80, height: 24}
}

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return s.lookAgain }

func (s *screen) lookAgain() tea.Msg { return seen{s.look(), time.Now()} }

// Update implements tea.Model.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch x := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = x.Width, x.Height
	case seen:
		s.take(x)
		s.scroll(0)
		return s, tea.Tick(s.every, func(time.Time) tea.Msg { return dueMsg{} })
	case dueMsg:
		if s.paused {
			return s, tea.Tick(s.every, func(time.Time) tea.Msg { return dueMsg{} })
		}
		return s, s.lookAgain
	case tea.KeyMsg:
		if x.Type == tea.KeyCtrlC {
			return s, tea.Quit
		}
		return s, s.keys(x)
	}
	s.scroll(0)
	return s, nil
}

// keys takes a key, or several that came together.
func (s *screen) keys(k tea.KeyMsg) (quit tea.Cmd) {
	if k.Type != tea.KeyRunes {
		return s.oneKey(k)
	}
	for _, r := range k.Runes {
		if quit = s.oneKey(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}}); quit != nil {
			break
		}
	}
	return quit
}

func (s *screen) oneKey(k tea.KeyMsg) (quit tea.Cmd) {
	if s.typing {
		s.edit(k)
	} else {
		quit = s.command(k.String())
	}
	s.scroll(0)
	return quit
}

// scroll moves the rows that are shown by n.
func (s *screen) scroll(n int) { s.top = max(0, min(s.top+n, len(s.shown())-s.page())) }

// take makes rows of a look, with rates since the one before.
func (s *screen) take(x seen) {
	before := make(map[who]row, len(s.rows))
	for _, r := range s.rows {
		before[r.who] = r
	}
	s.last, s.rows = x.report, rowsOf(x.report)
	for i := range s.rows {
		r := &s.rows[i]
		if b, ok := before[r.who]; ok && r.counts != nil && b.counts != nil {
			r.rate(b, x.at.Sub(s.at))
		}
	}
	s.at = x.at
}

// edit changes the filter by a key.
func (s *screen) edit(k tea.KeyMsg) {
	switch k.Type {
	case tea.KeyEnter:
		s.typing = false
	case tea.KeyEsc:
		s.typing, s.filter = false, ""
	case tea.KeyBackspace:
		if r := []rune(s.filter); len(r) > 0 {
			s.filter = string(r[:len(r)-1])
		}
	case tea.KeyRunes, tea.KeySpace:
		s.filter += string(k.Runes)
	default: // has no meaning in a line
	}
}

// command does what a key is for.
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
	case "pgdown", " ":
		s.scroll(s.page())
	case "home", "g":
		s.top = 0
	case "end", "G":
		s.scroll(len(s.rows))
	case "s", "right", ">":
		s.by = (s.by + 1) % columns
	case "S", "left", "<":
		s.by = (s.by + columns - 1) % columns
	case "r":
		s.reverse = !s.reverse
	case "/":
		s.typing = true
	case "p":
		s.paused = !s.paused
	}
	return nil
}
