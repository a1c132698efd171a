package main

// The environment of a test binary with mutants.
const (
	chosenEnv  = "SAMEKEY_MUTANT"  // "idem 17"; nothing for the code as it is
	reachedEnv = "SAMEKEY_REACHED" // a file for the mutants whose places were reached
	depthEnv   = "SAMEKEY_DEPTH"   // the process that set it, and how many processes it comes from
)

// switchFile is the file that each package gets besides its own: the switch between the
// code and its mutants. %[1]s is the package's name, %[2]q its folder.
const switchFile = `package %[1]s

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

var mutantChosen = func() int {
	// A test that runs itself as a program must not do so for ever.
	if pid, before, _ := strings.Cut(os.Getenv("` + depthEnv + `"), " "); pid != strconv.Itoa(os.Getpid()) {
		depth, _ := strconv.Atoi(before)
		if depth > 3 {
			os.Exit(3)
		}
		_ = os.Setenv("` + depthEnv + `", strconv.Itoa(os.Getpid())+" "+strconv.Itoa(depth+1))
	}
	if in, number, _ := strings.Cut(os.Getenv("` + chosenEnv + `"), " "); in == %[2]q {
		n, _ := strconv.Atoi(number)
		return n
	}
	return 0
}()

var mutantReached = func() func(int) {
	name := os.Getenv("` + reachedEnv + `")
	if name == "" {
		return nil
	}
	var once sync.Map
	return func(n int) {
		if _, before := once.LoadOrStore(n, true); before {
			return
		}
		if f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			_, _ = f.WriteString(%[2]q + " " + strconv.Itoa(n) + "\n")
			_ = f.Close()
		}
	}
}()

func mutantOn(n int) bool {
	if mutantReached != nil {
		mutantReached(n)
	}
	return n == mutantChosen
}

func mutantNot(n int, cond bool) bool { return cond != mutantOn(n) }
func mutantAnd(n int, cond bool) bool { on := mutantOn(n); return cond && !on }
func mutantOr(n int, cond bool) bool  { on := mutantOn(n); return cond || on }

func mutantPick[T any](n int, is, other T) T {
	if mutantOn(n) {
		return other
	}
	return is
}

func mutantErr(n int, err error) error {
	if mutantOn(n) {
		return nil
	}
	return err
}
`
