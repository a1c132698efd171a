package elasticmq

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

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

func send(t *testing.T, c *sqs.Client, in *sqs.SendMessageInput) {
	t.Helper()
	if _, err := c.SendMessage(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// receive waits for messages for up to a number of seconds.
func receive(t *testing.T, c *sqs.Client, url string, wait int32) []types.Message {
	t.Helper()
	out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(url), MaxNumberOfMessages: 10, WaitTimeSeconds: wait,
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Messages
}

func bodies(messages []types.Message) []string {
	var all []string
	for _, m := range messages {
		all = append(all, *m.Body)
	}
	return all
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
	t.Run("delay", func(t *testing.T) {
		url := queue(t, c, "delayed", map[string]string{"DelaySeconds": "1"})
		begin := time.Now()
		send(t, c, &sqs.SendMessageInput{QueueUrl: aws.String(url), MessageBody: aws.String("by the queue")})
		send(t, c, &sqs.SendMessageInput{QueueUrl: aws.String(url), MessageBody: aws.String("by the message"), DelaySeconds: 2})
		left := map[string]time.Duration{"by the queue": 900 * time.Millisecond, "by the message": 1900 * time.Millisecond}
		for wait := int32(0); len(left) > 0 && time.Since(begin) < 10*time.Minute; wait = 5 {
			for _, body := range bodies(receive(t, c, url, wait)) {
				if after := time.Since(begin); after < left[body] {
					t.Errorf("delayed %s: received after %s", body, after)
				}
				delete(left, body)
			}
		}
		if len(left) > 0 {
			t.Errorf("never received: %v", left)
		}
	})
	t.Run("visibility and redrive", func(t *testing.T) {
		dead := queue(t, c, "dead", nil)
		policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": "arn:aws:sqs:" + ids.Region + ":" + ids.AccountID + ":dead", "maxReceiveCount": 2})
		url := queue(t, c, "poison", map[string]string{"VisibilityTimeout": "30", "RedrivePolicy": string(policy)})
		send(t, c, &sqs.SendMessageInput{QueueUrl: aws.String(url), MessageBody: aws.String("x")})
		for n := 1; n <= 2; n++ {
			got := receive(t, c, url, 5)
			if len(got) != 1 || got[0].Attributes["ApproximateReceiveCount"] != strconv.Itoa(n) {
				t.Fatalf("receive %d: %+v", n, got)
			}
			if again := receive(t, c, url, 0); len(again) != 0 {
				t.Errorf("visible while it is in flight: %v", bodies(again))
			}
			if _, err := c.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: aws.String(url), ReceiptHandle: got[0].ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
		}
		if got := receive(t, c, url, 1); len(got) != 0 {
			t.Errorf("a third receive: %v", bodies(got))
		}
		if got := receive(t, c, dead, 5); !cmp.Equal(bodies(got), []string{"x"}) {
			t.Errorf("dead letters %v", bodies(got))
		}
	})
	t.Run("FIFO", func(t *testing.T) {
		url := queue(t, c, "ordered.fifo", map[string]string{"FifoQueue": "true"})
		fifo := func(group, body, id string) *sqs.SendMessageInput {
			return &sqs.SendMessageInput{QueueUrl: aws.String(url), MessageBody: aws.String(body), MessageGroupId: aws.String(group), MessageDeduplicationId: aws.String(id)}
		}
		for _, m := range [][3]string{{"g", "1", "a"}, {"g", "2", "b"}, {"g", "again", "a"}, {"h", "3", "c"}} {
			send(t, c, fifo(m[0], m[1], m[2]))
		}
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(url), MaxNumberOfMessages: 1})
		if err != nil || !cmp.Equal(bodies(out.Messages), []string{"1"}) {
			t.Fatalf("first: %v, %v", bodies(out.Messages), err)
		}
		// The rest of its group has to wait; other groups don't.
		if got := bodies(receive(t, c, url, 0)); !cmp.Equal(got, []string{"3"}) {
			t.Errorf("while 1 is in flight: %v, want 3", got)
		}
		if _, err := c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(url), ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
			t.Fatal(err)
		}
		if got := bodies(receive(t, c, url, 5)); !cmp.Equal(got, []string{"2"}) {
			t.Errorf("after 1: %v, want 2", got)
		}
	})
	t.Run("limits are SQS's", func(t *testing.T) {
		url := queue(t, c, "limits", nil)
		if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(url), MessageBody: aws.String("x"), DelaySeconds: 901}); err == nil {
			t.Error("a delay of 901 s was taken")
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

func TestFindInstallsIntoAnEmptyCache(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads ElasticMQ")
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		t.Skip("needs Maven")
	}
	t.Setenv(envCache, t.TempDir()+"/My cache: a,b;c")
	s := findOwn(t)
	if _, err := s.Client().ListQueues(t.Context(), nil); err != nil {
		t.Error(err)
	}
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

func TestRecipeNamesOneVersion(t *testing.T) {
	t.Parallel()
	b := elasticMQ()
	if want := "<elasticmq.version>" + elasticMQVersion + "</elasticmq.version>"; !strings.Contains(string(b.POM), want) {
		t.Errorf("pom.xml lacks %s", want)
	}
	if n := strings.Count(string(b.Sums), "\n"); n != 39 || !strings.Contains(string(b.Sums), "-"+elasticMQVersion+".jar\n") {
		t.Errorf("SHA256SUMS: %d files, want 39 and version %s", n, elasticMQVersion)
	}
}

func TestClientRefusesAServerWithoutAnEndpoint(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Client of a zero Server didn't panic")
		}
	}()
	new(Server).Client()
}
