package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/samekey/samekey/internal/base/loopback"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// maxEventBytes is the largest payload of an asynchronous invocation.
const maxEventBytes = 1 << 20

// invokeAPI serves Lambda's Invoke API for the functions of the stack. It also serves a
// part of EventBridge Scheduler's API, and a stand-in for KMS. It answers every other call
// with an error. If no endpoint is set for a service, the SDKs in functions send the
// service's calls here, not to AWS.
type invokeAPI struct {
	region, account string
	functions       map[string]*function // functions by logical id
	async           *asyncInvoker
	later           *schedulerAPI
}

// ownPrograms refuses requests that a browser sends to the Invoke API at url for a page
// of another origin. Otherwise such a page could run a function with any event and
// identity.
func ownPrograms(url string, next http.Handler) http.Handler {
	guard := loopback.Guard{Refuse: func(w http.ResponseWriter, no loopback.Refusal) {
		writeError(w, no.Status, "AccessDeniedException", map[string]string{"Message": "samekey local: " + no.Why})
	}}.For(url)
	return guard.Wrap(next)
}

func (a *invokeAPI) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", a.invoke)
	if a.later != nil {
		mux.HandleFunc("POST /schedules/{name}", a.later.create)
	}
	none := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeError(w, http.StatusNotImplemented, "NotImplementedException", map[string]string{
			"message": "samekey local has no such service: " + r.Method + " " + r.URL.Path + " " + r.Header.Get("X-Amz-Target"),
		})
	})
	mux.Handle("/", kmsAPI{next: none})
	return mux
}

func (a *invokeAPI) invoke(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	f := a.find(name)
	if f == nil {
		if !strings.HasPrefix(name, "arn:") {
			name = "arn:aws:lambda:" + a.region + ":" + a.account + ":function:" + name
		}
		writeError(w, http.StatusNotFound, "ResourceNotFoundException", map[string]string{"Type": "User", "Message": "Function not found: " + name})
		return
	}
	kind := r.Header.Get("X-Amz-Invocation-Type")
	limit := int64(lambdarun.MaxRequestBytes)
	if kind == "Event" {
		limit = maxEventBytes
	}
	payload, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return // the caller is gone
	}
	if int64(len(payload)) > limit {
		writeError(w, http.StatusRequestEntityTooLarge, "RequestTooLargeException", map[string]string{
			"Type": "User", "Message": fmt.Sprintf("Request must be smaller than %d bytes for the InvokeFunction operation", limit),
		})
		return
	}
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	if !json.Valid(payload) {
		writeError(w, http.StatusBadRequest, "InvalidRequestContentException", map[string]string{
			"Type": "User", "message": "Could not parse request body into json",
		})
		return
	}
	tenant := r.Header.Get("X-Amz-Tenant-Id")
	trace := r.Header.Get("X-Amzn-Trace-Id")
	ctx := lambdarun.Traced(lambdarun.ForTenant(r.Context(), tenant), trace)
	if err := f.lambda.CheckTenant(ctx); err != nil {
		writeError(w, http.StatusBadRequest, "InvalidParameterValueException", map[string]string{"Type": "User", "message": err.Error()})
		return
	}
	switch kind {
	case "", "RequestResponse":
		a.respond(ctx, w, f, payload)
	case "Event":
		if !a.async.invoke(f, tenant, trace, payload) { //nolint:contextcheck // the invocation outlives the request
			writeError(w, http.StatusInternalServerError, "ServiceException", map[string]string{"Type": "Service", "Message": "the stack is ending"})
			return
		}
		w.WriteHeader(http.StatusAccepted)
	case "DryRun":
		w.WriteHeader(http.StatusNoContent)
	default:
		writeError(w, http.StatusBadRequest, "InvalidParameterValueException", map[string]string{
			"Type": "User", "message": "invocation type " + kind + " must be RequestResponse, Event or DryRun",
		})
	}
}

func (a *invokeAPI) respond(ctx context.Context, w http.ResponseWriter, f *function, payload []byte) {
	out, err := f.Invoke(ctx, payload)
	fe, failed := errors.AsType[*lambdarun.FunctionError](err)
	switch {
	case failed:
		out = fe.Payload
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
	case errors.Is(err, lambdarun.ErrRecursive):
		writeError(w, http.StatusBadRequest, "RecursiveInvocationException", map[string]string{"Type": "User", "Message": err.Error()})
		return
	case errors.Is(err, lambdarun.ErrThrottled):
		writeError(w, http.StatusTooManyRequests, "TooManyRequestsException", map[string]string{
			"Type": "User", "Reason": "ConcurrentInvocationLimitExceeded", "message": "Rate Exceeded.",
		})
		return
	case err != nil:
		writeError(w, http.StatusInternalServerError, "ServiceException", map[string]string{"Type": "Service", "Message": err.Error()})
		return
	}
	w.Header().Set("X-Amz-Executed-Version", "$LATEST")
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(out)
}

// invokeAPI.find returns the function with this logical id, name, or whole or partial
// ARN. It ignores a version or an alias behind the name.
func (a *invokeAPI) find(name string) *function {
	parts := strings.Split(name, ":")
	switch {
	case len(parts) >= 7 && parts[0] == "arn": // arn:aws:lambda:REGION:ACCOUNT:function:NAME
		name = parts[6]
	case len(parts) >= 3 && parts[1] == "function": // ACCOUNT:function:NAME
		name = parts[2]
	default:
		name = parts[0]
	}
	if f := a.functions[name]; f != nil {
		return f
	}
	for _, f := range a.functions {
		if f.def.Name == name {
			return f
		}
	}
	return nil
}

// writeError answers in the form of AWS's REST-JSON services.
func writeError(w http.ResponseWriter, status int, errorType string, body map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", errorType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
