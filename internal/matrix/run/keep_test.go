package main

import (
	"os"
	"path/filepath"
	"slices"
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
