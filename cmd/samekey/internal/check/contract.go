package check

// The contracts whose rules an API can break.
const (
	Default = "default" // docs/use/http.md of this toolkit
	Stripe  = "stripe"  // docs.stripe.com
	IETF    = "ietf"    // draft-ietf-httpapi-idempotency-key-header-07
	ACP     = "acp"     // Agentic Commerce Protocol, agentic checkout
	UCP     = "ucp"     // Universal Commerce Protocol
)

// Contracts returns all contracts.
func Contracts() []string { return []string{Default, Stripe, IETF, ACP, UCP} }

// columns returns the contracts that have a column in the report of an examination by
// contract. The report on a commerce contract has only this contract's column, because
// the examination sends the requests of this contract's checkout.
func columns(contract string) []string {
	if isCommerce(contract) {
		return []string{contract}
	}
	return []string{Default, Stripe, IETF}
}

// rulesOf returns the rules that an examination by contract examines.
func rulesOf(contract string) []Rule {
	if isCommerce(contract) {
		return CommerceRules()
	}
	return Rules()
}

// Sections of Stripe's documentation.
const (
	stripeRequests = "API reference: Idempotent requests"
	stripeErrors   = "Advanced error handling"
	stripeTypes    = "API reference: Errors"
)

// Rule is a demand that at least one contract makes.
type Rule struct {
	Name  string
	Check string // the check that examines the rule
	Says  string // the demand
	// Sections maps each contract that makes the demand to the section with the demand.
	// For Default, the section is the anchor of a heading in docs/use/http.md.
	Sections map[string]string
}

// in makes the Sections of a rule. Each argument is the section of one contract; "" if
// the contract lacks the rule.
func in(ours, stripe, draft string) map[string]string {
	all := make(map[string]string)
	for contract, section := range map[string]string{Default: ours, Stripe: stripe, IETF: draft} {
		if section != "" {
			all[contract] = section
		}
	}
	return all
}

// Rules returns the rules of all contracts except the commerce contracts, in the order of
// their checks.
func Rules() []Rule {
	return []Rule{
		{"replay-differs", "replay", "A repeated request gets the first answer's body and doesn't run again.", in("what-is-kept", stripeRequests, "2.6")},
		{"replay-status", "replay", "A replay has the first answer's status.", in("what-is-kept", stripeRequests, "2.6")},
		{"replay-headers", "replay", "A replay has the first answer's `Content-…` headers and `Location`.", in("what-is-kept", "", "")},
		{"replay-unmarked", "replay", "A replay has the header `Idempotent-Replayed: true`; a first answer doesn't have it.", in("headers", stripeErrors, "")},
		{"key-unechoed", "replay", "Answers echo `Idempotency-Key` as it was sent.", in("headers", "", "")},

		{"lifetime-untold", "lifetime", "Answers say in `Idempotency-Expires` when the key expires.", in("headers", "", "")},
		{"lifetime-wrong", "lifetime", "`Idempotency-Expires` is an HTTP date in the future, and a replay has the same date.", in("headers", "", "")},

		{"quoted-another", "quoted", "Double quotes around a key don't change the key.", in("the-key", "", "")},
		{"quoted-refused", "quoted", "A key in double quotes, the IETF draft's form, is accepted.", in("the-key", "", "2.1")},
		{"bare-refused", "quoted", "A key without quotes, the common form, is accepted.", in("the-key", stripeRequests, "")},

		{"mismatch-replayed", "mismatch", "A request with a known key but another body doesn't get the first answer.", in("the-request", stripeRequests, "2.7")},
		{"mismatch-ran", "mismatch", "A request with a known key but another body doesn't run.", in("the-request", stripeRequests, "2.7")},
		{"mismatch-status", "mismatch", "A request with a known key but another body gets 422 (Stripe: 400).", in("what-comes-back", stripeRequests, "2.7")},
		{"mismatch-leak", "mismatch", "A refusal contains no part of the first answer.", in("what-comes-back", "", "5")},

		{"path-replayed", "path", "A request with a known key but another path doesn't get the first path's answer.", in("the-request", stripeRequests, "")},
		{"path-ran", "path", "A request with a known key but another path doesn't run.", in("the-request", stripeRequests, "")},
		{"method-replayed", "method", "A request with a known key but another method doesn't get the first method's answer.", in("the-request", stripeRequests, "")},
		{"caller-replayed", "caller", "Another caller with the same key doesn't get the first caller's answer.", in("what-a-client-sends", stripeRequests, "5")},
		{"kept-lost", "kept", "The first request gets the first answer again after the API refused other requests with the same key.", in("what-comes-back", stripeRequests, "2.6")},

		{"concurrent-twice", "concurrent", "Of equal requests sent at once, at most one runs.", in("in-flight", stripeRequests, "2.6")},
		{"concurrent-failed", "concurrent", "Equal requests sent at once get the same answer. While one of them runs, the others may get 409 or 202.", in("in-flight", stripeRequests, "2.7")},

		{"missing-ran", "missing", "A request without a key doesn't run where a key is required.", in("without-a-key", "", "2.7")},
		{"missing-status", "missing", "A request without a required key gets 400.", in("without-a-key", "", "2.7")},

		{"key-empty", "malformed", "An empty key is refused.", in("the-key", "", "2.1")},
		{"key-long", "malformed", "A key of more than 255 characters is refused.", in("the-key", stripeRequests, "")},
		{"key-twice", "malformed", "Two `Idempotency-Key` headers are refused.", in("the-key", "", "2.1")},
		{"key-ascii", "malformed", "A key with characters beyond ASCII is refused.", in("the-key", "", "2.1")},
		{"key-status", "malformed", "A malformed key gets 400.", in("what-comes-back", stripeRequests, "")},

		{"refusal-burns", "refusal", "After the API refuses invalid input, the corrected request may use the same key.", in("what-is-kept", stripeRequests, "")},

		{"error-body", "errors", "Errors about keys have the contract's form. Default: problem+json with a `code`. Stripe: an `error` object. IETF draft: problem+json or the header `Link`.", in("problems", stripeTypes, "2.7")},
		{"error-cacheable", "errors", "Errors about keys are not cached: `Cache-Control: no-store`.", in("headers", "", "")},
		{"retry-after", "errors", "Each 429, each 503, and each 409 for a request in flight has `Retry-After`.", in("headers", "", "")},

		{"cors-preflight", "cors", "The answer to a preflight allows the origin, the method and the header `Idempotency-Key`.", in("browsers", "", "")},
		{"cors-hidden", "cors", "Every answer allows the origin, even an error about a key.", in("browsers", "", "")},
		{"cors-unexposed", "cors", "Answers allow web pages to read the headers about keys.", in("browsers", "", "")},
	}
}
