// Command demo demonstrates a wrapped endpoint: it runs the example as Lambda
// does (its bootstrap in processes behind an HTTP API), on DynamoDB Local, calls
// it over HTTP and prints the real results.
//
// It exits with 1 if a result is wrong.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ok, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run() (ok bool, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	st, err := start(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if cerr := st.close(); err == nil {
			err = cerr
		}
	}()
	s := &story{stage: st}
	s.tell(ctx)
	return s.summary(), nil
}
