// Package client makes HTTP requests safe to retry. A [Transport] is an [http.RoundTripper]
// that wraps another RoundTripper. The Transport gives every operation a key, and retries
// the request until the outcome is known or a limit is reached.
//
//	hc := &http.Client{Transport: client.New(nil)}
//	resp, err := hc.Post(url, "application/json", body)
//
// The package needs no third-party module. It works with any server that takes keys in a
// header, such as Stripe, a server of package idem, or a server that follows the IETF
// draft.
//
// # What it guarantees
//
// One call of [Transport.RoundTrip] is one operation. The transport guarantees for each
// operation:
//
//   - a POST or PATCH without a key gets a new random key, and every attempt sends the
//     same key, body and headers, except Retry-Attempt;
//   - a key that the caller set is sent unchanged;
//   - a key that the transport made is never used for a second operation, even if the
//     caller sends the same http.Request again;
//   - the request is retried if no answer comes, if the first MiB of the answer to a
//     keyed request is cut off, and after a 409, 429 or 5xx. [Options.MaxRetries]
//     limits the retries. The waits are random and grow, and Retry-After lengthens a
//     wait. The server's header Stripe-Should-Retry overrules a status of 400 or above,
//     and the mark of a replay with such a status;
//   - the request is not retried if a retry can't help: other 4xx, an answer marked as a
//     replay, an invalid certificate, a request that no transport can send, a cancelled
//     context;
//   - no retry is sent when the server may have forgotten the key;
//   - a keyed request whose body can't be sent twice is refused before the first attempt,
//     unless retries are off ([Options.MaxRetries]) and the operation has no name.
//
// If the server carries out at most one request with each key, an operation is carried
// out at most once. A 2xx means that the operation was carried out. The exception is
// 202: the operation is running, or will run later. If the 202 of a keyed request has a
// Retry-After, the transport doesn't retry the request, but marks the answer with
// [OutcomeUnknown].
//
// # What it doesn't guarantee
//
// After an error with [Error.Unknown] set, or an answer marked with [OutcomeUnknown],
// the operation may or may not have been carried out. To find out, send the same
// request with the same key: set the key header to [Error.Key]. An operation that was
// named before its first request ([WithOperation]) keeps its key. Without the header or
// the name, the transport makes a new key, and the request is a new operation.
//
// If a server ignores keys, a retry can run the operation twice. The transport notices
// that the server ignores keys only if the answer says so (Idempotency-Status:
// ignored). So set [Options.Methods] to the methods for which the server takes keys. A
// request with another method gets no key. If the method is idempotent by definition
// (GET, HEAD, OPTIONS, TRACE, PUT, DELETE), the request is retried. Otherwise it is
// sent once and unchanged. A key header without a value (req.Header["Idempotency-Key"]
// = nil) means, as in net/http, that the request is idempotent already: the transport
// makes no key, and retries the request.
//
// # Crashes
//
// If a process dies between sending the request and recording the answer, the next process
// must continue with the same key. A [Journal] stores the key of a named operation on disk
// before the request is sent:
//
//	journal, err := client.OpenJournal("/var/lib/shop/operations")
//	hc := &http.Client{Transport: client.New(nil, func(o *client.Options) { o.Journal = journal })}
//	…
//	ctx = client.WithOperation(ctx, "order-42")
//	resp, err := hc.Do(req.WithContext(ctx)) // the same after a crash: same name, same request
//	…                                        // store the answer
//	err = journal.Done("order-42")
//
// # Repeated DELETE
//
// If a DELETE is repeated because its outcome was unknown, and the answer is then 404,
// an earlier attempt most likely deleted the resource. So the caller gets a 204 in
// place of the 404, with the header Idempotency-Client: deleted-before. The caller gets
// the 404 itself in three cases: the first DELETE got the 404; each earlier attempt
// failed to connect, or got a 4xx that isn't about the key; or the 404 is a replay.
//
// # Bodies
//
// A body can be sent again if [http.NewRequest] got it as a bytes.Reader, bytes.Buffer
// or strings.Reader. The transport reads any other body into memory before the first
// attempt, up to 4 MiB. For longer bodies, set Request.GetBody. Before the transport
// returns the answer to a keyed request, it reads up to 1 MiB of the answer's body, so
// that it can retry if the body is cut off. The rest of a longer body is streamed.
// Event streams are never read ahead.
//
// # Retry storms
//
// When a server is down, clients that retry multiply the server's load. So each
// Transport has a budget for the retries of all its requests: about a tenth of the
// requests plus ten a second. When the budget is used up, the transport returns the
// outcome of the attempt instead of retrying. Share one Transport between all requests,
// so that they share the budget. [Options.NoBudget] removes the budget.
//
// # The header Retry-Attempt
//
// Each retry of a keyed request has the header Retry-Attempt, with the number of earlier
// attempts. A server of package idem then reads the key's record first, instead of paying
// for a claim that would be refused. Other servers ignore the header.
//
// # Redirects
//
// http.Client follows redirects. After a 307 or 308, http.Client sends the same request
// elsewhere, and the transport keeps the key. After other redirects http.Client sends a
// GET, and the transport makes no key for the GET. If the caller has set a key, http.Client
// copies the key to the GET.
//
// # Other transports and clients
//
// A transport that adds credentials (oauth2.Transport) can be the base of this
// transport: every attempt then gets a fresh token. The oauth2.Transport can also wrap
// this transport: all attempts of a request then have the same token. A client with its
// own retries multiplies the retries, so turn the client's retries off: for example,
// set stripe-go's MaxNetworkRetries to 0. The transport doesn't change the keys that
// stripe-go or another caller sets. If the transport retries after an answer with
// cookies, the cookies don't reach http.Client's cookie jar.
package client
