package elasticmq

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/ids"
	"github.com/samekey/samekey/internal/servers/serverstest"
)

func TestMain(m *testing.M) {
	if serverstest.HelperMain(func(ctx context.Context) (string, error) {
		s, err := Find(ctx)
		if err != nil {
			return "", err
		}
		return s.Endpoint, nil
	}) {
		return
	}
	goleak.VerifyTestMain(runner(func() int { return Main(m) }))
}

type runner func() int

func (r runner) Run() int { return r() }

// findOwn starts a queue that a test may end, or skips the test.
func findOwn(t *testing.T) *Server {
	t.Helper()
	t.Setenv(envEndpoint, "")
	return Start(t)
}

// bare gives the test an environment in which Find finds nothing but the
// scripts.
func bare(t *testing.T, scripts map[string]string) {
	t.Helper()
	serverstest.Bare(t, envCache, scripts, envEndpoint, envAllowRemote, envRequire, envRequireAll)
}

func queue(t *testing.T, c *sqs.Client, name string, attributes map[string]string) string {
	t.Helper()
	out, err := c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

// One server for what a queue has to do.
func TestFindStartsAQueueServer(t *testing.T) {
	s := findOwn(t)
	c := s.Client()
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Hostname() != "127.0.0.1" {
		t.Fatalf("endpoint %s: %v", s.Endpoint, err)
	}

	t.Run("its queues are found where it is", func(t *testing.T) {
		jobs := queue(t, c, "jobs", nil)
		if !strings.HasPrefix(jobs, s.Endpoint+"/") {
			t.Errorf("queue URL %s, want one at %s", jobs, s.Endpoint)
		}
		out, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(jobs), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
		if want := "arn:aws:sqs:" + ids.Region + ":" + ids.AccountID + ":jobs"; err != nil || out.Attributes["QueueArn"] != want {
			t.Errorf("ARN %v (%v), want %s", out, err, want)
		}
	})
	t.Run("it listens on loopback only", func(t *testing.T) {
		if got, want := serverstest.Loopback(t, s.Endpoint); !cmp.Equal(got, want) {
			t.Errorf("listening addresses %v, want %v", got, want)
		}
	})

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	serverstest.WaitEnd(t, s.Endpoint)
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	t.Run("it ends with a killed parent", func(t *testing.T) {
		if _, err := os.Stat("/proc/self"); err != nil {
			t.Skip("only Linux ends a child with its parent")
		}
		root, err := servers.CacheRoot(envCache)
		if err != nil {
			t.Fatal(err)
		}
		serverstest.EndsWithAKilledParent(t, envEndpoint, elasticMQ().Dir(root))
	})
}

func TestFindTakesTheEndpointOfTheEnvironment(t *testing.T) {
	bare(t, nil)
	for endpoint, want := range map[string]string{
		"http://127.0.0.1:9324":         "http://127.0.0.1:9324",
		"http://localhost:9324/":        "http://localhost:9324",
		"https://sqs.example":           "",
		"sqs.us-east-1.amazonaws.com":   "",
		"http://localhost.example:9324": "",
	} {
		t.Setenv(envEndpoint, endpoint)
		s, err := Find(t.Context())
		switch {
		case want == "" && (err == nil || errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), envEndpoint)):
			t.Errorf("%s: got %v, want an error that is no reason to skip", endpoint, err)
		case want != "" && (err != nil || s.Endpoint != want):
			t.Errorf("%s: got %v, %v", endpoint, s, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Setenv(envEndpoint, "https://sqs.example")
	t.Setenv(envAllowRemote, "1")
	if s, err := Find(t.Context()); err != nil || s.Endpoint != "https://sqs.example" {
		t.Errorf("allowed: got %v, %v", s, err)
	}
}

func TestFindNamesWhatIsMissing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		scripts map[string]string
		want    []string
	}{
		{"everything", nil, []string{"AWS_ENDPOINT_URL_SQS: not set", "Java 17 or newer: JAVA_HOME isn't set, java isn't in PATH: install a Java 17 runtime"}},
		{"Maven", map[string]string{"java": serverstest.NewJava}, []string{
			"AWS_ENDPOINT_URL_SQS: not set", "Java with cached jars: no jars in CACHE/elasticmq-1.6.16",
			"Java with Maven: mvn isn't in PATH: install Apache Maven",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bare(t, tt.scripts)
			_, err := Find(t.Context())
			if !errors.Is(err, ErrUnavailable) {
				t.Fatalf("got %v, want ErrUnavailable", err)
			}
			got := strings.Split(strings.ReplaceAll(err.Error(), os.Getenv(envCache), "CACHE"), "\n  ")[1:]
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("the time", func(t *testing.T) {
		bare(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Find(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
	t.Run("the right jars", func(t *testing.T) {
		bare(t, map[string]string{"java": serverstest.NewJava, "mvn": `for arg; do case "$arg" in -DoutputDirectory=*) /bin/mkdir -p "${arg#*=}" && echo x >"${arg#*=}/config-1.4.3.jar" ;; esac; done`})
		if _, err := Find(t.Context()); !errors.Is(err, servers.ErrChecksum) || errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v, want ErrChecksum", err)
		}
	})
}

func TestTheQueueGetsNoAWSVariables(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	env := strings.Join(command("java", "/dir", "/tmp", 1).Env, "\n")
	if strings.Contains(env, "AWS_") || !strings.Contains(env, "PATH=") {
		t.Errorf("environment %s", env)
	}
}
