package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
)

// Facts.named returns the names of the functions in the options and in the stack. If
// Options.Table is empty, Facts.named sets it to the stack's table.
func (f *Facts) named(ctx context.Context, c Clients) ([]string, error) {
	names := f.Options.Functions
	if f.Options.Stack != "" {
		tables, functions, err := stackResources(ctx, c.CloudFormation, f.Options.Stack)
		if err != nil {
			return nil, fmt.Errorf("the stack %s can't be read: %s", f.Options.Stack, reason(err))
		}
		names = append(names, functions...)
		if f.Options.Table == "" && len(tables) == 1 {
			f.Options.Table = tables[0]
		}
		if f.Options.Table == "" {
			return nil, fmt.Errorf("the stack %s has %d tables with the logical name Table (%s): give --table", f.Options.Stack, len(tables), strings.Join(tables, ", "))
		}
	}
	if f.Options.Table == "" {
		return nil, errors.New("which table?")
	}
	return names, nil
}

// stackResources returns the functions of a stack and its nested stacks. It also
// returns the tables with the logical name Table, which samekey.yaml gives to its
// table.
func stackResources(ctx context.Context, api cloudformation.ListStackResourcesAPIClient, stack string) (tables, functions []string, _ error) {
	pages := cloudformation.NewListStackResourcesPaginator(api, &cloudformation.ListStackResourcesInput{StackName: &stack})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page.StackResourceSummaries {
			id := aws.ToString(r.PhysicalResourceId)
			switch aws.ToString(r.ResourceType) {
			case "AWS::CloudFormation::Stack":
				t, fn, err := stackResources(ctx, api, id)
				if err != nil {
					return nil, nil, err
				}
				tables, functions = append(tables, t...), append(functions, fn...)
			case "AWS::Lambda::Function":
				functions = append(functions, id)
			case "AWS::DynamoDB::Table":
				if aws.ToString(r.LogicalResourceId) == "Table" {
					tables = append(tables, id)
				}
			}
		}
	}
	return tables, functions, nil
}
