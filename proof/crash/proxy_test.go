//go:build unix

package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
)

// call is a call of a process on its way to a service.
type call struct {
	w    *world
	slot *slot
	inv  *invocation // in which it is made
	run  *run        // whose fault it meets
	name string
	dest http.RoundTripper
	req  *http.Request
	body []byte
}

var errCut = errors.New("the connection is cut")

// ServeHTTP passes a process's call on, or has it meet its fault. The path is that of
// the slot's address, the service's name, and the service's own path.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the caller has gone
	}
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/")+"/", "/", 3)
	if len(parts) < 3 {
		http.Error(rw, "no address of a slot", http.StatusNotFound)
		return
	}
	r.URL.Path = "/" + strings.TrimSuffix(parts[2], "/")
	c := &call{w: w, name: nameOf(parts[1], r, body), dest: w.services[parts[1]], req: r, body: body}
	f := w.meet(c, parts[0])
	var resp *http.Response
	if f == nil {
		resp, err = c.send()
	} else {
		resp, err = f.apply(c)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // net/http's way to cut a connection
	}
	defer func() { _ = resp.Body.Close() }()
	resp.Header.Del("Connection")
	maps.Copy(rw.Header(), resp.Header)
	rw.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(rw, resp.Body); err != nil {
		panic(http.ErrAbortHandler) // torn
	}
}

// nameOf says what a call asks for.
func nameOf(service string, r *http.Request, body []byte) string {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch service {
	case "dynamodb", "states":
		return op
	case "sqs":
		var in struct{ QueueUrl string }
		_ = json.Unmarshal(body, &in) // the queue refuses it
		return op + " to " + queueName(in.QueueUrl)
	case "lambda":
		return "Invoke"
	case "scheduler":
		return "CreateSchedule"
	}
	return "POST " + r.URL.Path
}

// send passes the call on, and returns its whole answer. It doesn't end with the
// caller: a packet that was sent arrives.
func (c *call) send() (*http.Response, error) {
	resp, err := c.dest.RoundTrip(c.copy())
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(all))
	return resp, err
}

// copy is the call as a request of its own.
func (c *call) copy() *http.Request {
	out := c.req.Clone(context.WithoutCancel(c.req.Context()))
	out.RequestURI = ""
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
	return out
}

// kill kills the process that makes the call.
func (c *call) kill() {
	for _, p := range c.slot.function.Running() {
		_ = c.slot.function.Kill(p.PID) // it may have ended
	}
	c.w.killed.Add(1)
}

// stop stops the process, whose caller then has no patience, until the run wakes it.
// meanwhile is done just before it goes on.
func (c *call) stop(meanwhile func()) {
	running := c.slot.function.Running()
	for _, p := range running {
		_ = syscall.Kill(p.PID, syscall.SIGSTOP)
	}
	c.w.stopped.Add(1)
	c.w.leave(c.run, c.inv)
	select {
	case <-c.run.wake:
	case <-c.w.ctx.Done():
	}
	meanwhile()
	for _, p := range running {
		_ = syscall.Kill(p.PID, syscall.SIGCONT)
	}
}

// inProcess is a service of the test's own process.
type inProcess struct{ http.Handler }

// RoundTrip answers the request.
func (s inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// remote is a service with an address.
type remote struct {
	base *url.URL
	http.RoundTripper
}

// RoundTrip sends the request there. The header Host stays: it is signed.
func (s remote) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Scheme, r.URL.Host = s.base.Scheme, s.base.Host
	return s.RoundTripper.RoundTrip(r)
}
