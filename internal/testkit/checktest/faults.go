package checktest

// Fault is a mistake that a [Server] can make.
type Fault struct {
	Name string // name of the fault, for [Wrong]
	Does string
	// Breaks names the rules of the default contract that the fault breaks.
	Breaks []string
}

// Faults returns all faults of a [Server]. Each rule of the default contract is broken by at least
// one fault.
func Faults() []Fault {
	return []Fault{
		{"reruns", "runs every request again", []string{"replay-differs"}},
		{"respells", "stores its answers as values, and writes their JSON anew for a replay", []string{"replay-differs"}},
		{"says200", "replays with status 200", []string{"replay-status"}},
		{"drops-headers", "replays without the answer's headers", []string{"replay-headers"}},
		{"unmarked", "doesn't mark replays", []string{"replay-unmarked"}},
		{"no-echo", "doesn't echo keys", []string{"key-unechoed"}},
		{"no-lifetime", "doesn't tell how long a key lives", []string{"lifetime-untold"}},
		{"seconds", "tells the lifetime in seconds", []string{"lifetime-wrong"}},
		{"keeps-quotes", "takes quotes for a part of the key", []string{"quoted-another"}},
		{"no-quotes", "refuses quoted keys", []string{"quoted-refused"}},
		{"quotes-only", "refuses keys without quotes", []string{"bare-refused"}},
		{"ignores-body", "doesn't compare bodies", []string{"mismatch-replayed"}},
		{"overwrites", "lets another body take the key over", []string{"kept-lost", "mismatch-ran", "path-ran"}},
		{"mismatch409", "refuses another body with 409", []string{"mismatch-status"}},
		{"leaks", "shows the first answer in a refusal", []string{"mismatch-leak"}},
		{"ignores-path", "doesn't compare paths", []string{"path-replayed"}},
		{"keys-by-path", "keeps the keys of each path apart", []string{"path-ran"}},
		{"ignores-method", "looks keys up before the method", []string{"method-replayed"}},
		{"ignores-caller", "doesn't keep callers apart", []string{"caller-replayed"}},
		{"races", "looks a key up first and writes it later: of requests at the same time, two run", []string{"concurrent-twice"}},
		{"fails-races", "answers 500 while a request with the key is in flight", []string{"concurrent-failed"}},
		{"runs-keyless", "runs requests without a key", []string{"missing-ran"}},
		{"keyless422", "refuses requests without a key with 422", []string{"missing-status"}},
		{"takes-empty", "takes an empty key", []string{"key-empty"}},
		{"takes-long", "takes keys of any length", []string{"key-long"}},
		{"takes-two", "takes the first of two keys", []string{"key-twice"}},
		{"takes-any", "takes keys with any characters", []string{"key-ascii"}},
		{"invalid422", "refuses invalid keys with 422", []string{"key-status"}},
		{"burns", "stores refusals of invalid input", []string{"refusal-burns"}},
		{"plain-errors", "answers errors as plain text", []string{"error-body"}},
		{"cacheable", "lets errors be cached", []string{"error-cacheable"}},
		{"no-retry-after", "doesn't say when to come again", []string{"retry-after"}},
		{"no-preflight", "doesn't allow pages to send the header", []string{"cors-preflight"}},
		{"hides-errors", "allows pages to read its successes only", []string{"cors-hidden"}},
		{"exposes-nothing", "exposes no header to pages", []string{"cors-unexposed"}},
	}
}

// Ten returns ten faults of different kinds. None of them hides the effect of another.
func Ten() []string {
	return []string{
		"respells", "races", "ignores-body", "runs-keyless", "keeps-quotes",
		"ignores-method", "no-lifetime", "no-preflight", "no-retry-after", "burns",
	}
}
