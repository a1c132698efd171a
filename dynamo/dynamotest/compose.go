package dynamotest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"time"

	"github.com/samekey/samekey/internal/servers"
)

// tryCompose runs DynamoDB Local in a container, whose port is published on 127.0.0.1
// only.
func tryCompose(ctx context.Context, s *servers.Search) (*servers.Found, error) {
	found, err := startCompose(ctx)
	if err != nil {
		s.Miss("docker compose", err)
		return nil, nil
	}
	return found, nil
}

func startCompose(ctx context.Context) (*servers.Found, error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return nil, errors.New("docker isn't in PATH: install Docker with its compose plugin")
	}
	if _, err := runDocker(ctx, docker, "compose", "version"); err != nil {
		return nil, fmt.Errorf("%w: install Docker's compose plugin", err)
	}
	// The project's name is random, so that Close can't end another program's containers.
	c := compose{docker: docker, project: "dynamotest-" + strings.ToLower(rand.Text())}
	found, err := c.start(ctx)
	if err != nil {
		return nil, errors.Join(err, c.down()) //nolint:contextcheck // cleans up even if ctx has ended
	}
	return found, nil
}

type compose struct{ docker, project string }

func (c compose) start(ctx context.Context) (*servers.Found, error) {
	if _, err := c.run(ctx, "up", "--detach", "--quiet-pull"); err != nil {
		return nil, err
	}
	out, err := c.run(ctx, "port", "dynamodb", "8000")
	if err != nil {
		return nil, err
	}
	addr, err := netip.ParseAddrPort(strings.TrimSpace(out))
	if err != nil {
		return nil, fmt.Errorf("docker compose port says %q: %w", out, err)
	}
	if !addr.Addr().Unmap().IsLoopback() {
		return nil, fmt.Errorf("docker published the database on %s instead of loopback", addr)
	}
	found := &servers.Found{Endpoint: "http://" + addr.String(), Stop: c.down}
	if err := servers.WaitAnswer(ctx, product, found.Endpoint, nil); err != nil {
		return nil, err
	}
	if err := firstRequest(ctx, found.Endpoint); err != nil {
		return nil, err
	}
	return found, nil
}

// compose.down removes the container and its network. It has a context of its own,
// because the caller's context may have ended.
func (c compose) down() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := c.run(ctx, "down", "--volumes", "--timeout", "0")
	return err
}

// compose.run runs docker compose, with the embedded compose.yaml on standard input.
func (c compose) run(ctx context.Context, args ...string) (string, error) {
	return runDocker(ctx, c.docker, append([]string{"compose", "--project-name", c.project, "--file", "-"}, args...)...)
}

func composeFile() []byte {
	if separates() {
		return bytes.Replace(localFile("compose.yaml"), []byte(" -sharedDb"), nil, 1)
	}
	return localFile("compose.yaml")
}

func runDocker(ctx context.Context, docker string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, docker, args...)
	var out bytes.Buffer
	errOut := &servers.HeadTail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(composeFile()), &out, errOut
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.String(), nil
}
