package localtest

import (
	"math"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// StretchEnv names the variable that sets the factor of [Stretch], for the processes
// of a test: theirs is to be the same.
const StretchEnv = "SAMEKEY_TEST_STRETCH"

// Stretch returns a time limit of a test for this machine: d where it is idle, more
// where it is busy, then in whole seconds. It is for time limits that a test has to reach,
// and within which other work has to be done, such as the timeout of a function that
// hangs.
func Stretch(d time.Duration) time.Duration {
	return max(d, (d * time.Duration(factor())).Round(time.Second))
}

// StretchVariable sets the factor of a process to this one's.
func StretchVariable() string { return StretchEnv + "=" + strconv.Itoa(factor()) }

// factor is how many times longer programs take than they work, halved: the limits
// of tests leave room on an idle machine.
var factor = sync.OnceValue(func() int {
	if n, err := strconv.Atoi(os.Getenv(StretchEnv)); err == nil && n > 0 {
		return n
	}
	const runs, most = 5, 20
	var took, worked time.Duration
	for range runs {
		cmd := exec.Command("go", "env", "GOROOT")
		begun := time.Now()
		if cmd.Run() != nil {
			return 1
		}
		took += time.Since(begun)
		worked += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	slow := float64(took) / float64(max(worked, time.Millisecond))
	return min(max(int(math.Ceil(slow/2)), 1), most)
})
