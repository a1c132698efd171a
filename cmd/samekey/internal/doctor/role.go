package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// askRole asks for the role of the schedules for later jobs: who may assume the role, and
// whether it may send to the queue of tickets.
func (f *Facts) askRole(ctx context.Context, api IAM) {
	w := f.worker()
	if w == nil || w.Env["SAMEKEY_SCHEDULE_ROLE"] == "" {
		return
	}
	arn := w.Env["SAMEKEY_SCHEDULE_ROLE"]
	name := arn[strings.LastIndexByte(arn, '/')+1:]
	role := &Role{ARN: arn}
	out, err := api.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
	switch {
	case err != nil && !notFound(err):
		f.miss(ScheduleRole, fmt.Sprintf("role %s: %s", name, reason(err)))
		return
	case err == nil && out.Role == nil:
		f.miss(ScheduleRole, fmt.Sprintf("role %s: IAM's answer doesn't contain the role", name))
		return
	case err != nil || aws.ToString(out.Role.Arn) != arn:
		role.Gone = true
		f.Role = role
		return
	}
	if role.Assumed, err = assumedBy(aws.ToString(out.Role.AssumeRolePolicyDocument), "scheduler.amazonaws.com"); err != nil {
		f.miss(ScheduleRole, fmt.Sprintf("role %s: can't read who may assume the role: %v", name, err))
	}
	f.Role = role
	q := f.tickets()
	if q == nil || q.Gone {
		f.miss(Simulation, noTickets)
		return
	}
	may, err := api.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &arn, ActionNames: []string{"sqs:SendMessage"}, ResourceArns: []string{q.ARN}})
	if err != nil {
		f.miss(Simulation, fmt.Sprintf("role %s: %s", name, reason(err)))
		return
	}
	role.Sends = slices.ContainsFunc(may.EvaluationResults, func(r types.EvaluationResult) bool {
		return r.EvalDecision == types.PolicyEvaluationDecisionTypeAllowed
	})
}

// assumedBy reports whether a URL-encoded trust policy lets a service assume the role. Conditions
// are ignored.
func assumedBy(policy, service string) (bool, error) {
	var p struct {
		Statement []struct {
			Effect    string
			Principal json.RawMessage
			Action    json.RawMessage
		}
	}
	text, err := url.QueryUnescape(policy)
	if err == nil {
		err = json.Unmarshal([]byte(text), &p)
	}
	if err != nil {
		return false, err
	}
	for _, s := range p.Statement {
		var of struct{ Service json.RawMessage }
		_ = json.Unmarshal(s.Principal, &of) // a principal that isn't an object, such as "*", names no service
		if s.Effect == "Allow" && slices.Contains(texts(of.Service), service) &&
			slices.ContainsFunc(texts(s.Action), func(a string) bool { return a == "sts:AssumeRole" || a == "sts:*" || a == "*" }) {
			return true, nil
		}
	}
	return false, nil
}

// texts decodes a JSON string, or a list of strings.
func texts(raw json.RawMessage) (all []string) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	_ = json.Unmarshal(raw, &all) // any other value gives no strings
	return all
}

func scheduleRole(f *Facts) ([]wrong, string) {
	w, r := f.worker(), f.Role
	switch {
	case w == nil:
		return nil, noWorker
	case r == nil: // without a role, later jobs wait in the queue of tickets
		return found()
	case r.Gone:
		return found(wrong{where: "role " + r.ARN, what: "it doesn't exist"})
	case !r.Assumed:
		return found(wrong{where: "role " + r.ARN, what: "scheduler.amazonaws.com isn't allowed to assume the role"})
	case !r.Sends:
		return found(wrong{where: "role " + r.ARN, what: "it isn't allowed to send to " + f.tickets().ARN})
	}
	return found()
}
