package sdk

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// onThread runs f on a thread of its own, which ends with it.
func onThread(f func(tid int)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and not unlocked
		f(unix.Gettid())
	}()
	<-done
}

// TestShortSlice: only the slice changes, and only under the default policy.
func TestShortSlice(t *testing.T) {
	onThread(func(tid int) {
		before, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			t.Error(err)
			return
		}
		if before.Policy != unix.SCHED_NORMAL {
			t.Logf("the tests run under policy %d", before.Policy)
			return
		}
		if err := askForShortSlice(tid); err != nil {
			t.Error(err)
			return
		}
		after, err := unix.SchedGetAttr(tid, 0)
		if err != nil || after.Policy != before.Policy || after.Nice != before.Nice {
			t.Errorf("%+v became %+v: %v", before, after, err)
		}
		if before.Runtime != 0 && after.Runtime != slice { // older kernels tell nothing of slices
			t.Errorf("slices of %d ns, %d were asked for", after.Runtime, slice)
		}
	})
}

func TestShortSliceLeavesOtherPoliciesAlone(t *testing.T) {
	onThread(func(tid int) {
		batch := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Runtime: 5_000_000}
		if err := unix.SchedSetAttr(tid, &batch, 0); err != nil {
			t.Error(err)
			return
		}
		before, _ := unix.SchedGetAttr(tid, 0)
		if err := askForShortSlice(tid); err != nil {
			t.Error(err)
		}
		if after, err := unix.SchedGetAttr(tid, 0); err != nil || *after != *before {
			t.Errorf("%+v became %+v: %v", before, after, err)
		}
	})
}
