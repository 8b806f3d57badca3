package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/matrix"
)

// A cell that runs again gets a new verdict and keeps its place.
func TestKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "matrix.json")
	result := func(program string, v matrix.Verdict) matrix.Result {
		return matrix.Result{Cell: matrix.Cell{Transport: "tcp", Program: program}, Verdict: v}
	}
	for _, c := range []struct{ now, want []matrix.Result }{
		{[]matrix.Result{result("ring", matrix.Failed), result("large", matrix.OK)}, []matrix.Result{result("ring", matrix.Failed), result("large", matrix.OK)}},
		{[]matrix.Result{result("ring", matrix.OK), result("heat2d", matrix.OK)}, []matrix.Result{result("ring", matrix.OK), result("large", matrix.OK), result("heat2d", matrix.OK)}},
		{[]matrix.Result{result("large", matrix.Failed)}, []matrix.Result{result("ring", matrix.OK), result("large", matrix.Failed), result("heat2d", matrix.OK)}},
	} {
		got, err := kept(file, c.now)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v, %v, want %v", got, err, c.want)
		}
	}
	if err := os.WriteFile(file, []byte("no JSON"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := kept(file, nil); err == nil {
		t.Error("rubbish is taken for results")
	}
}

// Results of several files become one list, in which the last one of a cell counts.
func TestFrom(t *testing.T) {
	dir := t.TempDir()
	page, list := filepath.Join(dir, "page.md"), filepath.Join(dir, "list.json")
	table := "On 2026-01-02 of commit 0123456789ab.\n\n| tcp | fd | direct | none | ok | ok | ok | ok | ok |\n"
	for file, text := range map[string]string{page: table, list: `[{"transport":"tcp","data_plane":"fd","mode":"direct","program":"large","fault":"none","verdict":"failed"},
		{"transport":"c","data_plane":"fd","mode":"direct","program":"ring","fault":"none","verdict":"ok"}]`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := withThoseOf([]string{page, list}, []matrix.Result{{Cell: matrix.Cell{Transport: "quic"}, Verdict: matrix.OK}})
	if err != nil || len(got) != 7 || got[0].Made.Commit != "0123456789ab" || got[4].Verdict != matrix.Failed || got[5].Transport != "c" || got[6].Transport != "quic" {
		t.Errorf("%v, %v", err, got)
	}
	for _, wrong := range []string{filepath.Join(dir, "none"), filepath.Join(dir, "x.md")} {
		if strings.HasSuffix(wrong, ".md") {
			if err := os.WriteFile(wrong, []byte("nothing"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := withThoseOf([]string{wrong}, nil); err == nil {
			t.Errorf("results were read from %s", wrong)
		}
	}
}
