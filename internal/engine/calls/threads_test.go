package calls

import "testing"

// TestComputing: a goroutine that computes is seen, and that nothing computes. Either may take
// several looks: on a busy machine a thread may have no turn during one.
func TestComputing(t *testing.T) {
	stop, over := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				over <- n
				return
			default:
				n++
			}
		}
	}()
	for !Computing() {
	}
	close(stop)
	<-over
	for Computing() {
	}
}
