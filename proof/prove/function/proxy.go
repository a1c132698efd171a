package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// proxy stands between a program and the services that it calls. Each call that an
// invocation makes passes by its point.
type proxy struct {
	client *http.Client
	point  *point
	up     map[string]string // base URLs, by service
	signer *v4.Signer
}

// standBetween puts the proxies between this process and AWS: one for DynamoDB, SQS and
// Lambda, and one for the Runtime API, which tells when an invocation begins and ends.
func standBetween(role string) error {
	at := &point{role: role, table: os.Getenv("PROVE_TABLE")}
	if role == "" {
		at.table = os.Getenv("SAMEKEY_APP") + "-provider"
	}
	// DynamoDB's checksum is of the bytes that it sends.
	p := &proxy{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20, DisableCompression: true}}, point: at, up: map[string]string{}, signer: v4.NewSigner()}
	for _, service := range []string{"dynamodb", "sqs", "lambda"} {
		name := "AWS_ENDPOINT_URL_" + strings.ToUpper(service)
		p.up[service] = os.Getenv(name)
		if p.up[service] == "" {
			p.up[service] = os.Getenv("AWS_ENDPOINT_URL")
		}
		if p.up[service] == "" {
			p.up[service] = "https://" + host(service, os.Getenv("AWS_REGION"))
		}
	}
	at.endpoint = p.up["dynamodb"]
	base, err := serve(p)
	if err != nil {
		return err
	}
	for service := range p.up {
		if err := os.Setenv("AWS_ENDPOINT_URL_"+strings.ToUpper(service), base+"/"+service); err != nil {
			return err
		}
	}
	runtime, err := serve(&runtimeProxy{"http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API"), &http.Client{Transport: &http.Transport{}}, at})
	if err != nil {
		return err
	}
	return os.Setenv("AWS_LAMBDA_RUNTIME_API", strings.TrimPrefix(runtime, "http://"))
}

// host is where a service of a Region is.
func host(service, region string) string {
	suffix := ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		suffix += ".cn"
	}
	return service + "." + region + suffix
}

func serve(h http.Handler) (base string, err error) {
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(ln) }() // as long as the process
	return "http://" + ln.Addr().String(), nil
}

// ServeHTTP passes a call on, signed anew, since a signature is for a host.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	service, path, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program is gone
	}
	lose := p.point.pass() //nolint:contextcheck // a fault is noted whatever the context says
	if p.point.refuses(r.Context(), body) {
		refuse(w, body)
		return
	}
	if p.point.unhides(r.Header.Get("X-Amz-Target")) { //nolint:contextcheck // as above
		copyAnswer(w, answer{http.StatusBadRequest, http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, []byte(`{"__type":"com.amazonaws.sqs#MessageNotInflight","message":"refused by prove"}`)})
		return
	}
	req, err := http.NewRequestWithContext(r.Context(), r.Method, p.up[service]+"/"+path, bytes.NewReader(body)) //nolint:gosec // the path is the program's, the host isn't
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	for name, values := range r.Header {
		if name != "Authorization" && !strings.HasPrefix(name, "X-Amz-Security") && name != "X-Amz-Date" && name != "Accept-Encoding" && name != "Connection" {
			req.Header[name] = values
		}
	}
	sum := sha256.Sum256(body)
	creds, err := credentials().Retrieve(r.Context())
	if err == nil {
		err = p.signer.SignHTTP(r.Context(), creds, req, hex.EncodeToString(sum[:]), service, os.Getenv("AWS_REGION"), time.Now())
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	out, err := p.client.Do(req) //nolint:gosec // as above
	if err != nil {
		cut(w)
		return
	}
	body, err = io.ReadAll(out.Body)
	_ = out.Body.Close()
	p.point.passed() //nolint:contextcheck // as above
	if bytes.Contains(body, []byte("AccessDenied")) || strings.Contains(out.Header.Get("X-Amzn-Errortype"), "AccessDenied") {
		p.point.denied(r.Context(), service+" "+r.Header.Get("X-Amz-Target"))
	}
	if err != nil || lose {
		cut(w)
		return
	}
	copyAnswer(w, answer{out.StatusCode, out.Header, body})
}

// refuse answers SendMessageBatch as SQS does that blames all its entries.
func refuse(w http.ResponseWriter, body []byte) {
	var in struct{ Entries []struct{ Id string } }
	_ = json.Unmarshal(body, &in)
	failed := make([]map[string]any, 0, len(in.Entries))
	for _, e := range in.Entries {
		failed = append(failed, map[string]any{"Id": e.Id, "Code": "InvalidMessageContents", "Message": "refused by prove", "SenderFault": true})
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(map[string]any{"Failed": failed, "Successful": []any{}}) // as in copyAnswer
}

func copyAnswer(w http.ResponseWriter, a answer) {
	for name, values := range a.header {
		if name != "Content-Length" && name != "Connection" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a program that is gone needs no answer
}

// answer is an answer of a service.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// cut ends the connection without an answer.
func cut(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// credentials are those of the function's role.
func credentials() aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{
			AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
		}, nil
	})
}

// runtimeProxy stands between the program and Lambda's Runtime API.
type runtimeProxy struct {
	up     string
	client *http.Client
	point  *point
}

func (p *runtimeProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	said, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program is gone
	}
	out, err := p.pass(r.Context(), r.Method, r.URL.EscapedPath(), r.Header, said)
	for err == nil && strings.HasSuffix(r.URL.Path, "/invocation/next") && p.point.loses(r.Context(), out.body) {
		done := "/2018-06-01/runtime/invocation/" + out.header.Get("Lambda-Runtime-Aws-Request-Id") + "/response"
		if _, err = p.pass(r.Context(), http.MethodPost, done, http.Header{}, []byte(`{"batchItemFailures":[]}`)); err == nil {
			out, err = p.pass(r.Context(), r.Method, r.URL.EscapedPath(), r.Header, nil)
		}
	}
	if err != nil {
		cut(w)
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/invocation/next"):
		p.point.begin(r.Context(), out.body)
	case strings.HasSuffix(r.URL.Path, "/response"):
		p.point.answers(said) //nolint:contextcheck // it is noted whatever the context says
		p.point.answered(r.Context())
	}
	copyAnswer(w, out)
}

// pass passes a call on to the Runtime API.
func (p *runtimeProxy) pass(ctx context.Context, method, path string, header http.Header, said []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.up+path, bytes.NewReader(said)) //nolint:gosec // as above
	if err != nil {
		return answer{}, err
	}
	req.Header = header.Clone()
	out, err := p.client.Do(req) //nolint:gosec // as above
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = out.Body.Close() }()
	body, err := io.ReadAll(out.Body)
	return answer{out.StatusCode, out.Header, body}, err
}
