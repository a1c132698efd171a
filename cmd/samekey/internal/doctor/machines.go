package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// askMachines asks for the state machines that the worker's jobs start.
func (f *Facts) askMachines(ctx context.Context, api StepFunctions) {
	w := f.worker()
	if w == nil {
		return
	}
	asked := make(map[string]bool)
	for _, sink := range list(w.Env["SAMEKEY_SINKS"]) {
		_, to, _ := strings.Cut(sink, "=")
		arn, ok := strings.CutPrefix(to, "states:")
		if part := strings.Split(arn, ":"); len(part) > 7 {
			arn = strings.Join(part[:7], ":") // without its version or alias
		}
		if !ok || asked[arn] {
			continue
		}
		asked[arn] = true
		out, err := api.DescribeStateMachine(ctx, &sfn.DescribeStateMachineInput{StateMachineArn: &arn, IncludedData: types.IncludedDataMetadataOnly})
		switch {
		case notFound(err):
			f.Machines = append(f.Machines, &Machine{ARN: arn, Gone: true})
		case err != nil:
			f.miss(Machines, fmt.Sprintf("state machine %s: %s", arn, reason(err)))
		default:
			f.Machines = append(f.Machines, &Machine{ARN: arn, Type: out.Type, Gone: out.Status == types.StateMachineStatusDeleting})
		}
	}
}

func machineStandard(f *Facts) ([]wrong, string) {
	if f.worker() == nil {
		return nil, noWorker
	}
	var all []wrong
	for _, m := range f.Machines {
		switch {
		case m.Gone:
			all = append(all, wrong{where: "state machine " + m.ARN, what: "it doesn't exist"})
		case m.Type != types.StateMachineTypeStandard:
			all = append(all, wrong{where: "state machine " + m.ARN, what: fmt.Sprintf("its type is %s, and only a STANDARD state machine remembers the names of its executions", m.Type)})
		}
	}
	return all, ""
}
