package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/openimpi/impi/internal/abi"
)

func TestABI(t *testing.T) {
	status, out, _ := impiNode(t, "", "abi")
	done, missing, _ := strings.Cut(out, "\nmissing, ")
	if status != statusOK || !strings.HasPrefix(out, "664 of 664 functions are implemented:\n") || missing != "" {
		t.Fatalf("status %d\n%s", status, out)
	}
	for _, f := range abi.Functions() {
		list := missing
		if f.Implemented {
			list = done
		}
		if !strings.Contains(list+" ", " "+f.Name) {
			t.Errorf("%s is not where it should be", f.Name)
		}
	}
	if !strings.Contains(done, " MPI_Send ") {
		t.Error("MPI_Send is missing")
	}

	status, out, _ = impiNode(t, "", "abi", "-json")
	var answer struct{ Functions []abi.Support }
	if err := json.Unmarshal([]byte(out), &answer); err != nil || status != statusOK {
		t.Fatalf("status %d, %v\n%s", status, err, out)
	}
	if len(answer.Functions) != 664 {
		t.Errorf("%d functions, want 664", len(answer.Functions))
	}
	if status, _, errs := impiNode(t, "", "abi", "more"); status != statusUsage || !strings.Contains(errs, "impi-node help abi") {
		t.Errorf("status %d\n%s", status, errs)
	}
}
