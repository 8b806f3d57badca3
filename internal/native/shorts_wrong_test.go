//go:build cgo && linux

package native

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/internal/native/shortbox"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// scripted is a shim whose library delivers some short messages, all of rank 1.
const scripted = `#include "library.h"
#include <string.h>
static struct given { int64_t bytes; struct impi_short m; char data[IMPI_SHORT_MOST]; } all[100] = {%s};
static int next, sent;
static int version(char *text, int room, int *standard) { strncpy(text, "Some MPI 1.2", room); *standard = 3; return 0; }
static int poll(void *buf, int64_t room, struct impi_native_message *m) { return IMPI_NATIVE_NONE; }
static int begin(int64_t room, int count) { return 0; }
static int send(int to, const void *buf, int64_t bytes, int32_t *number) { *number = IMPI_NATIVE_NONE; sent++; return 0; }
static int again(void) { next++; return 0; }
static int look(const void **buf, int64_t *bytes, int32_t *source)
{
	if (next == 100 || !all[next].bytes)
		return IMPI_NATIVE_NONE;
	*buf = &all[next].m, *bytes = all[next].bytes, *source = %d;
	return 0;
}
const struct impi_native impi_native = {.abi = IMPI_NATIVE_ABI, .size = sizeof(struct impi_native), .version = version, .poll = poll,
	.shorts_begin = begin, .short_send = send, .short_again = again, .short_next = look};
`

