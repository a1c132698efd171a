package doctor

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
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
