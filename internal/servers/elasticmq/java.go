package elasticmq

import (
	"context"
	"embed"
	"os/exec"
	"strconv"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/ids"
)

// recipe holds pom.xml and SHA256SUMS, but not the jars, which Maven downloads.
//
//go:embed recipe
var recipe embed.FS

// elasticMQVersion is the version that recipe/pom.xml pins.
const elasticMQVersion = "1.6.16"

// minJava is the oldest version of Java that was tested.
const minJava = 17

func elasticMQ() servers.Bundle {
	return servers.Bundle{Name: "elasticmq-" + elasticMQVersion, POM: recipeFile("pom.xml"), Sums: recipeFile("SHA256SUMS")}
}

func recipeFile(name string) []byte {
	b, err := recipe.ReadFile("recipe/" + name)
	if err != nil {
		panic("elasticmq: " + err.Error()) //nolint:forbidigo // it is embedded
	}
	return b
}

// source describes where [Find] looks for a server.
func source() servers.Source {
	return servers.Source{
		Kind:        "a queue",
		Endpoint:    envEndpoint,
		AllowRemote: envAllowRemote,
		Cache:       envCache,
		Unavailable: ErrUnavailable,
		Java:        minJava,
		Bundle:      elasticMQ(),
		Start:       start,
	}
}

// start starts ElasticMQ from the install in dir and waits until it answers. If start
// fails, it leaves no process behind.
func start(ctx context.Context, java, dir string) (*servers.Found, error) {
	running, err := servers.Server{
		Name:      "ElasticMQ",
		Dir:       dir,
		Command:   func(tmp string, port int) *exec.Cmd { return command(java, dir, tmp, port) },
		PortTaken: []string{"Address already in use", "Failed to bind", "BindException"},
	}.Start(ctx)
	if err != nil {
		return nil, err
	}
	return &servers.Found{Endpoint: running.Endpoint, Stop: running.Stop}, nil
}

// command returns the command that runs ElasticMQ. The command runs in dir and uses
// relative file names, because the path of dir may have characters that a class path
// can't have.
func command(java, dir, tmp string, port int) *exec.Cmd {
	p := strconv.Itoa(port)
	cmd := exec.Command(java,
		// The queues of a test are small, so little memory is enough. The server should
		// start quickly.
		"-Xms32m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.io.tmpdir="+tmp, "-Djava.net.preferIPv4Stack=true",
		// By default, ElasticMQ listens on all interfaces.
		"-Drest-sqs.bind-hostname=127.0.0.1", "-Drest-sqs.bind-port="+p, "-Drest-sqs.sqs-limits=strict",
		"-Dnode-address.host=127.0.0.1", "-Dnode-address.port="+p,
		"-Drest-stats.enabled=false",
		"-Daws.region="+ids.Region, "-Daws.accountId="+ids.AccountID,
		"-cp", "lib/*", "org.elasticmq.server.Main")
	cmd.Dir = dir
	cmd.Env = servers.Environ()
	return cmd
}
