// Command world serves the external systems of Rocket Rides on 127.0.0.1, at the port
// LOCAL_WORLD_PORT (default 3001; 0 is any free port). It prints its address once the
// server can be reached.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/samekey/samekey/examples/rides/world"
)

func main() {
	if err := serve(cmp.Or(os.Getenv("LOCAL_WORLD_PORT"), "3001")); err != nil {
		log.Fatal(err)
	}
}

func serve(port string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	srv := &http.Server{Handler: new(world.World).Handler(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
