package quic_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openimpi/impi/plugins/sdk/transports"
	"github.com/openimpi/impi/transports/quic"
)

// The page has a row for each setting, with its type and its default.
func TestSettingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/transports.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "### `transport \"quic\"`")
	part, _, _ = strings.Cut(part, "\n### ")
	for _, s := range quic.New().Schema() {
		shown := ""
		switch v := s.Default.(type) {
		case string:
			shown = fmt.Sprintf("`%q`", v)
		case float64:
			shown = fmt.Sprintf("`%.0f`", v)
		case []string:
			shown = "`[]`"
		}
		row := strings.ReplaceAll(fmt.Sprintf("| `%s` | %s | %s |", s.Name, s.Type, shown), "|  |", "| |")
		if !strings.Contains(part, row) {
			t.Errorf("no row %s", row)
		}
		if s.Type == transports.TypePath && !s.Required {
			t.Errorf("%s can be left out", s.Name)
		}
	}
}
