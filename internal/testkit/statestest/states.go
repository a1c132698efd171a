// Package statestest has a stand-in for Step Functions. The stand-in follows the
// documented rules for starting executions. For example, two executions of a standard
// workflow can't have the same name if their inputs differ.
package statestest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// States is a set of state machines, safe for concurrent use.
type States struct {
	// Types has the type of each state machine, STANDARD or EXPRESS, by ARN.
	Types map[string]string
	// Denied has the names of the actions to refuse, such as DescribeExecution.
	Denied []string

	mu         sync.Mutex
	executions map[string]*execution
	calls      []string
}

type execution struct {
	input string
	ended bool
}

// Error is an error of the service, with its documented code.
type Error struct{ Code, Message string }

// Error returns code and message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// maxInput is the documented maximum length of an input, in bytes.
const maxInput = 262_144

// Start answers a StartExecution call with the execution's ARN.
func (s *States) Start(machine, name, input string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.call("StartExecution"); err != nil {
		return "", err
	}
	p := strings.Split(machine, ":")
	if len(p) < 7 {
		return "", &Error{"InvalidArn", machine}
	}
	plain := strings.Join(p[:7], ":")
	switch odd := func(c rune) bool { return c <= ' ' || strings.ContainsRune("<>{}[]?*\"#%\\^|~`$&,;:/", c) || c >= 0x7f }; {
	case s.Types[plain] == "":
		return "", &Error{"StateMachineDoesNotExist", machine}
	case len(name) == 0 || len(name) > 80 || strings.ContainsFunc(name, odd):
		return "", &Error{"InvalidName", name}
	case len(input) > maxInput:
		return "", &Error{"ValidationException", "1 validation error detected: Value at 'input' failed to satisfy constraint: Member must have length less than or equal to 262144"}
	case !json.Valid([]byte(input)):
		return "", &Error{"InvalidExecutionInput", "not JSON"}
	}
	if s.executions == nil {
		s.executions = map[string]*execution{}
	}
	p[5] = "execution"
	arn := strings.Join(append(p[:7], name), ":")
	if s.Types[plain] == "EXPRESS" { // each call starts a new execution, even if the name is taken
		arn = strings.Replace(arn, ":execution:", ":express:", 1) + ":" + string(rune('a'+len(s.executions)))
	}
	if e := s.executions[arn]; e != nil && (e.ended || e.input != input) {
		return "", &Error{"ExecutionAlreadyExists", "Execution Already Exists: '" + arn + "'"}
	}
	if s.executions[arn] == nil {
		s.executions[arn] = &execution{input: input}
	}
	return arn, nil
}

// Type answers a DescribeStateMachine call with the machine's type.
func (s *States) Type(machine string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.call("DescribeStateMachine"); err != nil {
		return "", err
	}
	if s.Types[machine] == "" {
		return "", &Error{"StateMachineDoesNotExist", machine}
	}
	return s.Types[machine], nil
}

// Input answers a DescribeExecution call with the execution's input.
func (s *States) Input(arn string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.call("DescribeExecution"); err != nil {
		return "", err
	}
	e := s.executions[arn]
	if e == nil {
		return "", &Error{"ExecutionDoesNotExist", arn}
	}
	return e.input, nil
}

// End ends all executions. The names of ended executions stay taken.
func (s *States) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.executions {
		e.ended = true
	}
}

// Inputs returns the inputs of all executions, sorted.
func (s *States) Inputs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.executions))
	for _, e := range s.executions {
		all = append(all, e.input)
	}
	slices.Sort(all)
	return all
}

// Calls returns the names of all calls so far.
func (s *States) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *States) call(action string) error {
	s.calls = append(s.calls, action)
	if slices.Contains(s.Denied, action) {
		return &Error{"AccessDeniedException", "not authorized to perform: states:" + action}
	}
	return nil
}

// ServeHTTP answers requests of the SDK.
func (s *States) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	var in struct{ StateMachineArn, ExecutionArn, Name, Input string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	out := map[string]any{}
	var err error
	switch _, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); action {
	case "StartExecution":
		out["executionArn"], err = s.Start(in.StateMachineArn, in.Name, in.Input)
		out["startDate"] = 1
	case "DescribeStateMachine":
		out["type"], err = s.Type(in.StateMachineArn)
	case "DescribeExecution":
		out["input"], err = s.Input(in.ExecutionArn)
	default:
		err = &Error{"UnknownOperationException", action}
	}
	rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if e, ok := err.(*Error); ok { //nolint:errorlint // its own
		rw.WriteHeader(http.StatusBadRequest)
		out = map[string]any{"__type": "com.amazonaws.states#" + e.Code, "message": e.Message}
	}
	_ = json.NewEncoder(rw).Encode(out)
}
