package stack

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

// An SDK that doesn't know AWS_ENDPOINT_URL is a client of AWS's own hosts.
func TestProxyKeepsFunctionsFromAWS(t *testing.T) {
	t.Parallel()
	told := &localtest.Buffer{}
	var dialed []string
	p := &proxy{
		ended: t.Context().Done(), allow: map[string]string{"AWS_ENDPOINT_URL_SNS": "https://sns.eu-west-1.amazonaws.com"},
		dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			return nil, errors.New("injected")
		},
		log: slog.New(slog.NewTextHandler(told, nil)),
	}
	srv := httptest.NewServer(p)
	defer srv.Close()
	client := through(t, srv.URL, nil)
	for host, want := range map[string]string{
		"dynamodb.us-east-1.amazonaws.com": "Not Implemented",
		"sqs.cn-north-1.amazonaws.com.cn":  "Not Implemented",
		"DynamoDB.us-east-1.api.aws":       "Not Implemented",
		"amazonaws.com.example":            "Bad Gateway",
		"sns.eu-west-1.amazonaws.com":      "Bad Gateway", // given by --env
		"api.example.com":                  "Bad Gateway",
	} {
		resp, err := client.Get("https://" + host + "/")
		if err == nil {
			_ = resp.Body.Close()
			t.Fatalf("%s answers %s", host, resp.Status)
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", host, err, want)
		}
		if got := strings.Contains(told.String(), "host="+strings.Split(host, ":")[0]); got != (want == "Not Implemented") {
			t.Errorf("%s: told is %v", host, got)
		}
	}
	if len(dialed) != 3 {
		t.Errorf("dialed %v", dialed)
	}
}

func TestProxyConnectsOthers(t *testing.T) {
	t.Parallel()
	target := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	target.Config.ErrorLog = log.New(io.Discard, "", 0)
	target.StartTLS()
	defer target.Close()
	ctx, cancel := context.WithCancel(t.Context())
	p := &proxy{
		ended: ctx.Done(), dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, target.Listener.Addr().String())
		},
		log:  slog.New(slog.DiscardHandler),
		next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the API") }),
	}
	srv := httptest.NewServer(p)
	defer srv.Close()
	client := through(t, srv.URL, target)
	body := strings.Repeat("over there ", 10_000)
	resp, err := client.Post("https://example.com/", "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != body {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if resp, err = http.Get(srv.URL); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "the API" {
		t.Errorf("%q, %v", got, err)
	}

	// The stack ends, and with it what is connected.
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 200 Connection established\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	cancel()
	if rest, err := io.ReadAll(in); err != nil || string(rest) != "\r\n" {
		t.Errorf("%q, %v", rest, err)
	}
}

// through is a client that goes through a proxy.
func through(t *testing.T, proxyURL string, target *httptest.Server) *http.Client {
	t.Helper()
	u, err := url.Parse(proxyURL)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(u)}
	if target != nil {
		transport.TLSClientConfig = target.Client().Transport.(*http.Transport).TLSClientConfig
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
