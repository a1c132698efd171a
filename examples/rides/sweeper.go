package rides

import (
	"context"
	"encoding/json"

	"github.com/samekey/samekey/dynamo/stream"
)

// Sweeper is the scheduled function: it runs a sweep, and counts what that finds.
type Sweeper struct {
	Sweep   *stream.Sweep
	Metrics *Metrics
}

// Invoke implements the runtime's Handler. The payload does not matter; the
// result is the sweep's report as JSON.
func (s Sweeper) Invoke(ctx context.Context, _ []byte) ([]byte, error) {
	report, err := s.Sweep.Run(ctx)
	s.Metrics.Swept(report)
	if err != nil {
		return nil, err
	}
	return json.Marshal(report)
}
