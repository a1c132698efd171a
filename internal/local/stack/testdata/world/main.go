// Command world is a program that runs along with a stack: it answers with its process id
// and the address of the Invoke API, and ends slowly if it has an argument.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 {
		signal.Ignore(syscall.SIGTERM)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("LOCAL_WORLD_PORT"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("the world is there")
	_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:gosec // a test's
		fmt.Fprintf(w, "%d %s", os.Getpid(), os.Getenv("AWS_ENDPOINT_URL_LAMBDA"))
	}))
}
