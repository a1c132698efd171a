package dynamo_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
)

// A large request doesn't break its connection where the answer comes before net/http has
// seen the end of the request's body, as on a busy machine.
func TestAnswerBeforeTheBodysEnd(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	}))
	defer srv.Close()
	answered, written := make(chan struct{}), make(chan error, 1)
	base := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &slowConn{Conn: conn, until: answered}, err
	}}
	defer base.CloseIdleConnections()
	client := dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: &srv.URL, Credentials: aws.AnonymousCredentials{},
		HTTPClient: &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(req)
			if err == nil {
				resp.Body = &lateBody{ReadCloser: resp.Body, first: sync.OnceFunc(func() {
					close(answered) // the SDK has closed the request's body
					if err := <-written; err != nil {
						t.Errorf("the request was not written: %v", err)
					}
				})}
			}
			return resp, err
		})},
	}, dynamo.Tune, dynamo.Tune)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) { written <- info.Err }})
	_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String("table"), Item: map[string]types.AttributeValue{
		"pk": tabletest.Str(strings.Repeat("x", 10<<10)),
	}})
	if err != nil {
		t.Error(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// lateBody is a body that calls first before it is read.
type lateBody struct {
	io.ReadCloser
	first func()
}

func (b *lateBody) Read(p []byte) (int, error) {
	b.first()
	return b.ReadCloser.Read(p)
}

// slowConn is a connection whose last writes return late.
type slowConn struct {
	net.Conn
	sent  int
	until <-chan struct{}
}

func (c *slowConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.sent += n; c.sent > 10<<10 { // the body is complete
		<-c.until
	}
	return n, err
}
