package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/internal/servers"
)

const product = "DynamoDB Local"

// readyTimeout is how long the first request may take.
const readyTimeout = 5 * time.Minute

// startLocal starts DynamoDB Local from the install in dir and waits until the database answers.
// If startLocal fails, it leaves no process behind.
func startLocal(ctx context.Context, java, dir string) (*servers.Found, error) {
	env, err := loopbackEnv(ctx, dir)
	if err != nil {
		return nil, err
	}
	running, err := servers.Server{
		Name: product,
		Dir:  dir,
		Command: func(tmp string, port int) *exec.Cmd {
			return localCommand(java, dir, tmp, port, env)
		},
		PortTaken:         []string{"Failed to bind", "Address already in use"},
		AllInterfaces:     servers.Allowed(envAllInterfaces),
		AllInterfacesHint: "set " + envAllInterfaces + "=1 to let it listen on every interface",
	}.Start(ctx)
	if err != nil {
		return nil, err
	}
	found := &servers.Found{Endpoint: running.Endpoint, Stop: running.Stop}
	if err := firstRequest(ctx, found.Endpoint); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, running.Output()), running.Stop())
	}
	return found, nil
}

// firstRequest checks that the database works. DynamoDB Local loads its native library only at
// the first request, and the load may fail.
func firstRequest(ctx context.Context, endpoint string) error {
	db := &DB{Endpoint: endpoint}
	defer func() { _ = db.Close() }() // only its connections
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if _, err := db.Client().ListTables(ctx, &dynamodb.ListTablesInput{}); err != nil {
		return fmt.Errorf("DynamoDB Local runs, but its first request failed: %w", err)
	}
	return nil
}

// localCommand returns the command that runs DynamoDB Local, with dir as its working directory.
// File names are relative to dir, because the path of a home folder may have characters that the
// class path and LD_PRELOAD can't contain.
func localCommand(java, dir, tmp string, port int, env []string) *exec.Cmd {
	cmd := exec.Command(java,
		// These options make a start quick. They also leave room for young objects,
		// because tests make many requests.
		"-Xms256m", "-Xmn128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.io.tmpdir="+tmp, "-Djava.net.preferIPv4Stack=true",
		"-Djava.library.path=lib", "-Dsqlite4java.library.path=lib",
		// The second file is in the jar. It keeps refused requests out of the log,
		// because logging them would cost a tenth of the database's CPU time.
		"-Dlog4j2.configurationFile=log4j2.xml,classpath:log4j2.xml",
		"-cp", "lib/*", "software.amazon.dynamodb.services.local.main.ServerRunner",
		"-inMemory", "-disableTelemetry", "-port", strconv.Itoa(port))
	if !separates() {
		cmd.Args = append(cmd.Args, "-sharedDb")
	}
	cmd.Dir = dir
	cmd.Env = append(servers.Environ(), "DDB_LOCAL_TELEMETRY=0")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}
