package check

import "slices"

// Outcomes of a check under a contract.
const (
	OK       = "ok"
	Fault    = "fault"
	NoRule   = "no rule"  // the contract has no rule for the check
	NotKnown = "not seen" // the check was not made, or proved nothing
)

// Report is the result of an examination. samekey check --json prints it as JSON.
type Report struct {
	URL      string `json:"url"` // without its query
	Method   string `json:"method"`
	Keys     string `json:"keys"`     // text with which all keys begin
	Contract string `json:"contract"` // the contract whose broken rules Faults counts
	Requests int    `json:"requests"` // number of requests sent
	// Trouble is the reason why the examination or a check broke off; "" if nothing
	// broke off.
	Trouble string    `json:"trouble,omitempty"`
	Checks  []Outcome `json:"checks"`
	Notes   []string  `json:"notes,omitempty"`
	Faults  int       `json:"faults"` // number of the rules of Contract that the API breaks
}

// Outcome is the result of one check.
type Outcome struct {
	Check string `json:"check"`
	// Under maps a contract to OK, Fault, NoRule or NotKnown.
	Under map[string]string `json:"under"`
	// Why is the reason why the check was not made, broke off or proved nothing;
	// otherwise "".
	Why    string    `json:"why,omitempty"`
	Faults []Finding `json:"faults,omitempty"`
}

// Finding is a rule that the API breaks.
type Finding struct {
	Rule string `json:"rule"`
	Seen string `json:"seen"` // what the API did when it first broke the rule
	// Breaks maps each broken contract to the section that contains the rule.
	Breaks map[string]string `json:"breaks"`
}

func outcome(contract, check, why string, found []Finding) Outcome {
	o := Outcome{Check: check, Why: why, Under: make(map[string]string), Faults: found}
	for _, c := range columns(contract) {
		o.Under[c] = NoRule
	}
	for _, r := range rulesOf(contract) {
		if r.Check != check {
			continue
		}
		for c := range r.Sections {
			if !slices.Contains(columns(contract), c) {
				continue
			}
			o.Under[c] = OK
			if why != "" {
				o.Under[c] = NotKnown
			}
		}
	}
	for _, f := range found {
		for c := range f.Breaks {
			o.Under[c] = Fault
		}
	}
	return o
}

func (r *Report) faults(contract string) (n int) {
	for _, o := range r.Checks {
		for _, f := range o.Faults {
			if _, ok := f.Breaks[contract]; ok {
				n++
			}
		}
	}
	return n
}
