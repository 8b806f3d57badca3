package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Variants live at the same time and take turns; what cannot runs alone.
func TestTurns(t *testing.T) {
	node := impiNode(t)
	o := parsed(t, "-node", node, "-transport", "tcp", "-seconds", "0.006", "-rounds", "3", "-repeat", "6", "-sizes", "8,5000",
		"-beside", "resume,in-process", "-json", "-quiet", "pingpong", "rate")
	var out bytes.Buffer
	if err := compare(context.Background(), o, &out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Results []result `json:"results"`
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Results) != 2 {
		t.Fatalf("%v in %s", err, out.String())
	}
	for _, r := range got.Results {
		for _, row := range r.Rows {
			in := row.Intervals["resume"]
			if len(row.Values) != 3 || in[0] <= 0 || in[1] < in[0] || len(row.Intervals) != 1 || row.Ratios["resume"] <= 0 {
				t.Errorf("%s: %+v", r.Benchmark, row)
			}
		}
	}
}

// A job that ends before its turn says why, and none is waited for.
func TestTurnsOfNobody(t *testing.T) {
	dir := t.TempDir()
	node := filepath.Join(dir, "node")
	if err := os.WriteFile(node, []byte("#!/bin/sh\necho no such thing >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	o := parsed(t, "-node", node, "-transport", "tcp", "-beside", "resume", "-quiet", "-sizes", "8", "pingpong")
	if err := compare(context.Background(), o, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(node, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	o = parsed(t, "-node", node, "-transport", "tcp", "-limit", "50ms", "-beside", "resume", "-quiet", "-sizes", "8", "pingpong")
	if err := compare(context.Background(), o, &bytes.Buffer{}); !errors.Is(err, errStuck) {
		t.Errorf("got %v", err)
	}
}
