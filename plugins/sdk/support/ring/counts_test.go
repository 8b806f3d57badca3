package ring

import "testing"

func TestCounts(t *testing.T) {
	a, b := pair(t, minSize)
	if n, err := a.Send([][]byte{make([]byte, 100), make([]byte, 23)}); n != 123 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := b.Recv([][]byte{make([]byte, 50)}); n != 50 || err != nil {
		t.Fatal(n, err)
	}
	if sent, received := a.Counts(); sent != 123 || received != 0 {
		t.Errorf("the sender counts %d and %d", sent, received)
	}
	if sent, received := b.Counts(); sent != 0 || received != 50 {
		t.Errorf("the receiver counts %d and %d", sent, received)
	}
}

func TestCountsOfLentBytes(t *testing.T) {
	a, b := lenders(t, minSize)
	long := [][]byte{make([]byte, 100), make([]byte, 4*minLoan)}
	if _, err := a.Lend(long); err != nil {
		t.Fatal(err)
	}
	for want := 100 + 4*minLoan; want > 0; {
		n, err := b.Recv([][]byte{make([]byte, want)})
		if err != nil {
			t.Fatal(err)
		}
		want -= n
	}
	if sent, _ := a.Counts(); sent != 100+4*minLoan {
		t.Errorf("the sender counts %d", sent)
	}
	if _, received := b.Counts(); received != 100+4*minLoan {
		t.Errorf("the receiver counts %d", received)
	}
}
