// Command demo plays Rocket Rides on this machine, with its real results: the
// functions of template.yaml as processes behind an HTTP API, DynamoDB Local and
// its stream, a queue server, and an outside world, all started by make local.
// What Murphy's law has in store happens to them, and they are killed wherever it
// hurts. It needs Java; it says so where there is none.
//
// It exits with 1 if anything is not as it should be.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
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
	begin := time.Now()
	st, err := open(ctx)
	if errors.Is(err, dynamotest.ErrUnavailable) {
		return false, needs(err)
	}
	if err != nil {
		return false, err
	}
	s := &story{stage: st}
	defer func() {
		keep := !ok && ctx.Err() == nil
		if cerr := st.close(keep); err == nil {
			err = cerr
		}
	}()
	if err := s.tell(ctx); err != nil {
		return false, err
	}
	ok = s.summary()
	fmt.Printf("\n%.0f seconds\n", time.Since(begin).Seconds())
	return ok, nil
}

// needs says what this machine lacks.
func needs(err error) error {
	return fmt.Errorf("this needs Java 17 or newer (JAVA_HOME, or java on the PATH) for DynamoDB Local and the queue server,\n"+
		"and Maven for the first run, which fetches them. make demo-hello plays a smaller story without.\nLooked for: %s",
		strings.ReplaceAll(err.Error(), "\n", "\n  "))
}
