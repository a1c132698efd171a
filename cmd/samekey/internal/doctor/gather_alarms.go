package doctor

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/samekey/samekey/internal/metrictable"
)

func (f *Facts) askAlarms(ctx context.Context, api cloudwatch.DescribeAlarmsAPIClient) {
	pages := cloudwatch.NewDescribeAlarmsPaginator(api, &cloudwatch.DescribeAlarmsInput{AlarmTypes: []types.AlarmType{types.AlarmTypeMetricAlarm}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.miss(Alarms, reason(err))
			return
		}
		f.Alarms = append(f.Alarms, page.MetricAlarms...)
	}
}

// askMetrics asks which applications have the metric Requests. Only hooks in the functions
// write this metric. CloudWatch lists a metric for two weeks after its last value.
func (f *Facts) askMetrics(ctx context.Context, api cloudwatch.ListMetricsAPIClient) {
	pages := cloudwatch.NewListMetricsPaginator(api, &cloudwatch.ListMetricsInput{Namespace: aws.String(metrictable.Namespace), MetricName: aws.String("Requests")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			f.miss(Metrics, reason(err))
			return
		}
		for _, m := range page.Metrics {
			for _, d := range m.Dimensions {
				if aws.ToString(d.Name) == "App" {
					f.Counted = append(f.Counted, aws.ToString(d.Value))
				}
			}
		}
	}
}
