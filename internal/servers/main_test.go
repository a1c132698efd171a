package servers

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// envHelper makes this test binary a program of its own: what the tests about
// processes start.
const envHelper = "LOCALSERVER_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(envHelper) {
	case "wait": // until standard input ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	case "serve": // on the address given, and say so
		fmt.Fprintln(os.Stderr, "serving")
		fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Args[1], http.NotFoundHandler()))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
