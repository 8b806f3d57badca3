//go:build race

package job

// raced: the race detector makes each switch between coroutines a hundred times
// as slow, and in one thread it has nothing to find.
const raced = true
