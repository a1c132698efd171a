// Command demo runs Rocket Rides locally and injects failures. It uses make
// local, which starts the functions of template.yaml as processes behind an HTTP
// API, DynamoDB Local with its stream, a queue server, and the external systems.
// The demo kills processes in each phase and prints the real results. It needs
// Java, and says so if Java is missing.
//
// It exits with 1 if a result is wrong.
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

// needs explains what this machine lacks.
func needs(err error) error {
	return fmt.Errorf("this needs Java 17 or newer (JAVA_HOME, or java on the PATH) for DynamoDB Local and the queue server,\n"+
		"and Maven for the first run, which fetches them. make demo-hello plays a smaller story without.\nLooked for: %s",
		strings.ReplaceAll(err.Error(), "\n", "\n  "))
}