// TestShortsWrong: short messages of a process that does not keep to the rules end them all, before
// anything is written where nothing may be.
func TestShortsWrong(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		skips.NotRun(t, "there is no cc", "apt-get install gcc")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		all    string
		source int
		sent   int // by this proc, before
		come   uint64
		read   uint64
		right  bool
	}{
		"none":                         {"", 1, 0, 0, 0, true},
		"as many as there are boxes":   {"[0 ... 63] = {32}", 1, 0, 64, 0, true},
		"one more":                     {"[0 ... 64] = {32}", 1, 0, 64, 0, false},
		"all were taken":               {"{2, {5 | IMPI_SHORT_TAKEN << 8}}", 1, 5, 0, 5, true},
		"more than were sent":          {"{2, {6 | IMPI_SHORT_TAKEN << 8}}", 1, 5, 0, 0, false},
		"fewer than before":            {"{2, {5 | IMPI_SHORT_TAKEN << 8}}, {2, {4 | IMPI_SHORT_TAKEN << 8}}", 1, 5, 0, 5, false},
		"of a rank that there is not":  {"{32}", 2, 0, 0, 0, false},
		"of a rank below 0":            {"{32}", -1, 0, 0, 0, false},
		"of a rank without boxes":      {"{32}", 0, 0, 0, 0, false},
		"a part of an envelope":        {"{31}", 1, 0, 0, 0, false},
		"less than a form":             {"{1}", 1, 0, 0, 0, false},
		"taken, and more":              {"{3, {IMPI_SHORT_TAKEN << 8}}", 1, 0, 0, 0, false},
		"alike to none":                {"{10, {IMPI_SHORT_ALIKE << 8}}", 1, 0, 0, 0, false},
		"alike":                        {"{32}, {10, {IMPI_SHORT_ALIKE << 8}}, {2, {IMPI_SHORT_ALIKE << 8}}", 1, 0, 3, 0, true},
		"alike and longer than may be": {"{32}, {4003, {IMPI_SHORT_ALIKE << 8}}", 1, 0, 1, 0, false},
		"not as long as it says":       {"{40, {.bytes = 9}}", 1, 0, 0, 0, false},
		"as long as may be":            {"{4032, {.bytes = 4000}}", 1, 0, 1, 0, true},
		"longer than may be":           {"{4033, {.bytes = 4001}}", 1, 0, 0, 0, false},
		"an envelope that is a number": {"{32, {.bytes = 4294967295u}}", 1, 0, 0, 0, false},
		"no form that there is":        {"{32, {7 << 8}}", 1, 0, 0, 0, false},
		"in two pieces":                {"{4032, {.bytes = 8000}}, {4002, {IMPI_SHORT_MORE << 8}}, {32}", 1, 0, 2, 0, true},
		"only the first piece":         {"{4032, {.bytes = 8000}}", 1, 0, 0, 0, true},
		"a piece of nothing":           {"{2, {IMPI_SHORT_MORE << 8}}", 1, 0, 0, 0, false},
		"a piece that is too long":     {"{4032, {.bytes = 4001}}, {4, {IMPI_SHORT_MORE << 8}}", 1, 0, 0, 0, false},
		"a piece that is too short":    {"{4032, {.bytes = 8000}}, {4001, {IMPI_SHORT_MORE << 8}}", 1, 0, 0, 0, false},
		"another one between pieces":   {"{4032, {.bytes = 8000}}, {32}", 1, 0, 0, 0, false},
		"too many pieces":              {"{4032, {.bytes = 8001}}", 1, 0, 0, 0, false},
		"alike, in two pieces":         {"{32}, {4006, {IMPI_SHORT_LONG_ALIKE << 8 | 4001 << 16}}, {3, {IMPI_SHORT_MORE << 8}}", 1, 0, 2, 0, true},
		"alike to none, in two pieces": {"{4006, {IMPI_SHORT_LONG_ALIKE << 8 | 4001 << 16}}", 1, 0, 0, 0, false},
		"alike, in too many pieces":    {"{32}, {4006, {IMPI_SHORT_LONG_ALIKE << 8 | 8001 << 16}}", 1, 0, 1, 0, false},
		"alike, in one piece":          {"{32}, {4006, {IMPI_SHORT_LONG_ALIKE << 8 | 4000 << 16}}", 1, 0, 1, 0, false},
		"apart":                        {"{32, {IMPI_SHORT_APART << 8, .bytes = 8001}}, {6, {IMPI_SHORT_APART_ALIKE << 8 | 8001 << 16}}", 1, 0, 2, 0, true},
		"apart, as long as may be":     {"{32, {IMPI_SHORT_APART << 8, .bytes = IMPI_LONG_MOST}}", 1, 0, 1, 0, true},
		"apart and longer than may be": {"{32, {IMPI_SHORT_APART << 8, .bytes = IMPI_LONG_MOST + 1}}", 1, 0, 0, 0, false},
		"apart and short":              {"{32, {IMPI_SHORT_APART << 8, .bytes = 8000}}", 1, 0, 0, 0, false},
		"apart, and data":              {"{33, {IMPI_SHORT_APART << 8, .bytes = 8001}}", 1, 0, 0, 0, false},
		"apart, alike to none":         {"{6, {IMPI_SHORT_APART_ALIKE << 8 | 8001 << 16}}", 1, 0, 0, 0, false},
		"apart, without a length":      {"{32}, {2, {IMPI_SHORT_APART_ALIKE << 8}}", 1, 0, 1, 0, false},
	} {
		dir := t.TempDir()
		shim, source := filepath.Join(dir, "shim.so"), filepath.Join(dir, "shim.c")
		if err := os.WriteFile(source, fmt.Appendf(nil, scripted, c.all, c.source), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-I", here, "-o", shim, source).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		l, err := Load(shim)
		if err != nil {
			t.Fatal(err)
		}
		l.Size = 2
		all := l.beginShorts()
		b, err := mapped(int(unsafe.Sizeof(shortbox.Boxes{})))
		if err != nil {
			t.Fatal(err)
		}
		x := (*shortbox.Boxes)(unsafe.Pointer(&b[0]))
		x.Rank = 1
		all.attach(x)
		for range c.sent {
			if err := all.put(x, new(link.CarriedMessage), nil); err != nil {
				t.Fatal(err)
			}
		}
		var a arrival
		for range 20 {
			if _, err = l.poll(unsafe.Pointer(&b[0]), 0, &a); err != nil {
				break
			}
		}
		if c.right != (err == nil) || err != nil && !errors.Is(err, ErrFailed) || x.Come != c.come || x.Read.Load() != c.read {
			t.Errorf("%s: %v, %d messages have come and %d were taken, want %d and %d", name, err, x.Come, x.Read.Load(), c.come, c.read)
		}
	}
}
