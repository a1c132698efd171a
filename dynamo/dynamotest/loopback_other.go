//go:build !linux

package dynamotest

import (
	"context"
	"fmt"
	"runtime"

	"github.com/samekey/samekey/internal/servers"
)

// canKeepLocal returns an error unless DYNAMOTEST_ALL_INTERFACES=1 permits every interface:
// DynamoDB Local listens on every interface, and only Linux has a way to keep it on loopback.
func canKeepLocal() error {
	if servers.Allowed(envAllInterfaces) {
		return nil
	}
	return fmt.Errorf("DynamoDB Local listens on every interface, and on %s nothing keeps it from that: set %s=1 behind a firewall, or use Docker", runtime.GOOS, envAllInterfaces)
}

func loopbackEnv(context.Context, string) ([]string, error) { return nil, nil }
