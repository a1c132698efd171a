package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// readyTimeout bounds the start, which takes one to two seconds on an idle
// machine.
const readyTimeout = time.Minute

// portTries is how often a start is repeated with another port because
// somebody took the one that was free a moment before.
const portTries = 5

var errPortTaken = errors.New("another process took the port")

// startLocal starts DynamoDB Local from the install in dir and waits until it
// answers. It doesn't leave a process behind when it fails.
func startLocal(ctx context.Context, java, dir string) (*DB, error) {
	env, err := loopbackEnv(ctx, dir)
	if err != nil {
		return nil, err
	}
	for range portTries {
		var db *DB
		if db, err = startOnFreePort(ctx, java, dir, env); !errors.Is(err, errPortTaken) {
			return db, err
		}
	}
	return nil, err
}

func startOnFreePort(ctx context.Context, java, dir string, env []string) (*DB, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	tmp, err := makeTmp(dir)
	if err != nil {
		return nil, err
	}
	p, err := startProcess(localCommand(java, dir, tmp, port, env))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting DynamoDB Local: %w", err), os.RemoveAll(tmp))
	}
	db := &DB{
		Endpoint: "http://127.0.0.1:" + strconv.Itoa(port),
		stop:     func() error { return errors.Join(p.kill(), os.RemoveAll(tmp)) },
	}
	if err := waitReady(ctx, p, db.Endpoint); err != nil {
		return nil, errors.Join(err, db.stop())
	}
	if err := checkListeners(p.cmd.Process.Pid, port); err != nil {
		return nil, errors.Join(err, db.stop())
	}
	if err := db.firstRequest(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, p.output), db.Close())
	}
	return db, nil
}

// firstRequest shows that the database does more than answer: it loads its
// native library for the first request only, and may fail to.
func (db *DB) firstRequest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if _, err := db.Client().ListTables(ctx, &dynamodb.ListTablesInput{}); err != nil {
		db.httpClient().CloseIdleConnections()
		return fmt.Errorf("DynamoDB Local runs, but its first request failed: %w", err)
	}
	return nil
}

// makeTmp makes a folder for the temporary files of one process: it unpacks a
// native library there and, killed, doesn't remove it. What was left there by
// those whose test process was killed too is removed on this occasion.
func makeTmp(dir string) (string, error) {
	removeOld(dir, "tmp-")
	tmp, err := os.MkdirTemp(dir, "tmp-"+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", fmt.Errorf("making a folder for temporary files: %w", err)
	}
	return tmp, nil
}

// localCommand runs in dir and names its files relative to it: neither the
// class path nor LD_PRELOAD can hold every path that a home folder may have.
func localCommand(java, dir, tmp string, port int, env []string) *exec.Cmd {
	cmd := exec.Command(java,
		// Little memory and a quick start: the database of a test is small.
		"-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.io.tmpdir="+tmp, "-Djava.net.preferIPv4Stack=true",
		"-Djava.library.path=lib", "-Dsqlite4java.library.path=lib",
		"-Dlog4j2.configurationFile=log4j2.xml",
		"-cp", "lib/*", "software.amazon.dynamodb.services.local.main.ServerRunner",
		"-inMemory", "-sharedDb", "-disableTelemetry", "-port", strconv.Itoa(port))
	cmd.Dir = dir
	for _, kv := range os.Environ() {
		// It needs no credentials, so it gets none.
		if !strings.HasPrefix(kv, "AWS_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "DDB_LOCAL_TELEMETRY=0")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// waitReady waits until p answers at endpoint, or ends.
func waitReady(ctx context.Context, p *process, endpoint string) error {
	err := waitAnswer(ctx, endpoint, p.done)
	if err == nil {
		return nil
	}
	out := p.output.String()
	if errors.Is(err, errEnded) {
		if strings.Contains(out, "Failed to bind") || strings.Contains(out, "Address already in use") {
			return errPortTaken
		}
		return fmt.Errorf("%w: %w: %s", err, p.err, out)
	}
	return fmt.Errorf("%w: %s", err, out)
}

var errEnded = errors.New("DynamoDB Local ended early")

// waitAnswer waits for any HTTP answer: DynamoDB refuses a request without
// credentials, and a refusal shows that it is up. It returns errEnded once
// ended is closed; nil never is.
func waitAnswer(ctx context.Context, endpoint string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	probe := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
		Timeout:   5 * time.Second,
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if answers(ctx, probe, endpoint) {
			return nil
		}
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("DynamoDB Local doesn't answer at %s: %w", endpoint, ctx.Err())
		case <-tick.C:
		}
	}
}

func answers(ctx context.Context, c *http.Client, endpoint string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return false
	}
	resp, err := c.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return true
}
