package unix

import "fmt"

type otherUserError struct{ uid, pid, ours int }

func (e *otherUserError) Error() string {
	return fmt.Sprintf("the peer, process %d, is run by user %d; this process, of user %d, talks only to its own user and to root",
		e.pid, e.uid, e.ours)
}

// admit returns an error unless a process of user ours may talk to process pid of user uid.
func admit(uid, ours, pid int) error {
	if uid == ours || uid == 0 {
		return nil
	}
	return &otherUserError{uid: uid, pid: pid, ours: ours}
}
