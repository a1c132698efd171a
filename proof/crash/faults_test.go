//go:build unix

package crash_test

import (
	"net/http"
	"slices"
	"strings"

	"github.com/samekey/samekey/internal/testkit/dbfault"
)

// fault is a column of the matrix.
type fault struct {
	name  string
	says  string // on the page
	apply func(*call) (*http.Response, error)
	on    func(call string) bool // nil: on every call
}

// The names of faults that expectations refer to.
const (
	killedBefore = "killed before"
	killedAfter  = "killed after"
)

// faults are the columns.
var faults = []*fault{
	killBefore,
	{name: killedAfter, says: "SIGKILL once the call was applied, without its answer", apply: func(c *call) (*http.Response, error) {
		_, _ = c.send()
		c.kill()
		return nil, errCut
	}},
	{name: "answer lost, then killed", says: "the answer is lost, and SIGKILL at the next call", apply: func(c *call) (*http.Response, error) {
		_, _ = c.send()
		c.w.then(c, killBefore)
		return nil, errCut
	}},
	{name: "stopped before", says: "SIGSTOP until others have answered the client, then the call goes on and the process wakes", apply: func(c *call) (resp *http.Response, err error) {
		c.stop(func() { resp, err = c.send() })
		return resp, err
	}},
	{name: "stopped after", says: "SIGSTOP once the call was applied, until others have answered the client", apply: func(c *call) (*http.Response, error) {
		resp, err := c.send()
		c.stop(func() {})
		return resp, err
	}},
	{name: "request lost", says: "the connection is cut before the call arrives", apply: func(*call) (*http.Response, error) { return nil, errCut }},
	{name: "answer lost", says: "the connection is cut once the call was applied", apply: func(c *call) (*http.Response, error) {
		_, _ = c.send()
		return nil, errCut
	}},
	{name: "answer torn", says: "half of the answer, then the connection is cut", apply: func(c *call) (*http.Response, error) { return dbfault.TearAnswer(c.dest, c.copy()) }},
	sentTwice,
	{name: "late", says: "the connection is cut, and the packet arrives after the client was answered", apply: func(c *call) (*http.Response, error) {
		c.w.late(c, false)
		return nil, errCut
	}},
	{name: "late, in the next attempt", says: "the packet arrives while another attempt has the key; its own attempt gets 500 until its time is up", apply: func(c *call) (*http.Response, error) {
		c.w.late(c, true)
		return answer500(c)
	}},
	{name: "500 before", says: "an internal error, and nothing was applied", apply: answer500},
	{name: "500 after", says: "an internal error, and the call was applied", apply: func(c *call) (*http.Response, error) {
		_, _ = c.send()
		return answer500(c)
	}},
	{name: "throttled", says: "three times", apply: func(c *call) (*http.Response, error) {
		c.w.fails(c, &fault{apply: throttle}, 2)
		return throttle(c)
	}},
	{name: "conflict", says: "another transaction holds the item", on: func(call string) bool { return slices.Contains(writes, call) }, apply: func(c *call) (*http.Response, error) {
		return dbfault.Conflict(c.dest, c.copy())
	}},
	{name: "in progress", says: "TransactionInProgressException", on: func(call string) bool { return call == "TransactWriteItems" }, apply: func(c *call) (*http.Response, error) {
		return dbfault.AnswerError(http.StatusBadRequest, "TransactionInProgressException", "injected")(c.dest, c.copy())
	}},
}

var killBefore = &fault{name: killedBefore, says: "SIGKILL, and the call never arrives", apply: func(c *call) (*http.Response, error) {
	c.kill()
	return nil, errCut
}}

var sentTwice = &fault{name: "sent twice", says: "the packet arrives twice, and the second answer counts", apply: func(c *call) (*http.Response, error) {
	_, _ = c.send()
	return c.send()
}}

var writes = []string{"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}

// answer500 is an error before the call was applied, in the form that all AWS services
// have; to the provider's client any body will do.
func answer500(c *call) (*http.Response, error) { return dbfault.Answer500(c.dest, c.copy()) }

func throttle(c *call) (*http.Response, error) {
	if strings.HasPrefix(c.name, "POST ") {
		return dbfault.AnswerError(http.StatusTooManyRequests, "TooMany", "injected")(c.dest, c.copy())
	}
	if c.name == "CreateSchedule" {
		return dbfault.AnswerError(http.StatusTooManyRequests, "ThrottlingException", "injected")(c.dest, c.copy())
	}
	if c.name == "Invoke" {
		return dbfault.AnswerError(http.StatusTooManyRequests, "TooManyRequestsException", "injected")(c.dest, c.copy())
	}
	return dbfault.Throttle(c.dest, c.copy())
}
